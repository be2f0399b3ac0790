//! The whole runtime in one process: what is composed of what, started in order and stopped in reverse (engine f.3).

mod database;
mod harness;
mod identity;
mod keys;
mod liveness;
mod sweeps;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nylorun_app::{App, Host, Parts};
use nylorun_blobs::FileBlobs;
use nylorun_gates::catalogue::{Catalogue, CatalogueError};
use nylorun_gates::outbound::Outbound;
use nylorun_gates::{CallSettings, HttpToolGate, Models};
use nylorun_harness::InProcess;
use nylorun_keys::model::ModelSecrets;
use nylorun_server::{Limits, ServerConfig, Stage, StageHandle, Stages, loopback_hosts, serve, stages};
use nylorun_store::db::{DatabaseUrl, HomeLock, OlderSchema};
use nylorun_store::{Db, Store};
use nylorun_turns::{
    Committer, Live, Scheduler, SchedulerConfig, StoreBudgets, StoreCrossings, StoreWorkspaceLog, now, run_sweeps, ulid,
};
use nylorun_wire::model::CatalogueProvider;
use nylorun_workspace::{Lifetime, ManagerConfig, Preference, ShellCommand, WorkspaceManager};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::cli::{CredentialsFile, Failure, HostFile};
use crate::config::{Config, unusable};
use crate::home::{Home, LastStop};
pub(crate) use database::open_database;
use database::open_tenant;
use harness::RuntimeHarness;

/// A runtime that serves.
pub(crate) struct Runtime {
    url: String,
    home: Home,
    credentials: CredentialsFile,
    store: Store,
    db: Arc<Db>,
    scheduler: Scheduler,
    harness: RuntimeHarness,
    workspaces: WorkspaceManager,
    http_tools: HttpToolGate,
    stage: StageHandle,
    server: JoinHandle<()>,
    sweeps: JoinHandle<()>,
    liveness: JoinHandle<()>,
    /// Held for as long as this process may write.
    _lock: HomeLock,
}

impl Runtime {
    /// Starts everything. When this answers, requests are served.
    pub(crate) async fn start(config: &Config) -> Result<Self, Failure> {
        let issuers = identity::trusted_issuers(config)?;
        let home = Home::prepare(&config.home)?;
        let lock = home.lock()?;
        let database = database_of(config, &home)?;
        say_starting(config, &database);
        let db = Arc::new(open_database(&database, OlderSchema::Migrate).await?);
        let host_id = home.host_file()?.map_or_else(|| format!("host_{}", ulid()), |file| file.host_id);
        let worker = liveness::worker_id(&host_id);
        let worker_lock = liveness::begin_lock(&db, &worker);
        let store = open_tenant(&db, config).await?;
        let kek = keys::vault_key(&home, &store).await?;
        let credentials = keys::of_command_line(&home, &store).await?;
        keys::register_bootstrap(config.management_key_file.as_deref(), &store).await?;

        let (listener, address) = listen(config.listen).await?;

        let live = Live::default();
        let committer = Committer::new(store.clone(), live.clone());
        let workspaces = workspace_manager(config, &home, &host_id, &committer)?;
        let backend = chosen_backend(&config.sandbox, &workspaces).await?;
        let catalogue = catalogue(config.models_file.as_deref())?;
        let secrets = Arc::new(ModelSecrets::new(Arc::new(kek), store.clone(), now));
        let crossings = Arc::new(StoreCrossings::new(store.clone()));
        let http_tools = http_tool_gate(config, &crossings);
        let blobs = open_blobs(&home)?;
        let in_process = in_process(models(config, &secrets, &store, &catalogue), &workspaces, &http_tools, &blobs);
        let harness = RuntimeHarness::start(config.harness, store.tenant(), in_process);
        let scheduler = Scheduler::new(committer, harness.reached(), worker, scheduler_config(config));
        let app = App::new(Parts {
            store: store.clone(),
            live,
            scheduler: scheduler.clone(),
            workspaces: Arc::new(workspaces.clone()),
            removal: Arc::new(workspaces.clone()),
            blobs,
            backends: Arc::new(workspaces.clone()),
            vault: secrets,
            issuers: Arc::new(issuers),
            catalogue: catalogue_of(&catalogue),
            host: Host { id: host_id.clone(), path: home.tenant().display().to_string() },
        });

        let (stage, stages) = stages();
        let maintenance = sweeps::maintenance(&workspaces, crossings, &app);
        let server = spawn_server(listener, app, server_config(config, address.port()), stages);
        let worker_lock = worker_lock.await.map_err(|error| Failure::new(error.to_string()))??;
        let liveness = tokio::spawn(liveness::stay_alive(Arc::clone(&db), scheduler.clone(), worker_lock));
        let sweeps = tokio::spawn(run_sweeps(scheduler.clone(), maintenance));

        let url = format!("http://{address}");
        say_ready(&url, &host_id, &store, backend);
        home.write_host_file(&host_file(host_id, &store, address, &url))?;
        Ok(Self {
            url,
            home,
            credentials,
            store,
            db,
            scheduler,
            harness,
            workspaces,
            http_tools,
            stage,
            server,
            sweeps,
            liveness,
            _lock: lock,
        })
    }

