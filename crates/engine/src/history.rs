//! The transcript: as the segment found it, and what became of it.

use std::sync::Arc;

use nylorun_domain::transcript::{Edit, Entry, Line};

/// A transcript that grows.
#[derive(Debug)]
pub(crate) struct History {
    found: Arc<Vec<Line>>,
    /// How many entries of `found` still begin the transcript.
    keep: usize,
    added: Vec<Line>,
    turn_start: usize,
}

impl History {
    /// The transcript of a segment whose turn's entries begin at `turn_start`.
    pub(crate) fn new(found: Arc<Vec<Line>>, turn_start: usize) -> Self {
        let keep = found.len();
        Self { found, keep, added: Vec::new(), turn_start: turn_start.min(keep) }
    }

    /// Where the turn's entries begin.
    pub(crate) fn turn_start(&self) -> usize {
        self.turn_start
    }

    /// All entries, oldest first.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.found[..self.keep].iter().chain(&self.added).map(Line::entry)
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, line: Line) {
        self.added.push(line);
    }

    /// Replaces all entries.
    pub(crate) fn replace(&mut self, lines: Vec<Line>, turn_start: usize) {
        self.keep = 0;
        self.added = lines;
        self.turn_start = turn_start;
    }

    /// What the segment did to the transcript, if it did anything.
    pub(crate) fn edit(&self) -> Option<Edit> {
        let changed = self.keep < self.found.len() || !self.added.is_empty();
        let added = self.added.iter().map(|line| line.entry().clone());
        changed.then(|| Edit::append(self.keep, added.collect()))
    }
}
