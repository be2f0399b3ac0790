//! A server of the release binary, in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nylorun_client::{Client, Key, Seed, TenantClient};
use nylorun_domain::id::TenantId;
use serde_json::{Value, json};

use crate::report::{ms, percentile};
use crate::{Database, Failure};

/// The agent that every benchmark uses.
pub(crate) const AGENT: &str = "bench";

/// A running server; killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    url: String,
    home: PathBuf,
    /// From the start of the process until it said that it is ready.
    pub(crate) ready_in: Duration,
}

/// What the store has counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    /// Commits.
    pub(crate) commits: f64,
    /// Statements.
    pub(crate) statements: f64,
}

/// The binary beside this one.
fn binary() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let beside = own.with_file_name("nylorun");
    if beside.is_file() {
        return Ok(beside);
    }
    Err(format!("{} is missing: build it with cargo build --release -p nylorun", beside.display()).into())
}

/// An empty database of its own on the measured server.
pub(crate) async fn fresh(database: &Database, name: &str) -> Result<Database, Failure> {
    let Database::Postgres(url) = database else { return Ok(Database::Sqlite) };
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(&format!("DROP DATABASE IF EXISTS {name}")).await?;
    client.batch_execute(&format!("CREATE DATABASE {name}")).await?;
    let (server, _) = url.rsplit_once('/').ok_or("the URL names no database")?;
    Ok(Database::Postgres(format!("{server}/{name}")))
}

impl Server {
    /// Starts a server on this home directory.
    pub(crate) fn start(home: &Path, database: &Database) -> Result<Self, Failure> {
        let begun = Instant::now();
        let mut command = Command::new(binary()?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--home"]).arg(home).env("NYLORUN_LOG", "warn");
        match database {
            Database::Sqlite => command.env_remove("NYLORUN_DATABASE_URL"),
            Database::Postgres(url) => command.env("NYLORUN_DATABASE_URL", url),
        };
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("the server's output is not piped")?;
        let line = BufReader::new(output).lines().next().ok_or("the server ended before it was ready")??;
        let url = line.strip_prefix("nylorun is ready at ").ok_or("the server said something else")?.to_owned();
        Ok(Self { child, url, home: home.to_owned(), ready_in: begun.elapsed() })
    }

    /// Saves the agent and switches the fixture model on.
    pub(crate) async fn prepare(&self) -> Result<(), Failure> {
        self.tenant()?.seed(&Seed::FixtureModel).await?;
        let manifest = json!({"manifestSchemaVersion": 5, "id": AGENT, "capabilities": [{"id": "c", "type": "agent"}]});
        self.client()?.save_agent(AGENT, &manifest, "1").await?;
        Ok(())
    }

    /// A client of the Runtime API.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::new(&self.url, self.key("applicationKey")?)?)
    }

    /// What the store has counted so far.
    pub(crate) async fn counters(&self) -> Result<Counters, Failure> {
        let status = self.tenant()?.status().await?;
        let number = |name: &str| status.other["counters"][name].as_f64().ok_or("the status has no counters");
        Ok(Counters { commits: number("commits")?, statements: number("statements")? })
    }

    /// A round trip that does nothing, on one kept connection.
    pub(crate) async fn health_p50(&self) -> Result<String, Failure> {
        let client = self.client()?;
        let mut times = Vec::new();
        for _ in 0..300 {
            let begun = Instant::now();
            client.health().await?;
            times.push(begun.elapsed());
        }
        Ok(format!("p50 {}", ms(percentile(&mut times, 0.5))))
    }

    fn tenant(&self) -> Result<TenantClient, Failure> {
        Ok(TenantClient::new(&self.url, self.key("managementKey")?)?)
    }

    fn key(&self, name: &str) -> Result<Key, Failure> {
        let file: Value = serde_json::from_slice(&std::fs::read(self.home.join("host-credentials.json"))?)?;
        Ok(Key::new(file[name]["key"].as_str().ok_or("a key is missing")?)?)
    }

    /// The tenant that it serves.
    pub(crate) fn tenant_id(&self) -> Result<TenantId, Failure> {
        let file: Value = serde_json::from_slice(&std::fs::read(self.home.join("host.json"))?)?;
        Ok(TenantId::from_trusted(file["tenantId"].as_str().ok_or("host.json names no tenant")?))
    }

    /// Memory that the process holds, in MB.
    pub(crate) fn rss_mb(&self) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1024.0 / 1e6)
    }

    /// Processor time of this process so far, in clock ticks.
    pub(crate) fn ticks(&self) -> Result<f64, Failure> {
        ticks_of(self.child.id())
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// Processor time of a process so far, in clock ticks.
pub(crate) fn ticks_of(pid: u32) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").ok_or("an unknown form of stat")?;
    let field = |at: usize| fields.split(' ').nth(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    Ok(field(11) + field(12))
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
