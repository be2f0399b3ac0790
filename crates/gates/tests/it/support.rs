//! What the tests share.

use std::sync::{Arc, Mutex};

use nylorun_domain::id::{AgentId, EffectId, InvocationId, SessionId, TurnId};
use nylorun_domain::model::{Prompt, PromptItem};
use nylorun_ports::models::{Delta, DeltaSink, ModelCall};

/// Keeps what it is given.
#[derive(Debug, Default)]
pub struct Deltas(Mutex<Vec<Delta>>);

impl Deltas {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn all(&self) -> Vec<Delta> {
        self.0.lock().unwrap().clone()
    }

    /// The text of one attempt.
    pub fn text(&self, attempt: u32) -> String {
        self.all().into_iter().filter(|delta| delta.attempt == attempt).map(|delta| delta.text).collect()
    }
}

impl DeltaSink for Deltas {
    fn delta(&self, delta: Delta) {
        self.0.lock().unwrap().push(delta);
    }
}

pub fn prompt(items: Vec<PromptItem>) -> Prompt {
    Prompt { instructions: Vec::new(), items, tools: Vec::new(), output_schema: None }
}

pub fn user(text: &str) -> PromptItem {
    PromptItem::User(vec![text.into()])
}

pub fn call(prompt: Prompt) -> ModelCall {
    ModelCall {
        session_id: SessionId::from_trusted("session-1"),
        turn_id: TurnId::from_trusted("turn-1"),
        agent_id: AgentId::from_trusted("agent-1"),
        epoch: 1,
        effect_id: EffectId::from_trusted("turn-1:0:model:invocation-1"),
        invocation_id: InvocationId::from_trusted("invocation-1"),
        prompt,
    }
}
