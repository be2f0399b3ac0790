//! Crossings: what lets a gate send a keyed call at most once, whoever dies meanwhile (trust 5).

use nylorun_domain::id::{EffectId, SessionId, TurnId};
use nylorun_domain::tool::ToolOutcome;

use crate::BoxFuture;

/// A call that is about to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The effect: the call's key.
    pub effect_id: EffectId,
    /// Hash of its request: the same key must always mean the same request.
    pub request_hash: String,
    /// The session on whose behalf.
    pub session_id: SessionId,
    /// Its turn.
    pub turn_id: TurnId,
    /// The run's claim: the session's epoch.
    pub epoch: i64,
}

/// What a gate is told that wants to send a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crossed {
    /// The crossing is recorded: send the call, once.
    Begun,
    /// It was sent before, and this came of it.
    Answered(ToolOutcome),
    /// It was begun before, and nobody recorded what came of it.
    Open,
    /// Another request was begun under this key.
    OtherRequest,
    /// The run does not hold the turn any more.
    NotHeld,
}

/// Why crossings cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("crossings unavailable: {0}")]
pub struct CrossingsError(pub String);

/// Remembers crossings durably.
pub trait Crossings: Send + Sync {
    /// Records that the call is about to be sent, before it is. On an error nothing may be sent.
    fn begin<'a>(&'a self, crossing: &'a Crossing) -> BoxFuture<'a, Result<Crossed, CrossingsError>>;
    /// Records what came of it.
    fn settle<'a>(
        &'a self,
        effect_id: &'a EffectId,
        answer: &'a ToolOutcome,
    ) -> BoxFuture<'a, Result<(), CrossingsError>>;
}
