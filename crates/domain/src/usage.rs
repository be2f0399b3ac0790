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

/// What several model calls used together (api 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageTotals {
    /// Calls that reached an end, those that failed and those whose turn was cancelled included.
    pub calls: i64,
    /// Those among them that repeated one that a crash cut off.
    pub duplicates: i64,
    /// Those of which the provider reported no tokens.
    pub unreported: i64,
    /// Those whose tokens are known and whose price is not.
    pub unpriced: i64,
    /// Tokens, and the cost of all calls whose price is known.
    pub used: Usage,
}
