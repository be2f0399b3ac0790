//! The model's history, as a harness reads it and edits it (engine a.3, a.6).

use nylorun_domain::transcript::{Edit, Entry};

use super::shape::{Malformed, Shape, shapes, valued};
use crate::transcript::{entry_from_node, entry_to_value};

valued! {
    Entry: entry_to_value, entry_from_node;
}

shapes! {
    /// `transcript.read`
    TranscriptRead {
        /// The run.
        run_id: String = "runId",
    }

    /// The answer to `transcript.read`: the model's history before the segment.
    Transcript {
        /// Where it was read. No two transcripts of a session have the same.
        cursor: i64 = "cursor",
        /// The entries.
        entries: Vec<Entry> = "entries",
    }
}

/// `{keep, entries, length}`
impl Shape for Edit {
    fn write(&self, out: &mut String) {
        TranscriptUpdate { keep: self.keep, entries: self.entries.clone(), length: self.length }.write(out);
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let TranscriptUpdate { keep, entries, length } = TranscriptUpdate::read(text)?;
        Ok(Self { keep, entries, length })
    }
}

shapes! {
    /// One edit of the transcript.
    TranscriptUpdate {
        /// How many entries stay.
        keep: usize = "keep",
        /// What is added after them.
        entries: Vec<Entry> = "entries",
        /// How many entries there are then.
        length: usize = "length",
    }
}
