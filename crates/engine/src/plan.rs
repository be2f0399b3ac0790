//! The tool calls of one answer, and how far they are.

use nylorun_domain::effect::{Effect, EffectRequest};
use nylorun_domain::id::{CallId, EffectId};
use nylorun_domain::model::ToolResult;
use nylorun_domain::tool::ToolOutcome;

use crate::run::ResolveError;

/// The calls of one answer, in the model's order.
#[derive(Debug)]
pub(crate) struct Plan {
    calls: Vec<Planned>,
}

#[derive(Debug)]
struct Planned {
    effect_id: EffectId,
    call_id: CallId,
    tool_name: String,
    state: CallState,
}

/// Where one call stands.
#[derive(Debug)]
pub(crate) enum CallState {
    /// It runs, or is to run.
    Open,
    /// It has its outcome.
    Done(ToolOutcome),
    /// It may or may not have happened.
    Uncertain,
}

/// Where a plan stands.
pub(crate) enum Standing {
    /// A call is open.
    Open,
    /// No call is open, and one is uncertain.
    Uncertain,
    /// All have outcomes: their results, in the model's order.
    Done(Vec<ToolResult>),
}

impl Plan {
    /// The plan of these tool effects.
    pub(crate) fn new(effects: &[Effect]) -> Self {
        let calls = effects.iter().filter_map(|effect| match &effect.request {
            EffectRequest::Tool(request) => Some(Planned {
                effect_id: effect.id.clone(),
                call_id: request.call_id.clone(),
                tool_name: request.tool_name.clone(),
                state: CallState::Open,
            }),
            EffectRequest::Model(_) => None,
        });
        Self { calls: calls.collect() }
    }

    /// Whether this effect is one of the plan's.
    pub(crate) fn has(&self, id: &EffectId) -> bool {
        self.calls.iter().any(|call| call.effect_id == *id)
    }

    /// Whether a call is uncertain.
    pub(crate) fn has_uncertain(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.state, CallState::Uncertain))
    }

    /// Takes what became of an open call.
    pub(crate) fn settle(&mut self, id: &EffectId, state: CallState) -> Result<(), ResolveError> {
        let open = |call: &&mut Planned| call.effect_id == *id && matches!(call.state, CallState::Open);
        let call = self.calls.iter_mut().find(open).ok_or_else(|| ResolveError::NotOpen(id.clone()))?;
        call.state = state;
        Ok(())
    }

    /// Where the plan stands.
    pub(crate) fn standing(&self) -> Standing {
        if self.calls.iter().any(|call| matches!(call.state, CallState::Open)) {
            return Standing::Open;
        }
        let results: Option<Vec<_>> = self.calls.iter().map(Planned::result).collect();
        results.map_or(Standing::Uncertain, Standing::Done)
    }
}

impl Planned {
    fn result(&self) -> Option<ToolResult> {
        match &self.state {
            CallState::Open | CallState::Uncertain => None,
            CallState::Done(outcome) => Some(ToolResult {
                call_id: self.call_id.clone(),
                name: self.tool_name.clone(),
                outcome: outcome.clone(),
            }),
        }
    }
}
