//! Answers to what a turn asks: `approve` and `respond` (api 2.4, engine b.1).

use super::message::wake;
use super::{CommandHead, Refusal};
use crate::change::{CheckpointChange, SessionChange, Stamp, WakeReason};
use crate::checkpoint::{Answer, Checkpoint, Said};
use crate::event::{Payload, Source};
use crate::id::InteractionId;
use crate::session::{Session, Status};

/// An answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiveAnswer {
    /// What every command carries.
    pub head: CommandHead,
    /// The question.
    pub interaction_id: InteractionId,
    /// The answer.
    pub said: Said,
}

/// Takes an answer. A paused turn goes on with it, in the next segment. While the turn is already busy with an earlier
/// answer, this one is kept, and the turn goes on with it when it would pause again: answers to several open questions
/// may be sent one after the other without waiting.
pub fn give_answer(
    session: &Session,
    checkpoint: Option<&Checkpoint>,
    give: GiveAnswer,
    stamp: &Stamp<'_>,
) -> Result<SessionChange, Refusal> {
    let mut checkpoint = waiting(session, checkpoint).cloned().ok_or_else(|| not_awaiting(session))?;
    let open = checkpoint.waits.iter().position(|wait| {
        wait.interaction.id == give.interaction_id && wait.answer.is_none() && give.said.answers(&wait.interaction.kind)
    });
    let Some(at) = open else { return Err(Refusal::UnknownInteraction(give.interaction_id)) };

    let mut change = SessionChange::of(session);
    let turn_id = session.active_turn_id.clone();
    let seq = change.event(Source::Api, turn_id.clone(), payload(&give), stamp);
    change.command = Some(give.head.record(turn_id, seq, stamp.now));
    if session.status == Status::Paused {
        checkpoint.waits.remove(at);
        checkpoint.answers = vec![Answer { interaction_id: give.interaction_id, said: give.said }];
        change.session.status = Status::Runnable;
        change.session.segment = checkpoint.segment;
        change.wake = wake(session, WakeReason::Answer, stamp);
    } else {
        checkpoint.waits[at].answer = Some(give.said);
    }
    change.checkpoint = CheckpointChange::Put(Box::new(checkpoint));
    Ok(change)
}

/// The active turn's checkpoint, when something is asked.
fn waiting<'a>(session: &Session, checkpoint: Option<&'a Checkpoint>) -> Option<&'a Checkpoint> {
    match session.status {
        Status::Paused | Status::Runnable | Status::Running | Status::Uncertain => {}
        Status::Idle | Status::Waiting | Status::Completed | Status::Failed | Status::Cancelled => return None,
    }
    let checkpoint = checkpoint.filter(|checkpoint| session.active_turn_id.as_ref() == Some(&checkpoint.turn_id))?;
    checkpoint.waits.iter().any(|wait| wait.answer.is_none()).then_some(checkpoint)
}

fn not_awaiting(session: &Session) -> Refusal {
    Refusal::NotAwaiting { active_turn_id: session.active_turn_id.clone() }
}

fn payload(give: &GiveAnswer) -> Payload {
    let (request_id, idempotency_key) = (give.head.request_id.clone(), give.head.idempotency_key.clone());
    let interaction_id = give.interaction_id.clone();
    match &give.said {
        Said::Approved | Said::Denied => Payload::CommandApprove {
            request_id,
            idempotency_key,
            interaction_id,
            approved: give.said == Said::Approved,
        },
        Said::Value(value) => {
            Payload::CommandRespond { request_id, idempotency_key, interaction_id, value: value.clone() }
        }
    }
}
