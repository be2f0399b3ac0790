//! What passes between a turn's run and the journal: reports of effects, what is wanted next, how a segment ends
//! (engine a, b.4).

use crate::effect::{Effect, EffectOutcome};
use crate::id::EffectId;
use crate::json::Json;
use crate::transcript::Edit;
use crate::workspace::{WorkspaceEvent, WorkspaceRecord};

/// With what a segment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The turn is done.
    Completed {
        /// Its output.
        output: Json,
    },
    /// The turn failed.
    Failed {
        /// A dotted word: `model.auth`.
        code: String,
        /// What happened.
        message: String,
    },
    /// An effect is uncertain: the turn waits for somebody to settle it.
    Uncertain,
}

/// What a harness reports of an effect that it carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectReport {
    /// The effect.
    pub effect_id: EffectId,
    /// What became of it.
    pub result: EffectResult,
    /// Workspace events to record with it, in order.
    pub events: Vec<WorkspaceEvent>,
    /// The workspace's record, when the call changed it.
    pub record: Option<WorkspaceRecord>,
}

/// What became of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectResult {
    /// A definite outcome.
    Value(EffectOutcome),
    /// Its answer was lost: the effect is uncertain.
    Lost {
        /// What is known.
        message: String,
    },
}

/// What is wanted after the outcomes of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Nothing new: other effects are still running.
    Nothing,
    /// These effects are to run: their intents are committed before the answer.
    Intents(Vec<Effect>),
    /// The segment ended.
    Output(TurnOutput),
}

/// How a segment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnOutput {
    /// With what.
    pub end: TurnEnd,
    /// Edits of the transcript, to be recorded. Empty when the turn failed.
    pub edits: Vec<Edit>,
}

/// The runtime's answer to one wanted effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntentAnswer {
    /// Run it now.
    Execute,
    /// It has its outcome already.
    Completed(EffectOutcome),
    /// It may or may not have happened.
    Uncertain,
}
