//! A run with fakes around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nylorun_domain::id::{AgentId, CallId, SessionId, TenantId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::manifest::{AgentManifest, pin_workspace};
use nylorun_domain::model::{Candidate, FinishReason, ModelOutcome, ModelRef, OutputPart, ToolCall, ToolInput};
use nylorun_domain::transcript::Input;
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceSpec};
use nylorun_harness::{Checks, HarnessClient, HarnessClientConfig, HarnessServer, HarnessServerConfig, InProcess};
use nylorun_ports::abort::{AbortHandle, abort_pair};
use nylorun_ports::frames::frame_ports;
use nylorun_ports::run::{
    CoreError, Harness, RecordedOutcome, RunEnd, RunWorkspace, SegmentInput, TurnStart, YieldAfter,
};
use tokio::task::JoinHandle;

use crate::fake_blobs::FakeBlobs;
use crate::fake_core::FakeCore;
use crate::fake_gates::{FakeModel, FakeWorkspaces, Script};
use crate::fake_http_tools::FakeHttpTools;

/// How a run's harness is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ByReference,
    /// By the Harness API: every frame is printed, checked and read.
    ThroughJson,
}

/// Runs each of these bodies both ways.
macro_rules! both_ways {
    ($($body:ident)+) => {
        mod by_reference {
            $(#[tokio::test]
            async fn $body() {
                super::$body(crate::support::Way::ByReference).await;
            })+
        }

        mod through_json {
            $(#[tokio::test]
            async fn $body() {
                super::$body(crate::support::Way::ThroughJson).await;
            })+
        }
    };
}
pub(crate) use both_ways;

/// The fakes of one run.
pub(crate) struct World {
    pub(crate) way: Way,
    pub(crate) core: Arc<FakeCore>,
    pub(crate) model: Arc<FakeModel>,
    pub(crate) workspaces: Arc<FakeWorkspaces>,
    pub(crate) http_tools: Arc<FakeHttpTools>,
    pub(crate) blobs: Arc<FakeBlobs>,
    pub(crate) abort: AbortHandle,
    run: Option<JoinHandle<RunEnd>>,
}

impl World {
    /// Before its run, with this model.
    pub(crate) fn new(way: Way, script: Vec<Script>) -> Self {
        Self {
            way,
            core: Arc::default(),
            model: Arc::new(FakeModel::new(script)),
            workspaces: Arc::new(FakeWorkspaces::new()),
            http_tools: Arc::new(FakeHttpTools::new()),
            blobs: Arc::default(),
            abort: abort_pair().0,
            run: None,
        }
    }

    /// Begins the run.
    pub(crate) fn begin(&mut self, start: TurnStart) {
        let (handle, abort) = abort_pair();
        self.abort = handle;
        let harness = InProcess::new(
            Arc::<FakeModel>::clone(&self.model),
            Arc::<FakeWorkspaces>::clone(&self.workspaces),
            Arc::<FakeHttpTools>::clone(&self.http_tools),
            Arc::<FakeBlobs>::clone(&self.blobs),
        );
        let core = Arc::<FakeCore>::clone(&self.core);
        let way = self.way;
        self.run = Some(tokio::spawn(async move {
            match way {
                Way::ByReference => harness.run(start, core, abort).await,
                Way::ThroughJson => {
                    let (server, _client) = connected(Arc::new(harness));
                    server.ready().await;
                    server.run(start, core, abort).await
                }
            }
        }));
    }

    /// How the run ended.
    pub(crate) async fn end(&mut self) -> RunEnd {
        self.run.take().expect("the run began").await.expect("the run does not panic")
    }

    /// Holds what was committed against `expected`, as it is by reference: `reports -> next`, one line a commit. Frames
    /// bring each of a line's parts as a commit of its own.
    pub(crate) fn assert_lines<S: AsRef<str>>(&self, expected: &[S]) {
        let expected: Vec<&str> = expected.iter().map(AsRef::as_ref).collect();
        match self.way {
            Way::ByReference => assert_eq!(self.core.lines(), expected),
            Way::ThroughJson => {
                let parts: Vec<String> = expected.iter().flat_map(|line| split(line)).collect();
                assert_eq!(self.core.lines(), parts);
            }
        }
    }

    /// Holds that this was committed, as it is by reference.
    pub(crate) fn assert_has(&self, line: &str) {
        let lines = self.core.lines();
        let parts = match self.way {
            Way::ByReference => vec![line.to_owned()],
            Way::ThroughJson => split(line),
        };
        assert!(parts.iter().all(|part| lines.contains(part)), "{lines:?}");
    }

    /// Fails the commit that by reference reads so.
    pub(crate) fn fail(&self, line: &str, error: CoreError) {
        let line = match self.way {
            Way::ByReference => line.to_owned(),
            Way::ThroughJson => split(line).pop().expect("a line has a part"),
        };
        self.core.fail(&line, error);
    }

