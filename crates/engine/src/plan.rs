//! The tool calls of one answer, and how far they are.

use nylorun_domain::checkpoint::{Interaction, InteractionKind, SavedCall};
use nylorun_domain::id::{CallId, EffectId, InteractionId, InvocationId};
use nylorun_domain::model::ToolResult;
use nylorun_domain::tool::ToolOutcome;

use crate::run::ResolveError;

/// The calls of one answer, in the model's order.
#[derive(Debug)]
pub(crate) struct Plan {
    calls: Vec<Planned>,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The call as the model named it.
    pub(crate) call_id: CallId,
    /// Its tool.
    pub(crate) tool_name: String,
    /// How far it is.
    pub(crate) state: CallState,
}

/// Where one call stands.
#[derive(Debug)]
pub(crate) enum CallState {
    /// Its effect runs, or is to run.
    Open(EffectId),
    /// It has its outcome.
    Done(ToolOutcome),
    /// It may or may not have happened.
    Uncertain,
    /// It waits for a person, before it becomes an effect.
    Waiting(Interaction),
}

/// What a tool asks.
pub(crate) struct Question {
    pub(crate) id: InteractionId,
    pub(crate) invocation_id: InvocationId,
    pub(crate) kind: String,
    pub(crate) prompt: String,
}

/// Where a plan stands.
pub(crate) enum Standing {
    /// A call is open.
    Open,
    /// No call is open, and one is uncertain.
    Uncertain,
    /// No call is open or uncertain, and one waits for a person.
    Waiting,
    /// All have outcomes: their results, in the model's order.
    Done(Vec<ToolResult>),
}

impl Plan {
    /// The plan of these calls.
    pub(crate) fn new(calls: Vec<Planned>) -> Self {
        Self { calls }
    }

    /// Whether this effect is open.
    pub(crate) fn has(&self, id: &EffectId) -> bool {
        self.calls.iter().any(|call| call.is_open(id))
    }

    /// The question of an open call: a tool asks.
    pub(crate) fn question(&self, id: &EffectId, question: Question) -> Option<Interaction> {
        let call = self.calls.iter().find(|call| call.is_open(id))?;
        Some(Interaction {
            id: question.id,
            invocation_id: question.invocation_id,
            call_id: call.call_id.clone(),
            tool_name: call.tool_name.clone(),
            kind: InteractionKind::Other(question.kind),
            prompt: question.prompt,
        })
    }

    /// Whether a call is uncertain.
    pub(crate) fn has_uncertain(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.state, CallState::Uncertain))
    }

    /// Takes what became of an open call.
    pub(crate) fn settle(&mut self, id: &EffectId, state: CallState) -> Result<(), ResolveError> {
        let call = self.calls.iter_mut().find(|call| call.is_open(id));
        call.ok_or_else(|| ResolveError::NotOpen(id.clone()))?.state = state;
        Ok(())
    }

    /// Where the plan stands.
    pub(crate) fn standing(&self) -> Standing {
        let is_any = |wanted: fn(&CallState) -> bool| self.calls.iter().any(|call| wanted(&call.state));
        if is_any(|state| matches!(state, CallState::Open(_))) {
            return Standing::Open;
        }
        if self.has_uncertain() {
            return Standing::Uncertain;
        }
        let results: Option<Vec<_>> = self.calls.iter().map(Planned::result).collect();
        results.map_or(Standing::Waiting, Standing::Done)
    }

    /// What waits for people, in the model's order.
    pub(crate) fn interactions(&self) -> Vec<Interaction> {
        let waiting = self.calls.iter().filter_map(|call| match &call.state {
            CallState::Waiting(interaction) => Some(interaction.clone()),
            CallState::Open(_) | CallState::Done(_) | CallState::Uncertain => None,
        });
        waiting.collect()
    }

    /// The calls as a checkpoint keeps them. Only a plan in which no call is open or uncertain is saved.
    pub(crate) fn save(&self) -> Vec<SavedCall> {
        let calls = self.calls.iter().filter_map(|call| match &call.state {
            CallState::Done(outcome) => Some(SavedCall::Done(outcome.clone())),
            CallState::Waiting(interaction) => Some(SavedCall::Waiting(interaction.clone())),
            CallState::Open(_) | CallState::Uncertain => None,
        });
        calls.collect()
    }
}

impl Planned {
    fn is_open(&self, id: &EffectId) -> bool {
        matches!(&self.state, CallState::Open(open) if open == id)
    }

    fn result(&self) -> Option<ToolResult> {
        match &self.state {
            CallState::Open(_) | CallState::Uncertain | CallState::Waiting(_) => None,
            CallState::Done(outcome) => Some(ToolResult {
                call_id: self.call_id.clone(),
                name: self.tool_name.clone(),
                outcome: outcome.clone(),
            }),
        }
    }
}
