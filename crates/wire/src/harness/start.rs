//! What a run starts from (engine a.3, b.1).

use std::collections::BTreeMap;

use nylorun_domain::check::check;
use nylorun_domain::checkpoint::{Answer, State};
use nylorun_domain::id::{AgentId, SessionId, TurnId};
use nylorun_domain::json::Node;
use nylorun_domain::manifest::{AgentManifest, read_sandbox, sandbox_json};
use nylorun_domain::segment::{RecordedOutcome, SegmentInput, YieldAfter};
use nylorun_domain::transcript::Input;
use nylorun_domain::workspace::WorkspaceSpec;

use super::shape::{Fields, JsonObject, Malformed, Member as _, Shape, shapes, valued, words};
use crate::checkpoint::{answer_from_node, answer_to_value, state_from_node, state_to_value};
use crate::transcript::{input_from_node, input_to_value};
use crate::writer::Object;

/// The version of [`Checkpoint`].
const CHECKPOINT_VERSION: i64 = 1;

shapes! {
    /// What a run starts from. With the outcomes it fully determines what follows.
    TurnStart {
        /// What begins the segment.
        kind: StartKind = "type",
        /// The engines that made the checkpoint. A harness that runs others refuses the run.
        engine: Engines = "engine",
        /// The turn's manifest.
        manifest: JsonObject = "manifest",
        /// The immutable start of the segment.
        checkpoint: Checkpoint = "checkpoint",
        /// Tools that were discovered for the session.
        session_tools: Option<Vec<JsonObject>> = "sessionTools",
        /// What the segment's effects gave so far.
        outcomes: Vec<RecordedOutcome> = "outcomes",
        /// Where the model's history is to be read from.
        transcript: TranscriptAt = "transcript",
        /// How the run is to behave.
        options: RunOptions = "options",
        /// Where its effects go.
        routing: RunRouting = "routing",
    }

    /// The versions of the engines.
    Engines {
        /// Of agents.
        agent: String = "agent",
        /// Of flows.
        flow: String = "flow",
    }

    /// Where a transcript stands.
    TranscriptAt {
        /// `-1` when it is empty.
        cursor: i64 = "cursor",
    }

    /// How a run is to behave.
    RunOptions {
        /// After how much it yields.
        yield_after: Option<YieldLimits> = "yieldAfter",
        /// The limits of flows.
        flow_limits: Option<JsonObject> = "flowLimits",
        /// Whether the fixture model answers. The gate of this build finds out itself: `false` says nothing.
        fixture_model: bool = "fixtureModel",
    }

    /// After how much a segment yields; what is left out has no limit.
    YieldLimits {
        /// Model calls.
        steps: Option<u32> = "steps",
        /// Milliseconds.
        ms: Option<u64> = "ms",
    }

    /// Where a run's effects go.
    RunRouting {
        /// The manifest of the session's root agent.
        root_manifest: JsonObject = "rootManifest",
        /// The tools that were discovered for the session.
        mcp_snapshot: Option<JsonObject> = "mcpSnapshot",
        /// The session's workspace.
        sandbox: Option<RunSandbox> = "sandbox",
    }

    /// A run's workspace.
    RunSandbox {
        /// The session that owns it.
        owner_id: SessionId = "ownerId",
        /// The environment that it belongs to.
        sandbox_id: Option<String> = "sandboxId",
        /// What it is made with.
        spec: Option<WorkspaceSpec> = "spec",
        /// Variables of its commands. Never a secret.
        environment: Option<BTreeMap<String, String>> = "environment",
    }
}

words! {
    /// What begins a segment.
    StartKind {
        /// A message, or the end of the segment before.
        Turn = "turn.start",
        /// An answer to what was asked.
        Answer = "approval.answer",
    }
}

impl Engines {
    /// The engines of this build. Another implementation's cannot go on from its checkpoints.
    pub fn ours() -> Self {
        Self { agent: "nylorun-1".to_owned(), flow: "none".to_owned() }
    }
}

