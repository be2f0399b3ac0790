//! How a segment ends: the settle table (engine b.4).

use super::doubt::abandon;
use super::message::wake;
use super::step::{Beside, Step};
use crate::change::{CheckpointChange, EffectChange, EffectRow, SessionChange, Stamp, Wake, WakeChange, WakeReason};
use crate::checkpoint::{Answer, Checkpoint, Interaction, State, Wait};
use crate::effect::EffectStatus;
use crate::event::{Payload, Source};
use crate::id::TurnId;
use crate::json::Json;
use crate::segment::{TurnEnd, TurnOutput};
use crate::session::{Session, Status};
use crate::transcript::Edit;

/// Fails a turn by the least that says so: the session's row, one event, and the marks of `effects` that were in
/// flight. For a store that refuses what an ordinary end brings with it. Messages that wait go on waiting: the next
/// turn's end takes them up.
pub fn fail_alone(
    session: &Session,
    turn: &TurnId,
    effects: &[EffectRow],
    code: &str,
    message: &str,
    stamp: &Stamp<'_>,
) -> SessionChange {
    let mut change = SessionChange::of(session);
    for effect in effects {
        let id = effect.id.clone();
        match effect.status {
            EffectStatus::Invoking if effect.may_have_changed() => {
                change.effects.push(EffectChange::Uncertain { id, error: ABANDONED.to_owned() });
            }
            EffectStatus::Invoking | EffectStatus::Queued | EffectStatus::Pending => {
                change.effects.push(EffectChange::Cancel { id });
            }
            EffectStatus::Completed | EffectStatus::Uncertain | EffectStatus::Cancelled => {}
        }
    }
    change.session.owner = None;
    fail_turn(&mut change, turn, code, message, stamp);
    change.wake = WakeChange::Clear;
    change
}

/// What is said of an effect that was in flight when its turn failed.
const ABANDONED: &str = "the turn ended before its outcome was recorded";

fn fail_turn(change: &mut SessionChange, turn: &TurnId, code: &str, message: &str, stamp: &Stamp<'_>) {
    let session = &mut change.session;
    session.status = Status::Failed;
    session.error = Some(message.to_owned());
    // What the turn's segments did to the transcript is undone by its end, so its snapshot counts for nothing.
    session.history_snapshot = None;
    end_turn(change, turn, Payload::TurnFailed { code: code.to_owned(), message: message.to_owned() }, stamp);
}

fn end_turn(change: &mut SessionChange, turn: &TurnId, payload: Payload, stamp: &Stamp<'_>) {
    let session = &mut change.session;
    session.active_turn_id = None;
    session.last_turn_id = Some(turn.clone());
    session.input_seq = None;
    session.turn_manifest_hash = None;
    if session.segment > 0 {
        change.checkpoint = CheckpointChange::Clear;
    }
    change.event(Source::Loop, Some(turn.clone()), payload, stamp);
}

impl Step {
    /// Settles the segment with its output.
    pub(super) fn settle(&mut self, turn: &TurnId, output: &TurnOutput, beside: &Beside, stamp: &Stamp<'_>) {
        match output.end {
            TurnEnd::Uncertain | TurnEnd::Yielded { .. } | TurnEnd::Paused { .. } => {}
            TurnEnd::Completed { .. } | TurnEnd::Failed { .. } => self.abandon_rest(stamp),
        }
        self.record_edits(turn, &output.edits, stamp);
        self.change.session.owner = None;
        match &output.end {
            TurnEnd::Uncertain => self.wait_to_be_settled(stamp),
            TurnEnd::Yielded { state } => self.roll_over(turn, state, stamp),
            TurnEnd::Paused { interactions, state } => self.pause(turn, interactions, state, beside, stamp),
            TurnEnd::Completed { output } => {
                self.complete_turn(turn, output, stamp);
                self.begin_queued(beside, stamp);
            }
            TurnEnd::Failed { code, message } => {
                fail_turn(&mut self.change, turn, code, message, stamp);
                self.slim_turn(turn);
                self.begin_queued(beside, stamp);
            }
        }
    }

    /// A turn that ran out of time, or that this program cannot go on with, may end while effects are in flight.
    fn abandon_rest(&mut self, stamp: &Stamp<'_>) {
        let mut rest: Vec<&EffectRow> = self.journal.rows().collect();
        rest.sort_by(|one, other| one.id.cmp(&other.id));
        abandon(&mut self.change, rest, ABANDONED, stamp);
    }

