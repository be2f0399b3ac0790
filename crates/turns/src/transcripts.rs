//! Transcripts of sessions that are being used, so that a turn need not fold the whole record again.
//!
//! A cache and nothing more: bounded, short-lived, and never the truth. A transcript belongs to the epoch of the run
//! that left it; any later take of the session, here or elsewhere, raises the epoch and makes it worthless
//! (`docs/decisions/0009-transcripts-in-use.md`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nylorun_domain::id::{SessionId, TurnId};
use nylorun_domain::model::{Candidate, OutputPart, ToolInput};
use nylorun_domain::session::Session;
use nylorun_domain::time::Millis;
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::transcript::{Edit, Entry, Input, Line};

/// After so many edits, a snapshot is left behind, from which the next fold goes on.
const SNAPSHOT_AFTER: usize = 512;
/// Most text that is kept, in bytes.
const BUDGET: usize = 32 << 20;
/// What an entry weighs beside its text, which the item that the model is shown holds once more.
const ENTRY: usize = 256;
/// A session that waits longer holds no memory.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The model's history before a segment.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) lines: Arc<Vec<Line>>,
    /// How many edits of it the session's snapshot does not have.
    pub(crate) unsaved: usize,
}

impl History {
    /// The last event that is folded into it, when it is time for a snapshot and no turn that may be undone is in it:
    /// before a turn's first segment, all the turns before have ended.
    pub(crate) fn snapshot_due(&self, session: &Session) -> Option<i64> {
        let input = session.input_seq.filter(|_| session.segment == 0 && self.unsaved >= SNAPSHOT_AFTER)?;
        Some(input - 1)
    }

    /// The history after a segment did this to it; `None` when that does not fit.
    pub(crate) fn edited(mut self, edits: Vec<Edit>) -> Option<Self> {
        self.unsaved += edits.len();
        let lines = Arc::make_mut(&mut self.lines);
        edits.into_iter().all(|edit| edit.apply(lines).is_ok()).then_some(self)
    }
}

/// Whether a record of so many events may have a snapshot.
pub(crate) fn may_have_snapshot(events: i64) -> bool {
    usize::try_from(events).is_ok_and(|events| events >= SNAPSHOT_AFTER)
}

/// The transcripts.
#[derive(Debug, Default)]
pub(crate) struct Transcripts(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    sessions: HashMap<SessionId, Transcript>,
    weight: usize,
}

/// Where in the session's life a transcript was left. A cancel takes the session back to before the turn, without
/// another epoch; and a reset may let another session begin under the same id, whose epochs begin again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeftAt {
    /// Between two turns of the session that was opened then.
    Rest {
        /// When.
        opened_at: Millis,
    },
    /// After a segment of this turn.
    Within(TurnId),
}

impl LeftAt {
    /// Where a session is that is being taken.
    pub(crate) fn of(session: &Session) -> Self {
        match &session.active_turn_id {
            Some(turn) if session.segment > 0 => Self::Within(turn.clone()),
            Some(_) | None => Self::Rest { opened_at: session.created_at },
        }
    }

    /// Where a run of this turn left the session when it settled its segment. Another turn may have begun with that.
    pub(crate) fn after(settled: &Session, turn: &TurnId) -> Self {
        if settled.active_turn_id.as_ref() == Some(turn) {
            Self::Within(turn.clone())
        } else {
            Self::Rest { opened_at: settled.created_at }
        }
    }
}

#[derive(Debug)]
struct Transcript {
    epoch: i64,
    place: LeftAt,
    history: History,
    weight: usize,
    left_at: Instant,
}

impl Transcripts {
    /// Takes out the transcript that the run of this epoch left at this place, if it is still here.
    pub(crate) fn take(&self, session: &SessionId, epoch: i64, place: &LeftAt) -> Option<History> {
        let mut kept = self.kept();
        let transcript = kept.sessions.remove(session)?;
        kept.weight -= transcript.weight;
        (transcript.epoch == epoch && transcript.place == *place).then_some(transcript.history)
    }

    /// Keeps what the run of this epoch left.
    pub(crate) fn leave(&self, session: &SessionId, epoch: i64, place: LeftAt, history: History) {
        let weight = history.lines.iter().map(|line| weight(line.entry())).sum();
        let transcript = Transcript { epoch, place, history, weight, left_at: Instant::now() };
        let mut kept = self.kept();
        if let Some(older) = kept.sessions.insert(session.clone(), transcript) {
            kept.weight -= older.weight;
        }
        kept.weight += weight;
        if kept.weight > BUDGET {
            kept.shed();
        }
    }

