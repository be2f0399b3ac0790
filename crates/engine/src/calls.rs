//! Ids of tool calls: the model's own, where they can be used.

use std::collections::HashSet;

use nylorun_domain::id::{CallId, InvocationId};
use nylorun_domain::model::{Candidate, OutputPart};
use nylorun_domain::transcript::{Entry, Line};

/// The call ids that a session has used, as far as its transcript tells.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    used: HashSet<CallId>,
    memory: Memory,
}

/// Whether the transcript still tells all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Memory {
    #[default]
    Whole,
    /// Entries were compacted: an id of the model's own may have been used before.
    Compacted,
}

impl CallIds {
    /// The ids that a transcript holds.
    pub(crate) fn of(transcript: &[Line]) -> Self {
        let candidates = transcript.iter().filter_map(|line| match line.entry() {
            Entry::Candidate { candidate, .. } => Some(candidate),
            Entry::Input(_) | Entry::ToolResults(_) | Entry::Compaction(_) | Entry::Final { .. } => None,
        });
        let used = candidates.flat_map(|candidate| candidate.tool_calls()).map(|call| call.call_id.clone()).collect();
        let is_compacted = transcript.iter().any(|line| matches!(line.entry(), Entry::Compaction(_)));
        Self { used, memory: if is_compacted { Memory::Compacted } else { Memory::Whole } }
    }

    /// Takes note that entries were compacted.
    pub(crate) fn forget_some(&mut self) {
        self.memory = Memory::Compacted;
    }

    /// Gives every call of an answer an id that the session has not used. An id that is new and well formed stays, so
    /// naming an answer that was named before changes nothing.
    pub(crate) fn name_calls(&mut self, mut candidate: Candidate, invocation_id: &InvocationId) -> Candidate {
        let calls = candidate.parts.iter_mut().filter_map(|part| match part {
            OutputPart::ToolCall(call) => Some(call),
            OutputPart::Text(_) | OutputPart::Reasoning { .. } => None,
        });
        for (index, call) in calls.enumerate() {
            if !self.is_new(&call.call_id, invocation_id) {
                call.call_id = self.fresh(invocation_id, index);
            }
            self.used.insert(call.call_id.clone());
        }
        candidate
    }

    fn is_new(&self, id: &CallId, invocation_id: &InvocationId) -> bool {
        let may_be_new = match self.memory {
            Memory::Whole => true,
            // One that was made here for this very answer.
            Memory::Compacted => id.as_str().starts_with(&format!("call_{invocation_id}_")),
        };
        may_be_new && CallId::parse(id.as_str()).is_ok() && !self.used.contains(id)
    }

    /// `call_<invocation id>_<index>`; a model that answers with just such an id makes the index go on.
    fn fresh(&self, invocation_id: &InvocationId, index: usize) -> CallId {
        let ids = (index..).map(|n| CallId::from_trusted(format!("call_{invocation_id}_{n}")));
        ids.into_iter()
            .find(|id| !self.used.contains(id))
            .unwrap_or_else(|| CallId::from_trusted(invocation_id.as_str()))
    }
}
