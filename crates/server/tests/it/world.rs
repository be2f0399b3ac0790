//! A server under test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nylorun_app::{App, Host, Parts};
use nylorun_domain::hash::sha256_hex;
use nylorun_domain::id::{TenantId, WorkerId};
use nylorun_domain::issuer::{Person, TokenScope};
use nylorun_domain::json::Json;
use nylorun_domain::time::Millis;
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::workspace::WorkspaceKey;
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::backends::{BackendReport, ProbeReport, Probed};
use nylorun_ports::issuers::{TokenRefusal, TrustedIssuers};
use nylorun_ports::model_vault::{ModelPut, ModelVault};
use nylorun_ports::models::KeysError;
use nylorun_ports::run::{CoreError, Harness, RunCore, RunEnd, TurnStart};
use nylorun_ports::workspaces::{
    RemovalError, WorkspaceAnswer, WorkspaceCall, WorkspaceOutcome, WorkspaceRemoval, WorkspaceReports, Workspaces,
};
use nylorun_server::{Limits, ServerConfig, StageHandle, loopback_hosts, serve, stages};
use nylorun_store::{Db, NewTenant, PrincipalRow, Store};
use nylorun_turns::{Committer, Live, Scheduler, SchedulerConfig};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::client::{Answer, Client};
use crate::memory_blobs::MemoryBlobs;

/// An application key.
pub(crate) const APPLICATION: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// A management key.
pub(crate) const MANAGEMENT: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
/// The studio key.
pub(crate) const STUDIO: &str = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc";

/// Runs nothing: a turn stays as it began.
struct Idle;

impl Harness for Idle {
    fn run(&self, _: TurnStart, _: Arc<dyn RunCore>, mut abort: Abort) -> BoxFuture<'_, RunEnd> {
        Box::pin(async move {
            abort.aborted().await;
            RunEnd::Released(CoreError::TurnCancelled)
        })
    }
}

impl WorkspaceReports for Idle {
    fn backends(&self) -> BoxFuture<'_, BackendReport> {
        let report = BackendReport {
            preference: "auto".to_owned(),
            backend: Some("virtual"),
            isolation: Some("process"),
            reason: "the test's".to_owned(),
            probes: vec![ProbeReport {
                name: "virtual",
                isolation: "process",
                probed: Probed::Available { version: "1".to_owned(), partial: vec!["processors".to_owned()] },
            }],
        };
        Box::pin(std::future::ready(report))
    }
}

impl Workspaces for Idle {
    fn call(&self, call: WorkspaceCall, _: Abort) -> BoxFuture<'_, WorkspaceAnswer> {
        assert!(!call.input.as_str().contains("panic"), "a secret of the inside");
        let outcome = if call.input.as_str().contains("the workspace dies") {
            WorkspaceOutcome::Uncertain { message: "the workspace ended before it answered".to_owned() }
        } else {
            WorkspaceOutcome::Done(ToolOutcome::Completed { output: call.input })
        };
        Box::pin(async { WorkspaceAnswer { outcome, events: vec![] } })
    }
}

impl WorkspaceRemoval for Idle {
    fn remove<'a>(&'a self, _: &'a WorkspaceKey) -> BoxFuture<'a, Result<(), RemovalError>> {
        Box::pin(async { Ok(()) })
    }
}

impl TrustedIssuers for Idle {
    fn identifiers(&self) -> Vec<String> {
        Vec::new()
    }

    fn grantable(&self) -> Vec<TokenScope> {
        Vec::new()
    }

    fn person<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Person, TokenRefusal>> {
        Box::pin(async { Err(TokenRefusal::Invalid("no issuer is trusted".to_owned())) })
    }
}

impl ModelVault for Idle {
    fn put(&self, _: ModelPut) -> BoxFuture<'_, Result<(), KeysError>> {
        Box::pin(async { Ok(()) })
    }

    fn opens(&self) -> BoxFuture<'_, Result<(), KeysError>> {
        Box::pin(async { Ok(()) })
    }
}

