//! Effects: the journaled interactions of a turn with the outside (engine b.2).

use std::sync::Arc;

use crate::compaction::Compacted;
use crate::id::{CallId, EffectId, InvocationId};
use crate::json::{Json, Value};
use crate::model::{ModelOutcome, Prompt, words};
use crate::tool::{SkillTool, ToolOutcome, WorkspaceTool};
use crate::transcript::Input;

words! {
    /// Kinds of effect.
    EffectKind {
        /// A model call.
        Model = "model",
        /// A tool call.
        Tool = "tool",
        /// A marker: work handed to an agent used as a tool began or ended.
        Delegation = "delegation",
        /// A turn of a linked session.
        Agent = "agent",
        /// A marker: the turn read messages before a model call.
        Steer = "steer",
    }
}

words! {
    /// Where an effect stands in the journal (engine b.2).
    EffectStatus {
        /// Over the concurrency cap.
        Queued = "queued",
        /// Linked child work started.
        Pending = "pending",
        /// Intent recorded; something may be running.
        Invoking = "invoking",
        /// Outcome recorded.
        Completed = "completed",
        /// It may or may not have happened.
        Uncertain = "uncertain",
        /// Given up before it ran.
        Cancelled = "cancelled",
    }
}

/// What the engine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// `<turnId>:<segment>:<kind>:<identity>`.
    pub id: EffectId,
    /// The call's own id, the same across replays.
    pub invocation_id: InvocationId,
    /// What to do.
    pub request: EffectRequest,
    /// SHA-256 of the request's canonical form: the same id must always mean the same request (engine a.5).
    pub request_hash: String,
}

/// What an effect does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectRequest {
    /// Asks the model. The prompt never enters the journal: its hash alone binds it (engine a.11, rule 2).
    Model(Arc<Prompt>),
    /// Asks the model for a summary of older history, which nobody but the agent reads.
    Summary(Arc<Prompt>),
    /// Calls a tool.
    Tool(ToolRequest),
}

impl EffectRequest {
    /// The effect's kind.
    pub fn kind(&self) -> EffectKind {
        match self {
            Self::Model(_) | Self::Summary(_) => EffectKind::Model,
            Self::Tool(_) => EffectKind::Tool,
        }
    }
}

/// An effect as the journal is asked for it: all but a model's prompt, which only the model gate sees (engine a.11,
/// rule 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The effect.
    pub id: EffectId,
    /// The call's own id.
    pub invocation_id: InvocationId,
    /// What is to be done.
    pub request: IntentRequest,
    /// The hash of the whole request, a model's prompt included.
    pub request_hash: String,
}

/// What an intent is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntentRequest {
    /// A model call.
    Model,
    /// A model call for a summary.
    Summary,
    /// A tool call.
    Tool(ToolRequest),
}

impl Effect {
    /// What the journal is asked for.
    pub fn intent(&self) -> Intent {
        let request = match &self.request {
            EffectRequest::Model(_) => IntentRequest::Model,
            EffectRequest::Summary(_) => IntentRequest::Summary,
            EffectRequest::Tool(request) => IntentRequest::Tool(request.clone()),
        };
        let (id, invocation_id) = (self.id.clone(), self.invocation_id.clone());
        Intent { id, invocation_id, request, request_hash: self.request_hash.clone() }
    }
}

impl IntentRequest {
    /// The effect's kind.
    pub fn kind(&self) -> EffectKind {
        match self {
            Self::Model | Self::Summary => EffectKind::Model,
            Self::Tool(_) => EffectKind::Tool,
        }
    }
}

/// One tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRequest {
    /// The step of the turn that calls it, from 1.
    pub step: u32,
    /// The call as the model named it.
    pub call_id: CallId,
    /// The tool's name.
    pub tool_name: String,
    /// The capability that declares it.
    pub capability_id: String,
    /// Its input.
    pub input: Json,
    /// Where it runs.
    pub target: ToolTarget,
    /// The answer to what the tool asked, when it asked.
    pub resume: Option<Json>,
}

/// Where a tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolTarget {
    /// In the session's workspace.
    Workspace(WorkspaceTool),
    /// At the HTTP endpoint that the manifest names for the tool, called by the tool gate (engine e.4).
    Http,
    /// In the runtime, which reads the files of the agent's skills.
    Skill(SkillTool),
    /// Nowhere yet: the call completes as failed `tool.unavailable` (decisions, Manifests).
    Unavailable,
    /// Nowhere: the agent has no tool of this name. The call completes as failed `tool.unknown`.
    UnknownTool,
    /// Nowhere: the model's input is no JSON. The call completes as failed `tool.invalid-arguments`.
    MalformedInput,
    /// Nowhere: a person did not approve the call. It completes as failed `denied`.
    Denied,
}

words! {
    /// Where a tool call runs, as the journal remembers it: it decides what may run again.
    RunsAt {
        /// In the session's workspace.
        Workspace = "workspace",
        /// At a gate, which holds the call by its effect's id and never sends it twice (trust 5).
        Gate = "gate",
        /// In the runtime itself, which only reads: the skill tools.
        Runtime = "runtime",
        /// Nowhere: it was refused at its intent.
        Nowhere = "nowhere",
    }
}

impl ToolTarget {
    /// Why the call is refused although the agent may have the tool: what the manifest alone does not tell.
    pub fn refused(self) -> Option<ToolRefusal> {
        match self {
            Self::MalformedInput => Some(ToolRefusal::MalformedInput),
            Self::Denied => Some(ToolRefusal::Denied),
            Self::Workspace(_) | Self::Http | Self::Skill(_) | Self::Unavailable | Self::UnknownTool => None,
        }
    }

