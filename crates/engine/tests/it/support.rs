//! An agent, answers and outcomes for tests.

use std::sync::Arc;

use nylorun_domain::checkpoint::Answer;
use nylorun_domain::effect::{Effect, EffectOutcome, EffectRequest, ToolRequest};
use nylorun_domain::id::{AgentId, CallId, SessionId, TurnId};
use nylorun_domain::json::{Json, Text};
use nylorun_domain::manifest::{
    AgentManifest, Approval, Capability, CapabilityKind, HttpMethod, HttpTarget, ManifestVersion, McpServer,
    McpToolSetting, McpTransport, Tool, ToolExecutor,
};
use nylorun_domain::model::{
    Candidate, FinishReason, ModelFailure, ModelFailureCode, ModelOutcome, ModelRef, OutputPart, Prompt, PromptItem,
    ToolCall, ToolInput,
};
use nylorun_domain::segment::{SegmentInput, TurnEnd, TurnOutput};
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::transcript::{Entry, Input, Line};
use nylorun_engine::{Run, Start};

/// An agent with the workspace tools `bash` and `read`, and `remote`, which nothing carries out.
pub(crate) fn agent() -> AgentManifest {
    let tool = |name: &str, executor| Tool {
        name: name.to_owned(),
        description: Some(format!("{name}s")),
        input_schema: Json::from_trusted(r#"{"type":"object"}"#),
        output_schema: None,
        executor,
    };
    let capability = |id: &str, instructions: &[&str], tools| Capability {
        id: id.to_owned(),
        kind: CapabilityKind::Agent,
        name: None,
        description: None,
        metadata: None,
        instructions: instructions.iter().map(|&text| text.to_owned()).collect(),
        skills: Vec::new(),
        tools,
        mcp_servers: Vec::new(),
        sandbox: None,
    };
    AgentManifest {
        document: Json::null(),
        hash: "0123".to_owned(),
        version: ManifestVersion::V5,
        id: AgentId::from_trusted("agent"),
        name: None,
        description: None,
        metadata: None,
        output_schema: None,
        capabilities: vec![
            capability("main", &["Be brief.", "Be right."], vec![tool("remote", ToolExecutor::None)]),
            capability(
                "sandbox",
                &["Work in /workspace."],
                vec![
                    tool("bash", ToolExecutor::Workspace(WorkspaceTool::Bash)),
                    tool("read", ToolExecutor::Workspace(WorkspaceTool::Read)),
                ],
            ),
        ],
    }
}

/// That agent with `deploy`, each call of which a person approves, and an MCP server whose tools they approve too.
pub(crate) fn careful_agent() -> AgentManifest {
    let mut agent = agent();
    let http = HttpTarget {
        url: "https://example.com/deploy".to_owned(),
        method: HttpMethod::Post,
        credential: None,
        timeout_ms: 1_000,
        approval: Approval::Always,
    };
    let server = McpServer {
        name: "files".to_owned(),
        transport: McpTransport::StreamableHttp,
        url: "https://example.com/mcp".to_owned(),
        headers: Vec::new(),
        approval: Some(Approval::Always),
        deferred: None,
        tools: vec![
            ("list".to_owned(), McpToolSetting { approval: Some(Approval::Never), ..McpToolSetting::default() }),
            ("drop".to_owned(), McpToolSetting { enabled: Some(false), ..McpToolSetting::default() }),
        ],
    };
    agent.capabilities[0].tools.push(Tool {
        name: "deploy".to_owned(),
        description: None,
        input_schema: Json::from_trusted("{}"),
        output_schema: None,
        executor: ToolExecutor::Http(http),
    });
    agent.capabilities[0].mcp_servers.push(server);
    agent
}

/// The start of a turn of the careful agent.
pub(crate) fn careful(turn: &str, transcript: Vec<Entry>) -> Start {
    Start { manifest: Arc::new(careful_agent()), ..start(turn, transcript) }
}

/// The start of the segment after one that ended so, and its transcript.
pub(crate) fn after(start: &Start, output: &TurnOutput, answers: Vec<Answer>) -> Start {
    let (TurnEnd::Yielded { state } | TurnEnd::Paused { state, .. }) = &output.end else { panic!("{output:?}") };
    let mut transcript = (*start.transcript).clone();
    output.edits.iter().cloned().for_each(|edit| edit.apply(&mut transcript).unwrap());
    Start {
        segment: start.segment + 1,
        input: SegmentInput::Resume { state: state.clone(), answers },
        transcript: Arc::new(transcript),
        ..start.clone()
    }
}

/// The start of a turn of that agent.
pub(crate) fn start(turn: &str, transcript: Vec<Entry>) -> Start {
    Start {
        session_id: SessionId::from_trusted("session"),
        agent_id: AgentId::from_trusted("agent"),
        turn_id: TurnId::from_trusted(turn),
        segment: 0,
        manifest: Arc::new(agent()),
        input: SegmentInput::Message(Input::Content("Hello".into())),
        transcript: Arc::new(transcript.into_iter().map(Line::from).collect()),
    }
}

pub(crate) fn candidate(parts: Vec<OutputPart>) -> Candidate {
    Candidate {
        parts,
        finish: FinishReason::Stop,
        usage: None,
        model: ModelRef { provider: "fixture".to_owned(), model: "fixture".to_owned() },
        size: None,
        window: None,
    }
}

pub(crate) fn text(text: &str) -> OutputPart {
    OutputPart::Text(Text::from(text))
}

pub(crate) fn call(id: &str, name: &str, input: &str) -> OutputPart {
    let input = Json::parse(input).map_or_else(|_| ToolInput::Malformed(input.into()), ToolInput::Json);
    OutputPart::ToolCall(ToolCall { call_id: CallId::from_trusted(id), name: name.to_owned(), input })
}

pub(crate) fn answer(parts: Vec<OutputPart>) -> EffectOutcome {
    EffectOutcome::Model(ModelOutcome::Completed(candidate(parts)))
}

pub(crate) fn failure(code: ModelFailureCode) -> EffectOutcome {
    EffectOutcome::Model(ModelOutcome::Failed(ModelFailure {
        code,
        message: "no".to_owned(),
        retryable: false,
        usage: None,
        model: None,
    }))
}

pub(crate) fn done(output: &str) -> ToolOutcome {
    ToolOutcome::Completed { output: Json::parse(output).unwrap() }
}

/// The one effect that the run wants.
pub(crate) fn only(run: &mut Run) -> Effect {
    let wants = run.wants();
    assert_eq!(wants.len(), 1, "{wants:?}");
    wants.into_iter().next().unwrap()
}

pub(crate) fn prompt(effect: &Effect) -> &Prompt {
    match &effect.request {
        EffectRequest::Model(prompt) | EffectRequest::Summary(prompt) => prompt,
        EffectRequest::Tool(request) => panic!("{request:?}"),
    }
}

/// The conversation that the model is shown.
pub(crate) fn items(effect: &Effect) -> Vec<PromptItem> {
    prompt(effect).items().cloned().collect()
}

pub(crate) fn tool(effect: &Effect) -> &ToolRequest {
    match &effect.request {
        EffectRequest::Tool(request) => request,
        EffectRequest::Model(prompt) | EffectRequest::Summary(prompt) => panic!("{prompt:?}"),
    }
}
