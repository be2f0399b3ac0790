//! What operators read of turns in the server's log: ids and codes, never what somebody said.

use nylorun_domain::change::SessionChange;
use nylorun_domain::event::Payload;
use nylorun_domain::id::{SessionId, WorkerId};
use nylorun_domain::session::Session;

/// A session was taken from an owner that is gone.
pub(crate) fn takeover(session: &Session, dead: &WorkerId) {
    let turn = session.active_turn_id.as_ref().map(|turn| turn.as_str()).unwrap_or_default();
    let (session, epoch) = (session.id.as_str(), session.epoch);
    tracing::info!(session, turn, epoch, from = dead.as_str(), "session taken over from an owner that is gone");
}

/// An advance did not end in time, and whatever it does now is not waited for.
pub(crate) fn abandoned(session: &SessionId) {
    tracing::error!(session = session.as_str(), "an advance did not end after its deadline; the session is taken anew");
}

/// A change of a session was committed.
pub(crate) fn committed(change: &SessionChange) {
    let session = change.session.id.as_str();
    for event in &change.events {
        let turn = event.turn_id.as_ref().map(|turn| turn.as_str()).unwrap_or_default();
        match &event.payload {
            Payload::TurnFailed { code, .. } => tracing::info!(session, turn, code, "turn failed"),
            // Somebody has to look: nothing goes on by itself.
            Payload::EffectUncertain { effect_id, .. } => {
                tracing::warn!(
                    session,
                    turn,
                    effect = effect_id.as_str(),
                    "effect uncertain: its turn waits to be settled"
                );
            }
            Payload::EffectSettled { effect_id, outcome, .. } => {
                let runs_again = outcome.is_none();
                tracing::info!(session, turn, effect = effect_id.as_str(), runs_again, "effect settled");
            }
            Payload::TurnPaused { interactions } => {
                tracing::info!(session, turn, questions = interactions.len(), "turn waits for a person");
            }
            Payload::ContextCompacted { compacted, .. } => {
                let (before, after) = (compacted.tokens_before, compacted.tokens_after);
                tracing::info!(session, turn, before, after, "conversation compacted");
            }
            Payload::CommandMessage { .. }
            | Payload::CommandApprove { .. }
            | Payload::CommandRespond { .. }
            | Payload::MessageQueued { .. }
            | Payload::MessageSteered { .. }
            | Payload::MessageRemoved { .. }
            | Payload::TurnCompleted { .. }
            | Payload::TurnCancelled { .. }
            | Payload::MessageAssistant { .. }
            | Payload::ModelFailed { .. }
            | Payload::ToolCompleted { .. }
            | Payload::TranscriptUpdated(_)
            | Payload::Workspace(_) => {}
        }
    }
}