/// A running server.
pub(crate) struct World {
    pub(crate) addr: SocketAddr,
    pub(crate) live: Live,
    pub(crate) store: Store,
    pub(crate) stages: StageHandle,
    pub(crate) serving: JoinHandle<()>,
    _home: TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(Limits::default()).await
    }

    pub(crate) async fn with(limits: Limits) -> Self {
        Self::running(Arc::new(Idle), SchedulerConfig::default(), limits).await
    }

    /// A server whose turns this harness runs.
    pub(crate) async fn running(harness: Arc<dyn Harness>, config: SchedulerConfig, limits: Limits) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", home.path().join("test.db").display()).parse().expect("a URL");
        let db = Arc::new(Db::open(&url, &Default::default()).await.expect("a database"));
        let fresh = NewTenant {
            id: TenantId::from_trusted("tn_0123456789abcdefghjkmnpqrs"),
            name: "test".to_owned(),
            created_at: Millis(0),
        };
        let store = Store::open(db, &fresh).await.expect("a tenant");
        for (id, role, key) in
            [("app", "application", APPLICATION), ("admin", "management", MANAGEMENT), ("studio", "studio", STUDIO)]
        {
            let row = PrincipalRow {
                id: id.to_owned(),
                role: role.to_owned(),
                token_hash: sha256_hex(key.as_bytes()),
                created_at: Millis(0),
            };
            store.principal_put(&row).await.expect("a key");
        }
        let live = Live::default();
        let committer = Committer::new(store.clone(), live.clone());
        let worker = WorkerId::from_trusted("worker-test-1-00000000");
        let scheduler = Scheduler::new(committer, harness, worker, config);
        let app = App::new(Parts {
            store: store.clone(),
            live: live.clone(),
            scheduler,
            workspaces: Arc::new(Idle),
            removal: Arc::new(Idle),
            blobs: Arc::new(MemoryBlobs::default()),
            backends: Arc::new(Idle),
            vault: Arc::new(Idle),
            issuers: Arc::new(Idle),
            catalogue: vec![],
            host: Host { id: "host_0123456789abcdefghjkmnpqrs".to_owned(), path: "/home/test".to_owned() },
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let config = ServerConfig {
            allowed_hosts: loopback_hosts(addr.port(), &[]),
            public_url: None,
            version: "0.0.0".to_owned(),
            limits,
        };
        let (handle, watch) = stages();
        let serving = tokio::spawn(async move { serve(listener, app, config, watch).await.expect("it serves") });
        Self { addr, live, store, stages: handle, serving, _home: home }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.addr).await
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: Option<&str>) -> Answer {
        let mut client = self.client().await;
        client.send(method, target, headers, body.map(str::as_bytes)).await;
        client.answer().await
    }

    /// One request with this key, under the newest protocol.
    pub(crate) async fn call(&self, key: &str, method: &str, target: &str, body: Option<&str>) -> Answer {
        let bearer = format!("Bearer {key}");
        let mut headers = vec![("nylorun-protocol", "10"), ("authorization", bearer.as_str())];
        if body.is_some() {
            headers.push(("content-type", "application/json"));
        }
        self.ask(method, target, &headers, body).await
    }

    /// Saves the agent `helper` and opens these sessions, which belong to `ann`.
    pub(crate) async fn open_sessions(&self, ids: &[&str]) {
        let manifest = manifest_body("helper");
        let saved = self.call(APPLICATION, "PUT", "/v1/agents/helper", Some(&manifest)).await;
        assert_eq!(saved.status, 200, "{}", saved.body);
        for id in ids {
            let body = r#"{"requestId":"r","agentId":"helper","ownerUserId":"ann","sandbox":{}}"#;
            let opened = self.call(APPLICATION, "PUT", &format!("/v1/sessions/{id}"), Some(body)).await;
            assert_eq!(opened.status, 200, "{}", opened.body);
        }
    }

    /// Ends the server and waits for it.
    pub(crate) async fn stop(self) {
        self.stages.advance(nylorun_server::Stage::Closing);
        crate::client::within(self.serving).await.expect("it ended well");
    }
}

/// A body that saves an agent of this id.
pub(crate) fn manifest_body(id: &str) -> String {
    let manifest = format!(r#"{{"manifestSchemaVersion":5,"id":"{id}","capabilities":[]}}"#);
    format!(r#"{{"requestId":"r","implementationVersion":"1","manifest":{manifest}}}"#)
}

/// Limits with short times.
pub(crate) fn hasty() -> Limits {
    Limits {
        head: Duration::from_millis(300),
        body: Duration::from_millis(300),
        grace: Duration::from_secs(5),
        ..Limits::default()
    }
}

/// `value` of a JSON text.
pub(crate) fn json(text: &str) -> nylorun_domain::json::Value {
    Json::parse(text).expect("JSON").value()
}
