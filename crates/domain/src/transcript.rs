//! The model's history: what happened, in the order in which the model is shown it (engine b.6).

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::compaction::Compaction;
use crate::hash::HexDigest;
use crate::id::{InvocationId, TurnId};
use crate::json::{Json, Text};
use crate::model::{Candidate, PromptItem, ToolResult};

/// One entry of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// What began a turn.
    Input(Input),
    /// A model's answer.
    Candidate {
        /// The call that gave it.
        invocation_id: InvocationId,
        /// The answer. The item that the model is shown of it is the same.
        candidate: Arc<Candidate>,
    },
    /// The results of a step's tool calls, in the model's order.
    ToolResults(Vec<ToolResult>),
    /// A summary of everything before it.
    Compaction(Compaction),
    /// The turn's output.
    Final {
        /// Text as a JSON string, or a document when the agent has an output schema.
        output: Json,
    },
}

/// An entry that the transcripts and prompts of many turns share. What the model is shown of it is made once.
#[derive(Clone, Debug)]
pub struct Line(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    entry: Entry,
    shown: OnceLock<Option<Shown>>,
}

/// What the model is shown of an entry.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The item of the prompt.
    pub item: Arc<PromptItem>,
    /// What tells it from every other item.
    pub digest: HexDigest,
}

impl Line {
    /// The entry.
    pub fn entry(&self) -> &Entry {
        &self.0.entry
    }

    /// What the model is shown of the entry, if anything. `show` must be the same at every call: it is asked once.
    pub fn shown(&self, show: impl FnOnce(&Entry) -> Option<Shown>) -> Option<&Shown> {
        self.0.shown.get_or_init(|| show(&self.0.entry)).as_ref()
    }
}

impl From<Entry> for Line {
    fn from(entry: Entry) -> Self {
        Self(Arc::new(Shared { entry, shown: OnceLock::new() }))
    }
}

/// What a message holds (api 2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// `content`
    Content(Text),
    /// `data`: any JSON.
    Data(Json),
    /// `parts`: texts (files come with artifacts).
    Parts(Vec<Text>),
}

/// One edit of a transcript (engine a.6): cut to `keep` entries, then add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// How many entries stay.
    pub keep: usize,
    /// What is added after them.
    pub entries: Vec<Entry>,
    /// How many entries there are then.
    pub length: usize,
}

/// Most JSON that one edit's entries may have, in UTF-16 units (engine a.6). One larger entry stands alone.
pub const MAX_EDIT_LEN: usize = 48 * 1024;

/// Why an edit does not fit a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoldError {
    /// It keeps more entries than there are.
    KeepTooLarge {
        /// What it keeps.
        keep: usize,
        /// What there is.
        entries: usize,
    },
    /// It would not give the length that it names.
    OtherLength {
        /// What it names.
        named: usize,
        /// What it would give.
        given: usize,
    },
}

impl fmt::Display for FoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepTooLarge { keep, entries } => write!(f, "the edit keeps {keep} of {entries} entries"),
            Self::OtherLength { named, given } => write!(f, "the edit names {named} entries and would give {given}"),
        }
    }
}

impl std::error::Error for FoldError {}

impl Edit {
    /// The edit that adds `entries` after the first `keep`.
    pub fn append(keep: usize, entries: Vec<Entry>) -> Self {
        let length = keep + entries.len();
        Self { keep, entries, length }
    }

    /// Splits the edit so that the entries of each have at most `max` of JSON, where `len` is an entry's length in
    /// JSON. A larger entry stands alone; an edit without entries stays as it is.
    pub fn split(self, max: usize, len: impl Fn(&Entry) -> usize) -> Vec<Self> {
        let mut edits = vec![Self::append(self.keep, Vec::new())];
        let mut used = ARRAY_BRACKETS;
        for entry in self.entries {
            let entry_len = len(&entry) + ARRAY_COMMA;
            if let Some(last) = edits.last_mut()
                && (last.entries.is_empty() || used + entry_len <= max)
            {
                used += entry_len;
                last.length += 1;
                last.entries.push(entry);
            } else {
                let keep = edits.last().map_or(self.keep, |last| last.length);
                edits.push(Self::append(keep, vec![entry]));
                used = ARRAY_BRACKETS + entry_len;
            }
        }
        edits
    }

    /// Folds the edit into a transcript, which stays as it was when the edit does not fit.
    pub fn apply<T: From<Entry>>(self, transcript: &mut Vec<T>) -> Result<(), FoldError> {
        if self.keep > transcript.len() {
            return Err(FoldError::KeepTooLarge { keep: self.keep, entries: transcript.len() });
        }
        let given = self.keep + self.entries.len();
        if given != self.length {
            return Err(FoldError::OtherLength { named: self.length, given });
        }
        transcript.truncate(self.keep);
        transcript.extend(self.entries.into_iter().map(T::from));
        Ok(())
    }
}

/// What an event of the record does to the transcript (engine b.11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folding {
    /// A segment of this turn edited it.
    Edit(TurnId, Edit),
    /// The turn was cancelled or failed: whatever it did is undone.
    Undo(TurnId),
}

/// A transcript that is being folded from the record.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    lines: Vec<Line>,
    undo: Option<Undo>,
}

