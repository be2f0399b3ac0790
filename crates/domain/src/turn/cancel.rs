//! A cancel is decided whole by its own transaction (decisions, Cancel).

use super::CommandHead;
use super::doubt::abandon;
use crate::change::{CheckpointChange, EffectChange, EffectRow, SessionChange, Stamp, WakeChange};
use crate::event::{Payload, Source};
use crate::json::Text;
use crate::session::{Session, Status};

/// A request to cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// What every command carries.
    pub head: CommandHead,
    /// Why, in the caller's words.
    pub reason: Option<Text>,
}

/// Cancels the active turn, if there is one: the session is as at the turn's start, and what was running and may have
/// changed something outside is uncertain. `effects` are the rows of that turn. What an owner reports afterwards is
/// refused by the row's revision.
pub fn cancel(session: &Session, effects: &[EffectRow], cancel: Cancel, stamp: &Stamp<'_>) -> SessionChange {
    // Whether a call had begun or still waited in its workspace's lane, only the process that runs it knows.
    const MESSAGE: &str = "the turn was cancelled before its outcome was recorded";
    let turn_id = session.active_turn_id.clone();
    let mut change = SessionChange::of(session);
    // Before the turn's end, which is the last that a turn says of itself (api 4.3).
    abandon(&mut change, effects, MESSAGE, stamp);
    let payload = Payload::TurnCancelled { reason: cancel.reason };
    let seq = change.event(Source::Api, turn_id.clone(), payload, stamp);
    // The answer of a cancel names no turn (api 2.4).
    change.command = Some(cancel.head.record(None, seq, stamp.now));
    change.session.status = Status::Cancelled;
    change.session.active_turn_id = None;
    change.session.owner = None;
    change.session.input_seq = None;
    change.session.turn_manifest_hash = None;
    if let Some(turn_id) = turn_id {
        change.session.last_turn_id = Some(turn_id.clone());
        // Reading the record undoes what the turn's segments did to the transcript, so its snapshot counts for nothing.
        change.session.history_snapshot = None;
        if session.segment > 0 || session.status == Status::Paused {
            change.checkpoint = CheckpointChange::Clear;
        }
        change.effects.push(EffectChange::SlimTurn { turn_id });
        change.wake = WakeChange::Clear;
    }
    change
}