    /// Drops the run where it stands.
    pub(crate) fn abandon(&mut self) {
        self.run.take().expect("the run began").abort();
    }

    /// Runs a turn with this model to its end.
    pub(crate) async fn play(way: Way, script: Vec<Script>) -> (Self, RunEnd) {
        let mut world = Self::new(way, script);
        world.begin(start(Vec::new()));
        let end = world.end().await;
        (world, end)
    }
}

/// A commit's line in the parts that frames bring: each outcome, then each wanted effect or the output.
fn split(line: &str) -> Vec<String> {
    let (reports, next) = line.split_once("-> ").expect("a line has an arrow");
    let reports = reports.trim();
    let mut parts: Vec<String> = Vec::new();
    if !reports.is_empty() {
        parts.extend(reports.split(" + ").map(|report| format!("{report} -> nothing")));
    }
    let is_output =
        ["completed ", "failed ", "uncertain", "yielded", "paused "].iter().any(|word| next.starts_with(word));
    match next {
        "nothing" => {}
        output if is_output => parts.push(format!("-> {output}")),
        intents => parts.extend(intents.split(" + ").map(|intent| format!("-> {intent}"))),
    }
    parts
}

/// A server and a harness that is connected to it, over frames of checked JSON.
pub(crate) fn connected(harness: Arc<dyn Harness>) -> (HarnessServer, HarnessClient) {
    let server = HarnessServer::new(HarnessServerConfig::new(tenant(), fresh_id));
    let (core, port) = frame_ports();
    server.connect(core, Checks::On);
    let client = HarnessClient::start(port, harness, client_config());
    (server, client)
}

pub(crate) fn client_config() -> HarnessClientConfig {
    HarnessClientConfig { name: "test".into(), version: "0".into(), max_runs: None, checks: Checks::On }
}

pub(crate) fn tenant() -> TenantId {
    TenantId::from_trusted("tn_1")
}

/// Ids of runs: `run-1`, `run-2`, and so on.
pub(crate) fn fresh_id() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    format!("run-{}", LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

/// A turn of an agent that has the six workspace tools, the HTTP tool `order`, and `remote`, which nothing carries out.
pub(crate) fn start(outcomes: Vec<RecordedOutcome>) -> TurnStart {
    let session_id = SessionId::from_trusted("session");
    TurnStart {
        agent_id: AgentId::from_trusted("agent"),
        turn_id: TurnId::from_trusted("turn"),
        segment: 0,
        epoch: 7,
        manifest: Arc::new(agent()),
        input: SegmentInput::Message(Input::Content("Hello".into())),
        yield_after: YieldAfter::default(),
        transcript: std::sync::Arc::new(Vec::new()),
        outcomes,
        workspace: Some(RunWorkspace {
            owner: session_id.clone(),
            key: WorkspaceKey::of_session(&tenant(), &session_id),
            spec: spec(),
        }),
        session_id,
    }
}

fn spec() -> WorkspaceSpec {
    WorkspaceSpec { image: None, cpus: 1, memory_mib: 512, network_allow: Vec::new(), idle_ms: 60_000 }
}

fn agent() -> AgentManifest {
    let manifest = r#"{"manifestSchemaVersion":5,"id":"agent","capabilities":[{"id":"main","type":"agent","tools":[
        {"name":"order","inputSchema":{},"http":{"url":"https://example.com/orders","timeoutMs":1000}},
        {"name":"remote","description":"Helps","inputSchema":{"type":"object","properties":{"task":{"type":"string",
         "minLength":1}},"required":["task"],"additionalProperties":false},"agent":{"manifestSchemaVersion":5,
         "id":"remote","description":"Helps","capabilities":[{"id":"c","type":"agent"}]}}]}]}"#;
    let saved = AgentManifest::check_saved(&Json::parse(manifest).unwrap()).unwrap();
    pin_workspace(&saved, &spec()).unwrap()
}

fn outcome(parts: Vec<OutputPart>) -> ModelOutcome {
    ModelOutcome::Completed(Candidate {
        parts,
        finish: FinishReason::Stop,
        usage: None,
        model: ModelRef { provider: "fixture".to_owned(), model: "fixture".to_owned() },
        size: None,
        window: None,
    })
}

/// A model's answer of this text.
pub(crate) fn text(text: &str) -> ModelOutcome {
    outcome(vec![OutputPart::Text(text.into())])
}

/// The model says this.
pub(crate) fn says(answered: &str) -> Script {
    Script::Gives(text(answered))
}

/// The model wants these tools, as `name input`.
pub(crate) fn wants(calls: &[&str]) -> Script {
    let calls = calls.iter().map(|call| {
        let (name, input) = call.split_once(' ').unwrap();
        let input = ToolInput::Json(Json::parse(input).unwrap());
        OutputPart::ToolCall(ToolCall { call_id: CallId::from_trusted(""), name: name.to_owned(), input })
    });
    Script::Gives(outcome(calls.collect()))
}