    /// Where it serves.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// How many sessions this process advances now.
    pub(crate) fn advancing(&self) -> usize {
        self.scheduler.advancing()
    }

    /// The keys that the command line uses.
    pub(crate) fn credentials(&self) -> &CredentialsFile {
        &self.credentials
    }

    /// Stops: streams end at once, turns come to rest, sessions are given back, then the store closes.
    pub(crate) async fn stop(mut self) {
        let begun = Instant::now();
        let turns_running = self.advancing();
        self.stage.advance(Stage::Draining);
        self.sweeps.abort();
        self.scheduler.stop().await;
        self.harness.stop().await;
        self.liveness.abort();
        self.http_tools.close(Duration::from_secs(5)).await;
        self.workspaces.close(Duration::from_secs(5)).await;
        self.say_how_it_stopped(turns_running).await;
        self.stage.advance(Stage::Closing);
        if let Err(error) = self.server.await {
            tracing::error!(%error, "the server's task ended badly");
        }
        self.db.close().await;
        tracing::info!(took_ms = begun.elapsed().as_millis(), "stopped");
    }
}

impl Runtime {
    /// For `nylorun stop`, which waits for this process to go.
    async fn say_how_it_stopped(&self, turns_running: usize) {
        let left = self.store.session_counts().await.map_err(|error| Failure::new(error.to_string()));
        let written = left.and_then(|(_, left)| {
            self.home.write_last_stop(&LastStop {
                pid: std::process::id(),
                turns_running: u64::try_from(turns_running).unwrap_or_default(),
                turns_left: u64::try_from(left).unwrap_or_default(),
            })
        });
        if let Err(failure) = written {
            tracing::warn!(%failure, "how the turns were left cannot be said");
        }
    }
}

/// The settings that matter, before anything is opened that may take its time. A database URL shows no password.
fn say_starting(config: &Config, database: &DatabaseUrl) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        home = %config.home.display(),
        database = %database,
        listen = %config.listen,
        pid = std::process::id(),
        "starting"
    );
}

fn say_ready(url: &str, host: &str, store: &Store, backend: Option<(&str, &str)>) {
    let (sandbox, isolation) = backend.unwrap_or(("none", "none"));
    tracing::info!(url, host, tenant = %store.tenant(), sandbox, isolation, "ready");
}

/// The backend of new workspaces with its isolation, `None` when none works here: then tools fail and say so.
async fn chosen_backend(
    preference: &Preference,
    workspaces: &WorkspaceManager,
) -> Result<Option<(&'static str, &'static str)>, Failure> {
    let report = workspaces.report().await;
    let names: Vec<&str> = report.probes.iter().map(|probe| probe.name).collect();
    match preference {
        Preference::Named(name) if !names.contains(name) => {
            return Err(unusable("NYLORUN_SANDBOX", name, &format!("auto or {}", names.join(", "))));
        }
        Preference::Named(_) | Preference::Auto | Preference::Unknown(_) => {}
    }
    let chosen = report.backend.zip(report.isolation);
    if chosen.is_none() {
        tracing::warn!(wanted = report.preference, reason = report.reason, "no workspace backend works here");
    }
    Ok(chosen)
}

fn host_file(host_id: String, store: &Store, address: SocketAddr, url: &str) -> HostFile {
    HostFile {
        format: 1,
        host_id,
        tenant_id: store.tenant().to_string(),
        url: url.to_owned(),
        host: address.ip().to_string(),
        port: address.port(),
        pid: std::process::id(),
    }
}

fn scheduler_config(config: &Config) -> SchedulerConfig {
    let (stop_grace, yield_after) = (config.stop_grace, config.yield_after);
    SchedulerConfig { stop_grace, yield_after, ..SchedulerConfig::default() }
}

