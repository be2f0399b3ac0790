//! The immutable start of a later segment of a turn (engine b.1): with the segment's journal it fully determines what
//! follows. It is lean: the transcript is folded from the record.

use crate::id::{CallId, InteractionId, InvocationId, TurnId};
use crate::json::Json;
use crate::tool::ToolOutcome;

/// From what the next segment of a turn begins. A session has at most one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The turn.
    pub turn_id: TurnId,
    /// The segment that begins from it, from 1.
    pub segment: u32,
    /// The engine's state.
    pub state: State,
    /// The answers with which the segment begins.
    pub answers: Vec<Answer>,
    /// What else is asked.
    pub waits: Vec<Wait>,
}

/// The engine's state between two segments of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Where in the transcript the turn's entries begin.
    pub turn_start: usize,
    /// Model calls of the turn so far.
    pub steps: u32,
    /// The calls of the last answer, in the model's order, when some of them wait; empty between two steps.
    pub calls: Vec<SavedCall>,
}

/// A call of an answer whose step is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedCall {
    /// It has its outcome.
    Done(ToolOutcome),
    /// It waits for a person.
    Waiting(Interaction),
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interaction {
    /// Its id, by which it is answered.
    pub id: InteractionId,
    /// The call that waits.
    pub invocation_id: InvocationId,
    /// That call as the model named it.
    pub call_id: CallId,
    /// Its tool.
    pub tool_name: String,
    /// What kind of answer is wanted.
    pub kind: InteractionKind,
    /// The question, for a person.
    pub prompt: String,
}

/// What kind of answer a question wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InteractionKind {
    /// Whether the call may run: the command `approve`.
    Approval,
    /// Anything else, in the tool's own word: the command `respond`.
    Other(String),
}

impl InteractionKind {
    /// The wire's word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Approval => "approval",
            Self::Other(word) => word,
        }
    }

    /// The kind of this word.
    pub fn from_wire(word: &str) -> Self {
        match word {
            "approval" => Self::Approval,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// A question that is open, or whose answer is not used yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The question.
    pub interaction: Interaction,
    /// The answer that came while the turn was busy with an earlier one.
    pub answer: Option<Said>,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The question.
    pub interaction_id: InteractionId,
    /// What was said.
    pub said: Said,
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The call may run.
    Approved,
    /// It may not.
    Denied,
    /// The value that was asked for.
    Value(Json),
}

impl Said {
    /// Whether it answers a question of this kind.
    pub fn answers(&self, kind: &InteractionKind) -> bool {
        match (self, kind) {
            (Self::Approved | Self::Denied, InteractionKind::Approval)
            | (Self::Value(_), InteractionKind::Other(_)) => true,
            (Self::Approved | Self::Denied, InteractionKind::Other(_))
            | (Self::Value(_), InteractionKind::Approval) => false,
        }
    }
}
