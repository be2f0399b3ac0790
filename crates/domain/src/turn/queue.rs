//! Messages that come while a turn is active: they wait, are read by the turn, begin the next one, or are taken back.

use super::message::{Message, Opening, begin_turn};
use super::step::{Beside, Step};
use super::{CommandHead, Refusal};
use crate::change::{EffectChange, EffectRow, QueueChange, SessionChange, Stamp};
use crate::effect::{EffectKind, EffectOutcome, EffectStatus, Intent, IntentRequest};
use crate::event::{Payload, Removed, Source};
use crate::id::{EffectId, MessageId, TurnId};
use crate::queue::{MAX_QUEUED, QueueMode, QueuedMessage};
use crate::segment::IntentAnswer;
use crate::session::Session;
use crate::transcript::Input;

/// Lets a message wait for the active turn.
pub(super) fn enqueue(
    session: &Session,
    message: Message,
    mode: QueueMode,
    stamp: &Stamp<'_>,
) -> Result<SessionChange, Refusal> {
    if session.queued >= MAX_QUEUED {
        return Err(Refusal::QueueFull { active_turn_id: session.active_turn_id.clone() });
    }
    let id = MessageId::from_trusted((stamp.uuid)());
    let Message { head, input, variant, .. } = message;
    let mut change = SessionChange::of(session);
    let payload = Payload::MessageQueued {
        message_id: id.clone(),
        mode,
        request_id: head.request_id.clone(),
        idempotency_key: head.idempotency_key.clone(),
        input: input.clone(),
        manifest: variant.as_ref().map(|(manifest, _)| manifest.clone()),
    };
    let seq = change.event(Source::Api, session.active_turn_id.clone(), payload, stamp);
    let turn_id = match mode {
        QueueMode::Queue => Some(TurnId::from_trusted(id.as_str())),
        QueueMode::Steer => session.active_turn_id.clone(),
    };
    change.command = Some(head.record(turn_id, seq, stamp.now));
    change.session.queued += 1;
    change.session.steers += steers(mode);
    let CommandHead { request_id, idempotency_key, .. } = head;
    let at = stamp.now;
    let queued = QueuedMessage { id, mode, seq, request_id, idempotency_key, input, variant, at };
    change.queue.push(QueueChange::Put(Box::new(queued)));
    Ok(change)
}

/// Takes a message back that still waits.
pub fn remove_queued(session: &Session, queued: &QueuedMessage, stamp: &Stamp<'_>) -> SessionChange {
    let mut change = SessionChange::of(session);
    change.take_out(queued);
    let payload = Payload::MessageRemoved { message_id: queued.id.clone(), reason: Removed::Request };
    change.event(Source::Api, session.active_turn_id.clone(), payload, stamp);
    change
}

/// What a cancel does to messages that wait: it drops them too, since nobody who says stop means "go on with the next".
pub fn drop_queue(change: &mut SessionChange, queued: &[QueuedMessage], stamp: &Stamp<'_>) {
    if queued.is_empty() {
        return;
    }
    for message in queued {
        let payload = Payload::MessageRemoved { message_id: message.id.clone(), reason: Removed::Cancel };
        // Of no turn: the cancelled one has said its last.
        change.event(Source::Api, None, payload, stamp);
    }
    change.session.queued = 0;
    change.session.steers = 0;
    change.queue.push(QueueChange::Clear);
}

/// How much a message of this mode adds to the session's count of steers.
fn steers(mode: QueueMode) -> i64 {
    match mode {
        QueueMode::Queue => 0,
        QueueMode::Steer => 1,
    }
}

impl SessionChange {
    fn take_out(&mut self, queued: &QueuedMessage) {
        self.session.queued -= 1;
        self.session.steers -= steers(queued.mode);
        self.queue.push(QueueChange::Remove(queued.id.clone()));
    }
}

impl Step {
    /// Lets the turn read the messages that wait for its next step, before a model call whose intent is not recorded
    /// yet: the call is not begun, and the engine asks anew. The journal keeps what was read before which call, so that
    /// a replay reads it at the same place. Answers whether there was anything to read.
    pub(super) fn steer(&mut self, turn: &TurnId, effects: &[Intent], beside: &Beside, stamp: &Stamp<'_>) -> bool {
        // One that an earlier turn left unread waits for its own turn, in its place among the others.
        let begun = self.change.session.input_seq.unwrap_or(-1);
        let is_for_this = |message: &&QueuedMessage| message.mode == QueueMode::Steer && message.seq > begun;
        let steers: Vec<_> = beside.queued.iter().filter(is_for_this).collect();
        let [effect] = effects else { return false };
        let asks = matches!(effect.request, IntentRequest::Model);
        if !asks || steers.is_empty() || self.journal.row(&effect.id).is_some() {
            return false;
        }
        let mut inputs: Vec<Input> = Vec::new();
        for message in steers {
            let payload = Payload::MessageSteered {
                message_id: message.id.clone(),
                request_id: message.request_id.clone(),
                idempotency_key: message.idempotency_key.clone(),
                input: message.input.clone(),
            };
            self.change.event(Source::Loop, Some(turn.clone()), payload, stamp);
            self.change.take_out(message);
            inputs.push(message.input.clone());
        }
        let row = self.steer_row(turn, effect, &inputs);
        self.journal.put(row.clone());
        self.change.effects.push(EffectChange::Insert(vec![row]));
        self.answers.push(IntentAnswer::Steered(inputs));
        true
    }

    /// `<turnId>:<segment>:steer:<invocation id of the model call>-<how often it was steered before>`
    fn steer_row(&self, turn: &TurnId, effect: &Intent, inputs: &[Input]) -> EffectRow {
        let segment = self.change.session.segment;
        let id = |n: usize| EffectId::from_trusted(format!("{turn}:{segment}:steer:{}-{n:03}", effect.invocation_id));
        let mut before = 0;
        while self.journal.row(&id(before)).is_some() {
            before += 1;
        }
        EffectRow {
            id: id(before),
            session_id: self.change.session.id.clone(),
            turn_id: turn.clone(),
            segment,
            kind: EffectKind::Steer,
            invocation_id: effect.invocation_id.clone(),
            tool: None,
            request_hash: effect.request_hash.clone(),
            status: EffectStatus::Completed,
            outcome: Some(EffectOutcome::Steer { model: effect.id.clone(), inputs: inputs.to_vec() }),
            error: None,
        }
    }

    /// The turn ended: the message that waited longest begins the next one, in the same transaction.
    pub(super) fn begin_queued(&mut self, beside: &Beside, stamp: &Stamp<'_>) {
        let Some(next) = beside.queued.first() else { return };
        self.change.take_out(next);
        let opening = Opening {
            turn_id: TurnId::from_trusted(next.id.as_str()),
            request_id: next.request_id.clone(),
            idempotency_key: next.idempotency_key.clone(),
            input: next.input.clone(),
            variant: next.variant.clone(),
        };
        begin_turn(&mut self.change, opening, stamp);
    }
}
