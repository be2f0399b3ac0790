//! Going on from a checkpoint: after a yield, or with answers to what was asked (engine b.6, rules 1 and 2).

use nylorun_domain::checkpoint::{Answer, Interaction, InteractionKind, Said, SavedCall};
use nylorun_domain::effect::ToolTarget;
use nylorun_domain::id::{EffectId, InvocationId};
use nylorun_domain::model::ToolCall;
use nylorun_domain::transcript::Entry;

use crate::plan::{CallState, Plan, Planned, Question};
use crate::run::{Phase, ResolveError, Run, failed};

impl Run {
    /// Goes on with the calls of the last answer, when some of them waited, else with the next step.
    pub(crate) fn resume(&mut self, saved: Vec<SavedCall>, answers: &[Answer]) {
        if saved.is_empty() {
            return self.next_step();
        }
        let calls = self.last_calls();
        if calls.len() != saved.len() {
            let message = "The checkpoint does not fit the record: its calls are not those of the last answer.";
            return self.end(failed("execution.incompatible", message));
        }
        let planned = calls.iter().zip(saved).map(|(call, saved)| self.take_up(call, saved, answers)).collect();
        self.begin_plan(Plan::new(planned));
    }

    /// The calls of the answer whose step is not done.
    fn last_calls(&self) -> Vec<ToolCall> {
        let last = self.history.entries().next_back();
        match last {
            Some(Entry::Candidate { candidate, .. }) => candidate.tool_calls().cloned().collect(),
            Some(Entry::Input(_) | Entry::ToolResults(_) | Entry::Compaction(_) | Entry::Final { .. }) | None => {
                Vec::new()
            }
        }
    }

    fn take_up(&mut self, call: &ToolCall, saved: SavedCall, answers: &[Answer]) -> Planned {
        let state = match saved {
            SavedCall::Done(outcome) => CallState::Done(outcome),
            SavedCall::Waiting(interaction) => {
                match answers.iter().find(|answer| answer.interaction_id == interaction.id) {
                    Some(answer) => self.answered(call, interaction, &answer.said),
                    None => CallState::Waiting(interaction),
                }
            }
        };
        Planned { call_id: call.call_id.clone(), tool_name: call.name.clone(), state }
    }

    /// A call becomes an effect once its question is answered, also when it is denied: its outcome is recorded then.
    fn answered(&mut self, call: &ToolCall, interaction: Interaction, said: &Said) -> CallState {
        let mut request = self.toolbox.request(call, self.step).request;
        match (said, &interaction.kind) {
            (Said::Approved, InteractionKind::Approval) => {}
            (Said::Denied, InteractionKind::Approval) => request.target = ToolTarget::Denied,
            (Said::Value(value), InteractionKind::Other(_)) => request.resume = Some(value.clone()),
            (Said::Value(_), InteractionKind::Approval)
            | (Said::Approved | Said::Denied, InteractionKind::Other(_)) => {
                return CallState::Waiting(interaction);
            }
        }
        CallState::Open(self.want_tool(interaction.invocation_id, request))
    }

    /// A tool asks: its call waits, and becomes an effect of the next segment with the answer.
    pub(crate) fn tool_asked(&mut self, id: &EffectId, kind: String, prompt: String) -> Result<(), ResolveError> {
        let not_open = || ResolveError::NotOpen(id.clone());
        let Phase::Tools(plan) = &self.phase else { return Err(not_open()) };
        // The last part of an effect's id.
        let invocation_id = InvocationId::from_trusted(id.as_str().rsplit(':').next().unwrap_or_default());
        let question = Question { id: self.scope.interaction_id(&invocation_id), invocation_id, kind, prompt };
        let interaction = plan.question(id, question).ok_or_else(not_open)?;
        self.tool_answered(id, CallState::Waiting(interaction))
    }
}