    /// Lets go of what has waited too long. The sweep calls this, so that a quiet server gives the memory back.
    pub(crate) fn expire(&self, now: Instant) {
        let mut kept = self.kept();
        kept.sessions.retain(|_, transcript| now.duration_since(transcript.left_at) < KEPT_FOR);
        kept.weight = kept.sessions.values().map(|transcript| transcript.weight).sum();
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Over the budget: lets go of what was left first, down to half of it.
    fn shed(&mut self) {
        let mut oldest: Vec<_> =
            self.sessions.iter().map(|(id, transcript)| (transcript.left_at, id.clone())).collect();
        oldest.sort();
        for (_, id) in oldest {
            if self.weight <= BUDGET / 2 {
                return;
            }
            if let Some(transcript) = self.sessions.remove(&id) {
                self.weight -= transcript.weight;
            }
        }
    }
}

fn weight(entry: &Entry) -> usize {
    ENTRY
        + 2 * match entry {
            Entry::Input(Input::Content(text)) => text.utf16_len(),
            Entry::Input(Input::Data(data)) => data.as_str().len(),
            Entry::Input(Input::Parts(parts)) => parts.iter().map(|part| part.utf16_len()).sum(),
            Entry::Candidate { candidate, .. } => candidate_weight(candidate),
            Entry::ToolResults(results) => results.iter().map(|result| ENTRY + outcome_weight(&result.outcome)).sum(),
            Entry::Compaction(compaction) => compaction.summary.utf16_len(),
            Entry::Final { output } => output.as_str().len(),
        }
}

fn candidate_weight(candidate: &Candidate) -> usize {
    let part = |part: &OutputPart| match part {
        OutputPart::Text(text) => text.utf16_len(),
        OutputPart::Reasoning { text, signature } => {
            text.utf16_len() + signature.as_ref().map_or(0, |signature| signature.as_str().len())
        }
        OutputPart::ToolCall(call) => match &call.input {
            ToolInput::Json(input) => input.as_str().len(),
            ToolInput::Malformed(text) => text.utf16_len(),
        },
    };
    candidate.parts.iter().map(|one| ENTRY + part(one)).sum()
}

fn outcome_weight(outcome: &ToolOutcome) -> usize {
    match outcome {
        ToolOutcome::Completed { output } => output.as_str().len(),
        ToolOutcome::Failed { code, message } => code.len() + message.len(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use nylorun_domain::id::{SessionId, TurnId};
    use nylorun_domain::json::{Json, Text};
    use nylorun_domain::time::Millis;
    use nylorun_domain::transcript::{Entry, Input, Line};

    use super::{BUDGET, History, KEPT_FOR, LeftAt, Transcripts};

    const REST: LeftAt = LeftAt::Rest { opened_at: Millis(1) };

    fn session(name: &str) -> SessionId {
        SessionId::from_trusted(name)
    }

    fn entries(len: usize) -> History {
        history(Arc::new(vec![Line::from(Entry::Input(Input::Content(Text::from("x".repeat(len)))))]))
    }

    fn history(lines: Arc<Vec<Line>>) -> History {
        History { lines, unsaved: 0 }
    }

    #[test]
    fn only_the_next_run_is_given_what_a_run_left() {
        let transcripts = Transcripts::default();
        let left = Arc::new(vec![Line::from(Entry::Final { output: Json::string("x") })]);
        let take = |id, epoch, place: &LeftAt| {
            let history = transcripts.take(&session(id), epoch, place);
            history.map(|history| Arc::ptr_eq(&history.lines, &left))
        };
        let within = LeftAt::Within(TurnId::from_trusted("t"));
        transcripts.leave(&session("a"), 3, REST, history(Arc::clone(&left)));
        assert_eq!(take("b", 3, &REST), None);
        assert_eq!(take("a", 3, &REST), Some(true));
        assert_eq!(take("a", 3, &REST), None, "it is taken out");
        transcripts.leave(&session("a"), 4, REST, history(Arc::clone(&left)));
        assert_eq!(take("a", 5, &REST), None, "another run came between");
        transcripts.leave(&session("a"), 6, within.clone(), history(Arc::clone(&left)));
        assert_eq!(take("a", 6, &within), Some(true));
        transcripts.leave(&session("a"), 6, within, history(Arc::clone(&left)));
        assert_eq!(take("a", 6, &REST), None, "the turn was cancelled");
        transcripts.leave(&session("a"), 6, REST, history(Arc::clone(&left)));
        let other = LeftAt::Rest { opened_at: Millis(2) };
        assert_eq!(take("a", 6, &other), None, "another session has the id now");
        assert_eq!(transcripts.kept().weight, 0);
    }

    #[test]
    fn what_waits_a_minute_is_let_go_although_no_turn_comes() {
        let transcripts = Transcripts::default();
        let before = Instant::now();
        transcripts.leave(&session("a"), 1, REST, entries(10));
        transcripts.expire(before + KEPT_FOR / 2);
        assert_eq!(transcripts.kept().sessions.len(), 1);
        transcripts.expire(Instant::now() + KEPT_FOR);
        let kept = transcripts.kept();
        assert_eq!((kept.sessions.len(), kept.weight), (0, 0));
    }

    #[test]
    fn what_is_kept_stays_within_the_budget_and_the_newest_stays() {
        let transcripts = Transcripts::default();
        for number in 0..40 {
            transcripts.leave(&session(&number.to_string()), 1, REST, entries(BUDGET / 20));
            assert!(transcripts.kept().weight <= BUDGET);
        }
        assert!(transcripts.take(&session("0"), 1, &REST).is_none());
        assert!(transcripts.take(&session("39"), 1, &REST).is_some());
    }
}
