//! A run with fakes around it.

use std::sync::Arc;

use nylorun_domain::id::{AgentId, CallId, SessionId, TenantId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::manifest::{
    AgentManifest, Approval, Capability, CapabilityKind, HttpMethod, HttpTarget, ManifestVersion, Tool, ToolExecutor,
};
use nylorun_domain::model::{Candidate, FinishReason, ModelOutcome, ModelRef, OutputPart, ToolCall, ToolInput};
use nylorun_domain::tool::WorkspaceTool;
use nylorun_domain::transcript::Input;
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceSpec};
use nylorun_harness::InProcess;
use nylorun_ports::abort::{AbortHandle, abort_pair};
use nylorun_ports::run::{Harness, RecordedOutcome, RunEnd, RunWorkspace, SegmentInput, TurnStart, YieldAfter};
use tokio::task::JoinHandle;

use crate::fake_blobs::FakeBlobs;
use crate::fake_core::FakeCore;
use crate::fake_gates::{FakeModel, FakeWorkspaces, Script};
use crate::fake_http_tools::FakeHttpTools;

/// The fakes of one run.
pub(crate) struct World {
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
    pub(crate) fn new(script: Vec<Script>) -> Self {
        Self {
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
        self.run = Some(tokio::spawn(async move { harness.run(start, core, abort).await }));
    }

    /// How the run ended.
    pub(crate) async fn end(&mut self) -> RunEnd {
        self.run.take().expect("the run began").await.expect("the run does not panic")
    }

    /// Drops the run where it stands.
    pub(crate) fn abandon(&mut self) {
        self.run.take().expect("the run began").abort();
    }

    /// Runs a turn with this model to its end.
    pub(crate) async fn play(script: Vec<Script>) -> (Self, RunEnd) {
        let mut world = Self::new(script);
        world.begin(start(Vec::new()));
        let end = world.end().await;
        (world, end)
    }
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
            key: WorkspaceKey::of_session(&TenantId::from_trusted("tn_1"), &session_id),
            spec: spec(),
        }),
        session_id,
    }
}

fn spec() -> WorkspaceSpec {
    WorkspaceSpec { image: None, cpus: 1, memory_mib: 512, network_allow: Vec::new(), idle_ms: 60_000 }
}

fn agent() -> AgentManifest {
    let tool = |name: &str, executor| Tool {
        name: name.to_owned(),
        description: None,
        input_schema: Json::from_trusted("{}"),
        output_schema: None,
        executor,
    };
    let workspace_tools = WorkspaceTool::ALL.iter().map(|one| tool(one.as_str(), ToolExecutor::Workspace(*one)));
    AgentManifest {
        document: Json::null(),
        hash: "0123".to_owned(),
        version: ManifestVersion::V5,
        id: AgentId::from_trusted("agent"),
        name: None,
        description: None,
        metadata: None,
        output_schema: None,
        capabilities: vec![Capability {
            id: "main".to_owned(),
            kind: CapabilityKind::Agent,
            name: None,
            description: None,
            metadata: None,
            instructions: Vec::new(),
            skills: Vec::new(),
            tools: workspace_tools
                .chain([tool("order", ToolExecutor::Http(endpoint())), tool("remote", ToolExecutor::None)])
                .collect(),
            mcp_servers: Vec::new(),
            sandbox: Some(spec()),
        }],
    }
}

fn endpoint() -> HttpTarget {
    HttpTarget {
        url: "https://example.com/orders".to_owned(),
        method: HttpMethod::Post,
        credential: None,
        timeout_ms: 1_000,
        approval: Approval::Never,
    }
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
