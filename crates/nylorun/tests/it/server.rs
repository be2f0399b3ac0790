//! A server of the real binary in a process of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nylorun_client::{Client, Key, TenantClient};
use serde_json::Value;

/// How a server is started.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) home: PathBuf,
    /// `127.0.0.1:PORT`; port 0 picks one.
    pub(crate) listen: String,
    /// Further variables of its environment.
    pub(crate) env: Vec<(String, String)>,
    /// What a shell does before it becomes the server.
    pub(crate) before: Option<&'static str>,
}

impl Setup {
    pub(crate) fn new(home: &Path) -> Self {
        // The log is in it before the server is: it must not be open to others then.
        fs::set_permissions(home, fs::Permissions::from_mode(0o700)).expect("the home directory is there");
        Self { home: home.to_owned(), listen: "127.0.0.1:0".to_owned(), env: Vec::new(), before: None }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same, in a process that did this before, in the words of `sh`.
    pub(crate) fn after(self, before: &'static str) -> Self {
        Self { before: Some(before), ..self }
    }

    fn spawn(&self) -> Child {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.home.join("server.log"));
        let program = env!("CARGO_BIN_EXE_nylorun");
        let mut command = match self.before {
            None => Command::new(program),
            Some(before) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{before}; exec \"$0\" \"$@\""), program]);
                shell
            }
        };
        command.arg("serve").arg("--home").arg(&self.home).args(["--listen", &self.listen]);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NYLORUN_")) {
            command.env_remove(name);
        }
        command.envs(self.env.iter().cloned()).stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(log.expect("the home directory is there")).spawn().expect("the binary starts")
    }

    /// Starts a server; `None` when it ended before it was ready.
    pub(crate) fn try_start(&self) -> Option<Server> {
        let begun = Instant::now();
        let mut child = self.spawn();
        let mut lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        let Some(Ok(line)) = lines.next() else {
            child.wait().expect("it ended");
            return None;
        };
        let url = line.strip_prefix("nylorun is ready at ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Some(Server { child, url, home: self.home.clone(), started_in: begun.elapsed() })
    }

    /// A start that must fail: its exit code, and what it said since the log was begun.
    pub(crate) fn refused(&self) -> (Option<i32>, String) {
        let mut child = self.spawn();
        let mut lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        if let Some(Ok(line)) = lines.next() {
            child.kill().expect("it runs");
            child.wait().expect("it ended");
            panic!("it started: {line}");
        }
        (child.wait().expect("it ended").code(), self.log())
    }

    /// What its servers logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.join("server.log")).unwrap_or_default()
    }

    /// Starts a server that becomes ready.
    pub(crate) fn start(&self) -> Server {
        self.try_start().unwrap_or_else(|| panic!("the server did not become ready:\n{}", self.log()))
    }
}

/// A running server. It is killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    home: PathBuf,
    pub(crate) started_in: Duration,
}

impl Server {
    /// A client with the application key of the home directory.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url, self.key("applicationKey")).expect("the URL is one")
    }

    /// A client with the management key of the home directory.
    pub(crate) fn tenant(&self) -> TenantClient {
        TenantClient::new(&self.url, self.key("managementKey")).expect("the URL is one")
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A key of the home directory: `applicationKey` or `managementKey`.
    pub(crate) fn key_text(&self, name: &str) -> String {
        let text = fs::read(self.home.join("host-credentials.json")).expect("the keys are there");
        let file: Value = serde_json::from_slice(&text).expect("the keys are JSON");
        file[name]["key"].as_str().expect("a key").to_owned()
    }

    fn key(&self, name: &str) -> Key {
        Key::new(self.key_text(name)).expect("a key")
    }

    /// Waits until the session's turn runs: the call that it makes first has begun.
    pub(crate) async fn until_running(&self, session: &str) {
        let session = self.client().session(session);
        while session.view().await.expect("it is there").status.as_str() != "running" {}
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        self.child.wait().expect("it ended");
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        self.child.wait().expect("it ended")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
