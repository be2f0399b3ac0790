//! A message begins a turn, or waits for the one that is active (api 2.4).

use super::queue::enqueue;
use super::{CommandHead, Refusal};
use crate::change::{SessionChange, Stamp, Wake, WakeChange, WakeReason};
use crate::event::{Payload, Source};
use crate::id::{SessionId, TurnId};
use crate::json::Json;
use crate::queue::QueueMode;
use crate::session::{Session, Status};
use crate::transcript::Input;

/// A message to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What every command carries.
    pub head: CommandHead,
    /// What it says.
    pub input: Input,
    /// The turn's own manifest, checked to be a variant of the session's, and its hash.
    pub variant: Option<(Json, String)>,
    /// What becomes of it while a turn is active.
    pub when_busy: WhenBusy,
}

/// What becomes of a message while a turn is active (decisions, Busy sessions).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenBusy {
    /// It is refused.
    #[default]
    Reject,
    /// It begins a turn of its own after the active one.
    Queue,
    /// The active turn reads it at its next step.
    Steer,
}

/// How a turn begins.
pub(super) struct Opening {
    pub(super) turn_id: TurnId,
    pub(super) request_id: String,
    pub(super) idempotency_key: String,
    pub(super) input: Input,
    pub(super) variant: Option<(Json, String)>,
}

/// Begins a turn: command, event and wake in one change. `holder` is another session whose turn has the workspace that
/// both use.
pub fn message(
    session: &Session,
    message: Message,
    holder: Option<SessionId>,
    stamp: &Stamp<'_>,
) -> Result<SessionChange, Refusal> {
    if !session.status.accepts_message() {
        return match message.when_busy {
            WhenBusy::Reject => Err(Refusal::Busy { active_turn_id: session.active_turn_id.clone() }),
            WhenBusy::Queue => enqueue(session, message, QueueMode::Queue, stamp),
            WhenBusy::Steer => enqueue(session, message, QueueMode::Steer, stamp),
        };
    }
    if let Some(by) = holder {
        return Err(Refusal::WorkspaceHeld { by: Some(by) });
    }
    let mut change = SessionChange::of(session);
    change.claim_workspace();
    let turn_id = TurnId::from_trusted((stamp.uuid)());
    let opening = Opening {
        turn_id: turn_id.clone(),
        request_id: message.head.request_id.clone(),
        idempotency_key: message.head.idempotency_key.clone(),
        input: message.input,
        variant: message.variant,
    };
    let seq = begin_turn(&mut change, opening, stamp);
    change.command = Some(message.head.record(Some(turn_id), seq, stamp.now));
    Ok(change)
}

/// Begins a turn upon `change`, whose session has none. Answers where in the record its message stands.
pub(super) fn begin_turn(change: &mut SessionChange, opening: Opening, stamp: &Stamp<'_>) -> i64 {
    let (variant, variant_hash) = opening.variant.unzip();
    let payload = Payload::CommandMessage {
        request_id: opening.request_id,
        idempotency_key: opening.idempotency_key,
        input: opening.input,
        manifest: variant,
    };
    let seq = change.event(Source::Api, Some(opening.turn_id.clone()), payload, stamp);
    let session = &mut change.session;
    session.status = Status::Runnable;
    session.active_turn_id = Some(opening.turn_id);
    session.segment = 0;
    session.input_seq = Some(seq);
    session.turn_manifest_hash = variant_hash;
    session.error = None;
    if let Some(snapshot) = session.history_snapshot.take() {
        session.history_from = snapshot;
    }
    change.wake = wake(&change.session, WakeReason::Message, stamp);
    seq
}

pub(super) fn wake(session: &Session, reason: WakeReason, stamp: &Stamp<'_>) -> WakeChange {
    WakeChange::Put(Wake { id: (stamp.uuid)(), session_id: session.id.clone(), reason, created_at: stamp.now })
}