fn server_config(config: &Config, port: u16) -> ServerConfig {
    let mut allowed_hosts = loopback_hosts(port, &[]);
    allowed_hosts.extend(config.allowed_hosts.iter().cloned());
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let limits = Limits { write: config.stall_limit, ..Limits::default() };
    ServerConfig { allowed_hosts, public_url: config.public_url.clone(), version, limits }
}

async fn listen(at: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = TcpListener::bind(at).await.map_err(|error| listen_failure(at, &error))?;
    let address = listener.local_addr().map_err(|error| listen_failure(at, &error))?;
    Ok((listener, address))
}

fn spawn_server(listener: TcpListener, app: App, config: ServerConfig, stages: Stages) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = serve(listener, app, config, stages).await {
            tracing::error!(%error, "the server ended");
        }
    })
}

/// The database that is set, or the home's own.
fn database_of(config: &Config, home: &Home) -> Result<DatabaseUrl, Failure> {
    let database = config.database.clone().unwrap_or_else(|| home.database());
    home.refuse_open_files(&database)?;
    Ok(database)
}

fn listen_failure(listen: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot listen on {listen}: {error}"))
        .remedy("stop what listens there, or choose another port with --listen; port 0 picks a free one")
}

fn workspace_manager(
    config: &Config,
    home: &Home,
    host_id: &str,
    committer: &Committer,
) -> Result<WorkspaceManager, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program's own file: {error}")))?;
    let manager = ManagerConfig {
        home: home.path().to_owned(),
        tenant: committer.store().tenant().clone(),
        host_id: host_id.to_owned(),
        preference: config.sandbox.clone(),
        shell_command: ShellCommand { program: program.into(), args: vec![crate::shell::WORD.into()] },
        quota: config.workspace_quota,
        max_live: config.workspaces_live,
        lifetime: Lifetime::Durable,
    };
    Ok(WorkspaceManager::new(manager, Arc::new(StoreWorkspaceLog::new(committer.clone()))))
}

/// A name for this process that no other one has had.
fn open_blobs(home: &Home) -> Result<Arc<FileBlobs>, Failure> {
    let path = home.blobs();
    FileBlobs::open(&path)
        .map(Arc::new)
        .map_err(|error| Failure::new(format!("cannot use {}: {error}", path.display())))
}

fn in_process(
    models: Models,
    workspaces: &WorkspaceManager,
    http_tools: &HttpToolGate,
    blobs: &Arc<FileBlobs>,
) -> InProcess {
    let (workspaces, http_tools) = (Arc::new(workspaces.clone()), Arc::new(http_tools.clone()));
    InProcess::new(Arc::new(models), workspaces, http_tools, Arc::<FileBlobs>::clone(blobs))
}

fn http_tool_gate(config: &Config, crossings: &Arc<StoreCrossings>) -> HttpToolGate {
    HttpToolGate::new(Outbound::new(config.private_targets), Arc::<StoreCrossings>::clone(crossings))
}

fn models(config: &Config, secrets: &Arc<ModelSecrets>, store: &Store, catalogue: &Arc<Catalogue>) -> Models {
    Models::new(
        Arc::<ModelSecrets>::clone(secrets),
        Arc::new(StoreBudgets::new(store.clone())),
        Arc::new(Outbound::new(config.private_targets)),
        Arc::clone(catalogue),
        CallSettings::default(),
    )
}

/// The built-in catalogue with the operator's additions.
fn catalogue(file: Option<&Path>) -> Result<Arc<Catalogue>, Failure> {
    const REMEDY: &str = "correct the file, which has the form of data/models.json, or leave the variable out";
    let Some(path) = file else {
        let catalogue = Catalogue::load(None).map(Arc::new);
        return catalogue.map_err(|error| Failure::new(format!("the model catalogue cannot be read: {error}")));
    };
    let name = path.display().to_string();
    let failed =
        |what: &str| Failure::usage(format!("NYLORUN_MODELS_FILE={name:?} cannot be used{what}")).remedy(REMEDY);
    let text = std::fs::read_to_string(path).map_err(|error| failed(&format!(": {error}")))?;
    Catalogue::load(Some(&text)).map(Arc::new).map_err(|error| match error {
        CatalogueError::NotJson { .. } => failed(&format!(": {error}")),
        CatalogueError::Wrong(problems) => failed("").lines(problems),
    })
}

fn catalogue_of(catalogue: &Catalogue) -> Vec<CatalogueProvider> {
    let providers = catalogue.providers().iter().map(|provider| CatalogueProvider {
        id: provider.id.clone(),
        name: provider.name.clone(),
        models: provider.models.iter().map(|model| (model.id.clone(), model.name.clone())).collect(),
    });
    providers.collect()
}
