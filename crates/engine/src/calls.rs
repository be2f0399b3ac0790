//! Ids of tool calls: the model's own, where they can be used.

use std::collections::HashSet;

use nylorun_domain::id::{CallId, InvocationId};
use nylorun_domain::model::{Candidate, OutputPart};
use nylorun_domain::transcript::Entry;

/// The call ids that a session has used.
#[derive(Debug, Default)]
pub(crate) struct CallIds(HashSet<CallId>);

impl CallIds {
    /// The ids that a transcript holds.
    pub(crate) fn of(transcript: &[Entry]) -> Self {
        let candidates = transcript.iter().filter_map(|entry| match entry {
            Entry::Candidate { candidate, .. } => Some(candidate),
            Entry::Input(_) | Entry::ToolResults(_) | Entry::Final { .. } => None,
        });
        Self(candidates.flat_map(Candidate::tool_calls).map(|call| call.call_id.clone()).collect())
    }

    /// Gives every call of an answer an id that the session has not used. An id that is new and well formed stays, so
    /// naming an answer that was named before changes nothing.
    pub(crate) fn name_calls(&mut self, mut candidate: Candidate, invocation_id: &InvocationId) -> Candidate {
        let calls = candidate.parts.iter_mut().filter_map(|part| match part {
            OutputPart::ToolCall(call) => Some(call),
            OutputPart::Text(_) | OutputPart::Reasoning { .. } => None,
        });
        for (index, call) in calls.enumerate() {
            if CallId::parse(call.call_id.as_str()).is_err() || self.0.contains(&call.call_id) {
                call.call_id = self.fresh(invocation_id, index);
            }
            self.0.insert(call.call_id.clone());
        }
        candidate
    }

    /// `call_<invocation id>_<index>`; a model that answers with just such an id makes the index go on.
    fn fresh(&self, invocation_id: &InvocationId, index: usize) -> CallId {
        let ids = (index..).map(|n| CallId::from_trusted(format!("call_{invocation_id}_{n}")));
        ids.into_iter().find(|id| !self.0.contains(id)).unwrap_or_else(|| CallId::from_trusted(invocation_id.as_str()))
    }
}
