//! The pure decisions on a session's turns: given its row and a request, what one transaction does, or why not.
//!
//! In the order of a turn's life: a message begins it, an owner takes it, steps record it, an output settles each of
//! its segments, and an answer, a settling or a cancel ends its waits.

mod answer;
mod cancel;
mod doubt;
mod message;
mod output;
mod queue;
mod settle;
mod step;
mod take;

pub use answer::{GiveAnswer, give_answer};
pub use cancel::{Cancel, cancel};
pub use message::{Message, WhenBusy, message};
pub use output::fail_alone;
pub use queue::{drop_queue, remove_queued};
pub use settle::{SettleEffect, SettleOutcome, settle_effect};
pub use step::{Beside, Journal, Step, StepError, step};
pub use take::{Owner, Take, release, take};

use crate::change::CommandRecord;
use crate::id::{SessionId, TurnId};

/// What every command carries (api 2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandHead {
    /// The caller's name for the request; never part of its identity.
    pub request_id: String,
    /// The caller's key.
    pub idempotency_key: String,
    /// SHA-256 of the body without `requestId`, canonical.
    pub body_hash: String,
}

impl CommandHead {
    fn record(&self, turn_id: Option<TurnId>, seq: i64, at: crate::time::Millis) -> CommandRecord {
        CommandRecord {
            idempotency_key: self.idempotency_key.clone(),
            body_hash: self.body_hash.clone(),
            request_id: self.request_id.clone(),
            turn_id,
            seq,
            at,
        }
    }
}

/// Why a command is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another turn is not done.
    #[error(
        "the session has active or unresolved work; wait for its turn to end, cancel it, \
         or settle its uncertain effects"
    )]
    Busy {
        /// The turn.
        active_turn_id: Option<TurnId>,
    },
    /// A turn has the workspace.
    #[error("a turn is active: its tools have the workspace; wait for it to end, or cancel it")]
    WorkspaceInUse {
        /// The turn.
        active_turn_id: TurnId,
    },
    /// Another session's turn has the workspace that both use.
    #[error(
        "the sandbox is shared with {}, whose turn has it; wait for that turn to end, answer what it asks, cancel it, \
         or settle its uncertain effects",
        holder(.by.as_ref())
    )]
    WorkspaceHeld {
        /// The session, where it may be named.
        by: Option<SessionId>,
    },
    /// As many messages wait as may.
    #[error("100 messages wait already; wait for the session to take some, or remove one")]
    QueueFull {
        /// The turn that they wait for.
        active_turn_id: Option<TurnId>,
    },
    /// Nothing is asked.
    #[error("the session is not awaiting a response")]
    NotAwaiting {
        /// The turn, if one is active.
        active_turn_id: Option<TurnId>,
    },
    /// Something is asked, but not this, or another kind of answer is wanted.
    #[error(
        "unknown interaction {0}: it is not open, or wants the other command \
         (`approve` for the kind approval, `respond` for all others)"
    )]
    UnknownInteraction(crate::id::InteractionId),
    /// No such effect in this session.
    #[error("the session has no effect {0}")]
    UnknownEffect(crate::id::EffectId),
    /// Somebody said that it is to run again, and it will.
    #[error("effect {0} was settled with {{\"retry\": true}} and is being tried again: wait for its outcome")]
    Retried(crate::id::EffectId),
    /// The effect is known.
    #[error("effect {id} is {status}, not uncertain: there is nothing to settle")]
    NotUncertain {
        /// The effect.
        id: crate::id::EffectId,
        /// Where it stands.
        status: &'static str,
    },
    /// Nothing runs again for a turn that has ended.
    #[error("the turn of effect {0} has ended, so it cannot run again: settle it with a value or an error")]
    TurnEnded(crate::id::EffectId),
    /// A model's answer cannot be made up.
    #[error("effect {0} is a model call: it can only be settled with {{\"retry\": true}}")]
    OnlyRetry(crate::id::EffectId),
}

fn holder(session: Option<&SessionId>) -> String {
    session.map_or_else(|| "another session".to_owned(), |session| format!("session {session}"))
}