    fn record_edits(&mut self, turn: &TurnId, edits: &[Edit], stamp: &Stamp<'_>) {
        for edit in edits {
            let payload = Payload::TranscriptUpdated(edit.clone());
            let seq = self.change.event(Source::Loop, Some(turn.clone()), payload, stamp);
            if edit.keep == 0 {
                self.change.session.history_snapshot = Some(seq);
            }
        }
    }

    /// The turn waits, unless somebody settled its effects while others were still running.
    fn wait_to_be_settled(&mut self, stamp: &Stamp<'_>) {
        let waits = self.journal.rows().any(|row| row.status == EffectStatus::Uncertain);
        let session = &mut self.change.session;
        session.status = if waits { Status::Uncertain } else { Status::Runnable };
        if !waits {
            self.change.wake = wake(&self.change.session, WakeReason::Settle, stamp);
        }
    }

    /// The next segment goes on at once, under whoever takes it. Its wake rides in this transaction under a key of its
    /// own: it can neither be lost nor doubled (engine b.12, rule 27).
    fn roll_over(&mut self, turn: &TurnId, state: &State, stamp: &Stamp<'_>) {
        self.forget_intents();
        self.slim_turn(turn);
        let session = &mut self.change.session;
        self.change.wake = WakeChange::Put(Wake {
            id: format!("rollover:{turn}:{}", session.segment),
            session_id: session.id.clone(),
            reason: WakeReason::Rollover,
            created_at: stamp.now,
        });
        session.status = Status::Runnable;
        session.segment += 1;
        self.change.checkpoint = CheckpointChange::Put(Box::new(Checkpoint {
            turn_id: turn.clone(),
            segment: session.segment,
            state: state.clone(),
            answers: Vec::new(),
            waits: Vec::new(),
        }));
    }

    /// The turn waits for people, unless answers came while it was busy with an earlier one: it goes on with those.
    fn pause(
        &mut self,
        turn: &TurnId,
        interactions: &[Interaction],
        state: &State,
        beside: &Beside,
        stamp: &Stamp<'_>,
    ) {
        self.slim_turn(turn);
        let said = |interaction: &Interaction| {
            let wait = beside.waits.iter().find(|wait| wait.interaction.id == interaction.id);
            wait.and_then(|wait| wait.answer.clone())
        };
        let (mut answers, mut waits) = (Vec::new(), Vec::new());
        for interaction in interactions {
            match said(interaction) {
                Some(said) => answers.push(Answer { interaction_id: interaction.id.clone(), said }),
                None => waits.push(Wait { interaction: interaction.clone(), answer: None }),
            }
        }
        let segment = self.change.session.segment + 1;
        if answers.is_empty() {
            self.change.session.status = Status::Paused;
            let payload = Payload::TurnPaused { interactions: interactions.to_vec() };
            self.change.event(Source::Loop, Some(turn.clone()), payload, stamp);
        } else {
            self.change.session.status = Status::Runnable;
            self.change.session.segment = segment;
            self.change.wake = wake(&self.change.session, WakeReason::Answer, stamp);
        }
        let state = state.clone();
        let checkpoint = Checkpoint { turn_id: turn.clone(), segment, state, answers, waits };
        self.change.checkpoint = CheckpointChange::Put(Box::new(checkpoint));
    }

    fn complete_turn(&mut self, turn: &TurnId, output: &Json, stamp: &Stamp<'_>) {
        self.change.session.status = Status::Completed;
        end_turn(&mut self.change, turn, Payload::TurnCompleted { output: output.clone() }, stamp);
        self.slim_turn(turn);
    }

    /// Intents of model calls that an earlier owner left and that the next segment makes anew under other ids.
    fn forget_intents(&mut self) {
        let segment = self.change.session.segment;
        let left = self.journal.rows().filter(|row| row.segment == segment && row.status == EffectStatus::Invoking);
        let forgotten: Vec<_> = left.map(|row| EffectChange::Forget { id: row.id.clone() }).collect();
        self.change.effects.extend(forgotten);
    }

    /// Drops what earlier steps of the segment kept for a replay; this step's own outcomes were never kept.
    fn slim_turn(&mut self, turn: &TurnId) {
        let segment = self.change.session.segment;
        let recorded_now = self.change.effects.iter().filter(|effect| matches!(effect, EffectChange::Complete { .. }));
        let of_segment = self.journal.rows().filter(|row| row.segment == segment);
        let completed = of_segment.filter(|row| row.status == EffectStatus::Completed);
        if completed.count() > recorded_now.count() {
            self.change.effects.push(EffectChange::SlimTurn { turn_id: turn.clone() });
        }
    }
}
