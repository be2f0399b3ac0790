//! Runs: the runtime's side of a harness, and the harness's side of a turn (engine a, b.4).
//!
//! In process a run passes by reference. One call carries both halves of a step: the outcomes that are in hand and
//! what is wanted next, and the runtime commits them in one transaction.

use std::sync::Arc;

use nylorun_domain::effect::Effect;
use nylorun_domain::id::{AgentId, EffectId, SessionId, TurnId};
use nylorun_domain::manifest::AgentManifest;
pub use nylorun_domain::segment::{
    EffectReport, EffectResult, IntentAnswer, Next, RecordedOutcome, SegmentInput, TurnEnd, TurnOutput, YieldAfter,
};
use nylorun_domain::transcript::Line;
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceSpec};

use crate::BoxFuture;
use crate::abort::Abort;
use crate::models::Delta;

/// Everything that a run starts from. With the outcomes it fully determines what follows (engine b.1).
#[derive(Clone, Debug)]
pub struct TurnStart {
    /// The session.
    pub session_id: SessionId,
    /// Its agent.
    pub agent_id: AgentId,
    /// The turn.
    pub turn_id: TurnId,
    /// The stretch of the turn, from 0.
    pub segment: u32,
    /// The epoch under which this run writes.
    pub epoch: i64,
    /// The turn's manifest.
    pub manifest: Arc<AgentManifest>,
    /// What begins the segment.
    pub input: SegmentInput,
    /// After how much the segment yields at the next boundary of a step.
    pub yield_after: YieldAfter,
    /// The model's history before the segment.
    pub transcript: Arc<Vec<Line>>,
    /// What this segment's effects gave so far, by effect id, with each request's hash.
    pub outcomes: Vec<RecordedOutcome>,
    /// The session's workspace, when it has one.
    pub workspace: Option<RunWorkspace>,
}

/// The workspace of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunWorkspace {
    /// The session that owns it: the run's own, or one whose workspace that shares.
    pub owner: SessionId,
    /// Its key.
    pub key: WorkspaceKey,
    /// What it is made with.
    pub spec: WorkspaceSpec,
}

/// Why the runtime refuses a run's call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoreError {
    /// Another owner has the session. Write nothing more.
    #[error("the session has another owner")]
    OwnershipLost,
    /// The turn was cancelled, or another is active.
    #[error("the turn was cancelled")]
    TurnCancelled,
    /// The same effect id came with another request.
    #[error("effect {0} asks for something else than before")]
    EffectDrift(EffectId),
    /// The store did not answer.
    #[error("the runtime is unavailable: {0}")]
    Unavailable(String),
    /// The store cannot keep what was to be committed, and never will.
    #[error("the runtime cannot record this: {0}")]
    Refused(String),
}

/// What a run asks of the runtime.
pub trait RunCore: Send + Sync {
    /// Commits a step in one transaction. Answers the wanted effects in their order; empty for [`Next::Nothing`] and
    /// [`Next::Output`].
    fn commit(&self, reports: Vec<EffectReport>, next: Next) -> BoxFuture<'_, Result<Vec<IntentAnswer>, CoreError>>;
    /// Passes on a piece of an answer that is being made. Never recorded.
    fn delta(&self, effect: &Effect, delta: Delta);
}

/// How a run ended for the advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Its output was committed.
    Settled,
    /// It was aborted, or the runtime refused it: nothing was settled.
    Released(CoreError),
    /// It was told to stop; outcomes in hand were recorded, nothing was settled.
    Stopped,
    /// The connection to its harness is gone, and with it what the harness was doing (engine a.11, rule 11).
    ConnectionLost,
}

/// Runs segments of turns.
pub trait Harness: Send + Sync {
    /// Runs one segment until its output is committed or the run ends otherwise.
    fn run(&self, start: TurnStart, core: Arc<dyn RunCore>, abort: Abort) -> BoxFuture<'_, RunEnd>;
}