impl YieldLimits {
    /// The budget, with the usual limits where none is named.
    pub fn or_default(limits: Option<Self>) -> YieldAfter {
        let usual = YieldAfter::default();
        let Some(Self { steps, ms }) = limits else { return usual };
        YieldAfter { steps: steps.unwrap_or(usual.steps), ms: ms.unwrap_or(usual.ms) }
    }
}

/// `{version: 1, engineVersion, manifestHash, sessionId, agentId, turnId, segment, input, state?}`, where `input` is
/// `{kind: "message", message}` or `{kind: "continue", answers}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The version of the agent engine.
    pub engine_version: String,
    /// The hash of the turn's manifest.
    pub manifest_hash: String,
    /// The session.
    pub session_id: SessionId,
    /// Its agent.
    pub agent_id: AgentId,
    /// The turn.
    pub turn_id: TurnId,
    /// The segment, from 0.
    pub segment: u32,
    /// What begins the segment, with the state that the one before left.
    pub input: SegmentInput,
}

impl Shape for Checkpoint {
    fn write(&self, out: &mut String) {
        let mut object = Object::open(out);
        object.int("version", CHECKPOINT_VERSION);
        object.str("engineVersion", &self.engine_version);
        object.str("manifestHash", &self.manifest_hash);
        self.session_id.put(&mut object, "sessionId");
        self.agent_id.put(&mut object, "agentId");
        self.turn_id.put(&mut object, "turnId");
        self.segment.put(&mut object, "segment");
        match &self.input {
            SegmentInput::Message(input) => object.object("input", |object| {
                object.str("kind", "message");
                input.put(object, "message");
            }),
            SegmentInput::Resume { state, answers } => {
                object.object("input", |object| {
                    object.str("kind", "continue");
                    answers.put(object, "answers");
                });
                state.put(&mut object, "state");
            }
        }
        object.close();
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let mut fields = Fields::of(text)?;
        if fields.get::<i64>("version")? != CHECKPOINT_VERSION {
            return Err(Malformed::new(format!("must be {CHECKPOINT_VERSION}")).within("version"));
        }
        let input = fields.take("input").ok_or_else(|| Malformed::new("is missing").within("input"))?;
        let input = read_beginning(input).map_err(|error| error.within("input"))?;
        let read = Self {
            engine_version: fields.get("engineVersion")?,
            manifest_hash: fields.get("manifestHash")?,
            session_id: fields.get("sessionId")?,
            agent_id: fields.get("agentId")?,
            turn_id: fields.get("turnId")?,
            segment: fields.get("segment")?,
            input: match input {
                BeginsWith::Message(input) => SegmentInput::Message(input),
                BeginsWith::Continue(answers) => SegmentInput::Resume { state: fields.get("state")?, answers },
            },
        };
        fields.end().map(|()| read)
    }
}

enum BeginsWith {
    Message(Input),
    Continue(Vec<Answer>),
}

fn read_beginning(text: &str) -> Result<BeginsWith, Malformed> {
    let mut fields = Fields::of(text)?;
    let read = match fields.get::<String>("kind")?.as_str() {
        "message" => BeginsWith::Message(fields.get("message")?),
        "continue" => BeginsWith::Continue(fields.get("answers")?),
        word => return Err(Malformed::new(format!("may not be {word:?}")).within("kind")),
    };
    fields.end().map(|()| read)
}

valued! {
    State: state_to_value, state_from_node;
    Answer: answer_to_value, answer_from_node;
    Input: input_to_value, input_from_node;
    WorkspaceSpec: sandbox_json, read_spec;
}

fn read_spec(node: Node<'_>) -> Result<WorkspaceSpec, String> {
    check(&node.to_value(), read_sandbox).map_err(|problems| problems.to_json_text())
}

/// A manifest of a [`TurnStart`], read as the session's copy that it is.
///
/// # Errors
/// It is no manifest.
pub fn read_manifest(document: &JsonObject) -> Result<AgentManifest, Malformed> {
    AgentManifest::read_pinned(&document.0)
        .map_err(|problems| Malformed::new(problems.to_json_text()).within("manifest"))
}
