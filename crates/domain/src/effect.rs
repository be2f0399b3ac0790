//! Effects: the journaled interactions of a turn with the outside (engine b.2).

use std::sync::Arc;

use crate::id::{CallId, EffectId, InvocationId};
use crate::json::Json;
use crate::model::{ModelOutcome, Prompt, words};
use crate::tool::{ToolOutcome, WorkspaceTool};

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
    /// Calls a tool.
    Tool(ToolRequest),
}

impl EffectRequest {
    /// The effect's kind.
    pub fn kind(&self) -> EffectKind {
        match self {
            Self::Model(_) => EffectKind::Model,
            Self::Tool(_) => EffectKind::Tool,
        }
    }
}

/// One tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRequest {
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
}

/// Where a tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolTarget {
    /// In the session's workspace.
    Workspace(WorkspaceTool),
    /// Nowhere yet: the call completes as failed `tool.unavailable` (decisions, Manifests).
    Unavailable,
    /// Nowhere: the agent has no tool of this name. The call completes as failed `tool.unknown`.
    UnknownTool,
    /// Nowhere: the model's input is no JSON. The call completes as failed `tool.invalid-arguments`.
    MalformedInput,
}

impl ToolRequest {
    /// What the call is about, if it is one that becomes uncertain when its answer is lost.
    pub fn subject_in_doubt(&self) -> Option<String> {
        match self.target {
            ToolTarget::Workspace(tool) if !tool.is_read_only() => tool.subject(&self.input),
            ToolTarget::Workspace(_)
            | ToolTarget::Unavailable
            | ToolTarget::UnknownTool
            | ToolTarget::MalformedInput => None,
        }
    }

    /// The outcome of a call that is never carried out: it is recorded at the call's intent (engine a.10).
    pub fn refusal(&self) -> Option<ToolOutcome> {
        let name = &self.tool_name;
        match self.target {
            ToolTarget::Workspace(_) => None,
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
        }
    }
}

/// What an effect gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectOutcome {
    /// A model's.
    Model(ModelOutcome),
    /// A tool's.
    Tool(ToolOutcome),
}

/// Whether an effect that was running when its owner died may simply run again (decisions, What may run again).
///
/// The one predicate for takeover, for intent and for shutdown. All else that was running is uncertain.
pub fn may_run_again(kind: EffectKind, tool_name: Option<&str>) -> bool {
    match kind {
        EffectKind::Model => true,
        EffectKind::Tool => tool_name.and_then(WorkspaceTool::from_wire).is_some_and(WorkspaceTool::is_read_only),
        EffectKind::Delegation | EffectKind::Agent => false,
    }
}
