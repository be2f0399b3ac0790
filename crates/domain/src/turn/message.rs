//! A message begins a turn (api 2.4).

use super::{CommandHead, Refusal};
use crate::change::{SessionChange, Stamp, Wake, WakeChange, WakeReason};
use crate::event::{Payload, Source};
use crate::id::TurnId;
use crate::json::Json;
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
}

/// Begins a turn: command, event and wake in one change.
pub fn message(session: &Session, message: Message, stamp: &Stamp<'_>) -> Result<SessionChange, Refusal> {
    if !session.status.accepts_message() {
        return Err(Refusal::Busy { active_turn_id: session.active_turn_id.clone() });
    }
    let turn_id = TurnId::from_trusted((stamp.uuid)());
    let (variant, variant_hash) = message.variant.unzip();
    let mut change = SessionChange::of(session);
    let payload = Payload::CommandMessage {
        request_id: message.head.request_id.clone(),
        idempotency_key: message.head.idempotency_key.clone(),
        input: message.input,
        manifest: variant,
    };
    let seq = change.event(Source::Api, Some(turn_id.clone()), payload, stamp);
    change.command = Some(message.head.record(Some(turn_id.clone()), seq, stamp.now));
    change.session.status = Status::Runnable;
    change.session.active_turn_id = Some(turn_id);
    change.session.segment = 0;
    change.session.input_seq = Some(seq);
    change.session.turn_manifest_hash = variant_hash;
    change.session.error = None;
    change.wake = wake(session, WakeReason::Message, stamp);
    Ok(change)
}

pub(super) fn wake(session: &Session, reason: WakeReason, stamp: &Stamp<'_>) -> WakeChange {
    WakeChange::Put(Wake { id: (stamp.uuid)(), session_id: session.id.clone(), reason, created_at: stamp.now })
}
