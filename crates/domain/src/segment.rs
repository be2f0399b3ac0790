//! What passes between a turn's run and the journal: reports of effects, what is wanted next, how a segment ends
//! (engine a, b.4).

use crate::checkpoint::{Answer, Interaction, State};
use crate::effect::{EffectOutcome, Intent};
use crate::id::EffectId;
use crate::json::Json;
use crate::transcript::{Edit, Input};
use crate::workspace::{WorkspaceEvent, WorkspaceRecord};

/// What begins a segment (engine b.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentInput {
    /// A message: the turn's first segment.
    Message(Input),
    /// The state that the segment before left, and the answers to what it asked.
    Resume {
        /// The engine's state.
        state: State,
        /// The answers; none after a yield.
        answers: Vec<Answer>,
    },
}

/// The budget of one segment: it yields at the first boundary between two steps at which either is used up (engine
/// b.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YieldAfter {
    /// Model calls, at least 1.
    pub steps: u32,
    /// Time since the segment was taken up, in milliseconds.
    pub ms: u64,
}

impl Default for YieldAfter {
    /// 50 steps or 20 minutes.
    fn default() -> Self {
        Self { steps: 50, ms: 20 * 60 * 1000 }
    }
}

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
    /// The segment used up its budget between two steps: the next segment goes on from this state.
    Yielded {
        /// The engine's state.
        state: State,
    },
    /// Calls wait for people: the next segment goes on from this state with an answer.
    Paused {
        /// What is asked, in the model's order.
        interactions: Vec<Interaction>,
        /// The engine's state.
        state: State,
    },
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

/// An outcome that the journal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedOutcome {
    /// The effect.
    pub effect_id: EffectId,
    /// Its request's hash.
    pub request_hash: String,
    /// What it gave.
    pub outcome: EffectOutcome,
}

/// What is wanted after the outcomes of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Nothing new: other effects are still running.
    Nothing,
    /// These effects are to run: their intents are committed before the answer.
    Intents(Vec<Intent>),
    /// The segment ended.
    Output(TurnOutput),
}

/// How a segment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnOutput {
    /// With what.
    pub end: TurnEnd,
    /// Edits of the transcript, to be recorded. Empty when the turn failed or an effect is uncertain.
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
    /// A model call that was not begun: the turn reads these messages first, and asks anew.
    Steered(Vec<Input>),
}
