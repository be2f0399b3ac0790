//! What model calls used (api 2.3, engine e.5).

use crate::id::{AgentId, EffectId, SessionId, TurnId};
use crate::model::{ModelRef, Usage};
use crate::time::Millis;

/// One row of the ledger: one model call that reached an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// The row's own id: a UUID.
    pub id: String,
    /// The call's effect.
    pub effect_id: EffectId,
    /// The session.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: TurnId,
    /// The turn's root agent.
    pub agent_id: AgentId,
    /// Who was asked, when that is known.
    pub model: Option<ModelRef>,
    /// Whether the call completed.
    pub completed: Completed,
    /// Whether an earlier call of the same effect may have been paid for too.
    pub repetition: Repetition,
    /// What the provider reported.
    pub usage: Option<Usage>,
    /// When the outcome was recorded.
    pub at: Millis,
}

/// How a model call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    /// With an answer.
    Completed,
    /// Without one.
    Failed,
}

/// Whether a model call was the first of its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// It was.
    First,
    /// An earlier one was cut off by a crash; both are billed and counted.
    Duplicate,
}