/// What takes the transcript back to where a turn found it.
#[derive(Clone, Debug)]
struct Undo {
    turn: TurnId,
    /// How many lines of then are still there.
    kept: usize,
    /// The lines of then that followed them.
    cut: Vec<Line>,
}

impl From<Vec<Line>> for Fold {
    /// A fold that goes on from a transcript between two turns.
    fn from(lines: Vec<Line>) -> Self {
        Self { lines, undo: None }
    }
}

impl Fold {
    /// Takes the next event of the record.
    pub fn take(&mut self, folding: Folding) -> Result<(), FoldError> {
        match folding {
            Folding::Edit(turn, edit) => self.edit(turn, edit),
            Folding::Undo(turn) => {
                if let Some(undo) = self.undo.take_if(|undo| undo.turn == turn) {
                    self.lines.truncate(undo.kept);
                    self.lines.extend(undo.cut);
                }
                Ok(())
            }
        }
    }

    /// The transcript as the last event left it.
    pub fn into_lines(self) -> Vec<Line> {
        self.lines
    }

    fn edit(&mut self, turn: TurnId, edit: Edit) -> Result<(), FoldError> {
        if self.undo.as_ref().is_none_or(|undo| undo.turn != turn) {
            self.undo = Some(Undo { turn, kept: self.lines.len(), cut: Vec::new() });
        }
        if let Some(undo) = &mut self.undo
            && edit.keep < undo.kept
        {
            let mut cut = self.lines[edit.keep..undo.kept].to_vec();
            cut.append(&mut undo.cut);
            undo.cut = cut;
            undo.kept = edit.keep;
        }
        edit.apply(&mut self.lines)
    }
}

const ARRAY_BRACKETS: usize = 2;
const ARRAY_COMMA: usize = 1;

#[cfg(test)]
mod tests {
    use super::{Edit, Entry, Fold, FoldError, Folding};
    use crate::id::TurnId;
    use crate::json::Json;

    fn entry(n: usize) -> Entry {
        Entry::Final { output: Json::from_trusted(n.to_string()) }
    }

    fn lens(edits: &[Edit]) -> Vec<(usize, usize, usize)> {
        edits.iter().map(|edit| (edit.keep, edit.entries.len(), edit.length)).collect()
    }

    #[test]
    fn splits_at_the_limit_and_lets_a_large_entry_stand_alone() {
        let len = |entry: &Entry| if *entry == self::entry(3) { 1000 } else { 9 };
        let edits = Edit::append(4, (0..6).map(entry).collect()).split(32, len);
        assert_eq!(lens(&edits), [(4, 3, 7), (7, 1, 8), (8, 2, 10)]);
        let mut folded: Vec<_> = (10..14).map(entry).collect();
        for edit in edits {
            edit.apply(&mut folded).unwrap();
        }
        assert_eq!(folded, (10..14).chain(0..6).map(entry).collect::<Vec<_>>());
    }

    #[test]
    fn a_cut_is_one_edit() {
        let edits = Edit::append(1, Vec::new()).split(32, |_| 9);
        assert_eq!(lens(&edits), [(1, 0, 1)]);
        let mut folded = vec![entry(0), entry(1)];
        edits.into_iter().for_each(|edit| edit.apply(&mut folded).unwrap());
        assert_eq!(folded, [entry(0)]);
    }

    #[test]
    fn refuses_what_does_not_fit_and_changes_nothing() {
        let mut folded = vec![entry(0)];
        let too_far = Edit::append(2, vec![entry(1)]).apply(&mut folded);
        assert_eq!(too_far, Err(FoldError::KeepTooLarge { keep: 2, entries: 1 }));
        let other = Edit { keep: 0, entries: vec![entry(1)], length: 2 }.apply(&mut folded);
        assert_eq!(other, Err(FoldError::OtherLength { named: 2, given: 1 }));
        assert_eq!(folded, [entry(0)]);
    }
    fn folded(events: &[Folding]) -> Vec<Entry> {
        let mut fold = Fold::default();
        events.iter().cloned().for_each(|event| fold.take(event).unwrap());
        fold.into_lines().iter().map(|line| line.entry().clone()).collect()
    }

    #[test]
    fn a_turn_that_came_to_nothing_is_undone_even_after_it_replaced_everything() {
        let turn = |id: &str| TurnId::from_trusted(id);
        let edit = |of: &str, keep, numbers: std::ops::Range<usize>| {
            Folding::Edit(turn(of), Edit::append(keep, numbers.map(entry).collect()))
        };
        let before = [edit("a", 0, 0..4)];
        let snapshot = [edit("b", 4, 4..5), edit("b", 2, 10..12), edit("b", 0, 20..21), edit("b", 1, 21..23)];
        let after = |end: &[Folding]| folded(&[&before[..], &snapshot, end].concat());
        assert_eq!(after(&[]), (20..23).map(entry).collect::<Vec<_>>());
        assert_eq!(after(&[Folding::Undo(turn("b"))]), (0..4).map(entry).collect::<Vec<_>>());
        // Another turn's end undoes nothing, and what is undone is undone once.
        assert_eq!(after(&[Folding::Undo(turn("c"))]), (20..23).map(entry).collect::<Vec<_>>());
        let next = [Folding::Undo(turn("b")), edit("c", 4, 30..31), Folding::Undo(turn("b"))];
        assert_eq!(after(&next), (0..4).chain(30..31).map(entry).collect::<Vec<_>>());
    }
}