    /// Where the call runs.
    pub fn runs_at(self) -> RunsAt {
        match self {
            Self::Workspace(_) => RunsAt::Workspace,
            Self::Http => RunsAt::Gate,
            Self::Skill(_) => RunsAt::Runtime,
            Self::Unavailable | Self::UnknownTool | Self::MalformedInput | Self::Denied => RunsAt::Nowhere,
        }
    }
}

words! {
    /// Why a call is refused that its manifest would let run. It is part of the request: a denied call is another one
    /// than an approved call.
    ToolRefusal {
        /// The model's input is no JSON.
        MalformedInput = "malformed-input",
        /// A person did not approve the call.
        Denied = "denied",
    }
}

impl From<ToolRefusal> for ToolTarget {
    fn from(refusal: ToolRefusal) -> Self {
        match refusal {
            ToolRefusal::MalformedInput => Self::MalformedInput,
            ToolRefusal::Denied => Self::Denied,
        }
    }
}

/// The turn that a tool call belongs to.
#[derive(Clone, Copy, Debug)]
pub struct ToolScope<'a> {
    /// The session.
    pub session_id: &'a str,
    /// The turn.
    pub turn_id: &'a str,
    /// Its segment.
    pub segment: u32,
}

impl ToolRequest {
    /// The `context` of the call's intent: with the input, all that tells two calls of a tool apart (engine b.2).
    pub fn context(&self, scope: ToolScope<'_>, id: &EffectId, invocation_id: &InvocationId) -> Value {
        let ToolScope { session_id, turn_id, segment } = scope;
        let members = [
            ("executionId", Value::from(session_id)),
            ("turnId", Value::from(turn_id)),
            ("stepId", Value::from(format!("{turn_id}_{segment}:{}", self.step))),
            ("callId", Value::from(self.call_id.as_str())),
            ("invocationId", Value::from(invocation_id.as_str())),
            ("idempotencyKey", Value::from(id.as_str())),
        ];
        let resume = self.resume.as_ref().map(|answer| ("resume", answer.value()));
        let refused = self.target.refused().map(|refusal| ("refused", Value::from(refusal.as_str())));
        Value::object(members.into_iter().chain(resume).chain(refused))
    }

    /// What the call is about, if it is one that becomes uncertain when its answer is lost.
    pub fn subject_in_doubt(&self) -> Option<String> {
        match self.target {
            ToolTarget::Workspace(tool) if !tool.is_read_only() => tool.subject(&self.input),
            ToolTarget::Workspace(_)
            | ToolTarget::Http
            | ToolTarget::Skill(_)
            | ToolTarget::Unavailable
            | ToolTarget::UnknownTool
            | ToolTarget::MalformedInput
            | ToolTarget::Denied => None,
        }
    }

    /// The outcome of a call that is never carried out: it is recorded at the call's intent (engine a.10).
    pub fn refusal(&self) -> Option<ToolOutcome> {
        let name = &self.tool_name;
        match self.target {
            ToolTarget::Workspace(_) | ToolTarget::Http | ToolTarget::Skill(_) => None,
            ToolTarget::Unavailable => {
                Some(ToolOutcome::failed("tool.unavailable", format!("Nothing here can run the tool {name}.")))
            }
            ToolTarget::UnknownTool => {
                Some(ToolOutcome::failed("tool.unknown", format!("There is no tool named {name}.")))
            }
            ToolTarget::MalformedInput => Some(ToolOutcome::failed(
                "tool.invalid-arguments",
                format!("The input of {name} is not valid JSON. Call it again with a JSON object."),
            )),
            ToolTarget::Denied => {
                Some(ToolOutcome::failed("denied", format!("A person did not approve this call of {name}.")))
            }
        }
    }
}

/// What an effect gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectOutcome {
    /// A model's.
    Model(ModelOutcome),
    /// A model's, of a summary.
    Summary {
        /// What the model gave.
        outcome: ModelOutcome,
        /// What the last summary of a compaction did to the conversation.
        compacted: Option<Compacted>,
    },
    /// A tool's.
    Tool(ToolOutcome),
    /// A tool asks a person, and is called again with the answer.
    Asked {
        /// What kind of answer it wants, in its own word; never `approval`.
        kind: String,
        /// The question.
        prompt: String,
    },
    /// Messages that the turn read before a model call.
    Steer {
        /// The model call.
        model: EffectId,
        /// The messages, in order.
        inputs: Vec<Input>,
    },
}

/// Whether an effect that was running when its owner died may simply run again (decisions, What may run again).
///
/// The one predicate for takeover, for intent and for shutdown. All else that was running is uncertain. A call that a
/// gate holds is asked for again: the gate answers with what it recorded, or says itself that nobody knows.
pub fn may_run_again(kind: EffectKind, tool: Option<(RunsAt, &str)>) -> bool {
    let is_held = tool.is_some_and(|(runs_at, _)| runs_at == RunsAt::Gate);
    is_held || !may_have_changed(kind, tool)
}

/// Whether an effect that was running may have changed something outside. When its turn ends without its outcome,
/// somebody must look at it.
pub fn may_have_changed(kind: EffectKind, tool: Option<(RunsAt, &str)>) -> bool {
    match (kind, tool) {
        (EffectKind::Model | EffectKind::Steer, _) | (EffectKind::Tool, Some((RunsAt::Runtime, _))) => false,
        (EffectKind::Tool, Some((RunsAt::Workspace | RunsAt::Nowhere, name))) => {
            !WorkspaceTool::from_wire(name).is_some_and(WorkspaceTool::is_read_only)
        }
        (EffectKind::Tool, Some((RunsAt::Gate, _)) | None) | (EffectKind::Delegation | EffectKind::Agent, _) => true,
    }
}
