//! Ids and hashes of effects: the same at every replay (engine a.5, b.2).

use nylorun_domain::checkpoint::{Interaction, InteractionKind};
use nylorun_domain::compaction::Trigger;
use nylorun_domain::effect::{EffectKind, ToolRequest, ToolScope};
use nylorun_domain::hash::sha256_hex;
use nylorun_domain::id::{EffectId, InteractionId, InvocationId};
use nylorun_domain::json::Value;
use nylorun_domain::model::{Prompt, PromptItem, UserPart};

use crate::run::Start;

/// Length of an invocation id: 128 bits in hexadecimal.
const INVOCATION_ID_LEN: usize = 32;

/// What all effects of a segment have in common.
#[derive(Debug)]
pub(crate) struct Scope {
    session_id: String,
    turn_id: String,
    agent_id: String,
    manifest_hash: String,
    segment: u32,
}

/// One call of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StepCall {
    /// The step's model call.
    Model,
    /// The tool call at this place of the model's answer.
    Tool(usize),
}

impl Scope {
    /// The scope of a segment.
    pub(crate) fn new(start: &Start) -> Self {
        Self {
            session_id: start.session_id.as_str().to_owned(),
            turn_id: start.turn_id.as_str().to_owned(),
            agent_id: start.agent_id.as_str().to_owned(),
            manifest_hash: start.manifest.hash.clone(),
            segment: start.segment,
        }
    }

    /// The ids of a call: where it stands in the turn decides them, never when it is made.
    pub(crate) fn call(&self, kind: EffectKind, step: u32, call: StepCall) -> (EffectId, InvocationId) {
        let Self { turn_id, segment, .. } = self;
        let place = match call {
            StepCall::Model => format!("{turn_id}_{segment}:{step}"),
            StepCall::Tool(index) => format!("{turn_id}_{segment}:{step}:{index}"),
        };
        let mut invocation_id = sha256_hex(place.as_bytes());
        invocation_id.truncate(INVOCATION_ID_LEN);
        let invocation_id = InvocationId::from_trusted(invocation_id);
        (self.effect_id(kind, &invocation_id), invocation_id)
    }

    /// The effect of a call in this segment. A call that waited for a person keeps its own id from an earlier one.
    pub(crate) fn effect_id(&self, kind: EffectKind, invocation_id: &InvocationId) -> EffectId {
        let Self { turn_id, segment, .. } = self;
        EffectId::from_trusted(format!("{turn_id}:{segment}:{}:{invocation_id}", kind.as_str()))
    }

    /// The question that a call of this segment asks.
    pub(crate) fn interaction_id(&self, invocation_id: &InvocationId) -> InteractionId {
        let Self { turn_id, segment, .. } = self;
        InteractionId::from_trusted(format!("{turn_id}:{segment}:interaction:{invocation_id}"))
    }

    /// The question whether a call may run.
    pub(crate) fn approval(&self, invocation_id: InvocationId, request: &ToolRequest) -> Interaction {
        Interaction {
            id: self.interaction_id(&invocation_id),
            invocation_id,
            call_id: request.call_id.clone(),
            tool_name: request.tool_name.clone(),
            kind: InteractionKind::Approval,
            prompt: format!("Allow this call of the tool {}?", request.tool_name),
        }
    }

    /// The request hash of a model call, bound to its prompt by the prompt's digests.
    pub(crate) fn model_hash(&self, id: &EffectId, invocation_id: &InvocationId, prompt: Value) -> String {
        let context = Value::object([("invocationId", Value::from(invocation_id.as_str()))]);
        self.hash(id, EffectKind::Model, [("input", prompt), ("context", context)])
    }

    /// The id of a summary call before this step: `compaction-<stepId>[-overflow][-n]`.
    pub(crate) fn summary_id(&self, step: u32, trigger: Trigger, part: usize) -> InvocationId {
        let Self { turn_id, segment, .. } = self;
        let overflow = match trigger {
            Trigger::Threshold => "",
            Trigger::Overflow => "-overflow",
        };
        let part = if part > 1 { format!("-{part}") } else { String::new() };
        InvocationId::from_trusted(format!("compaction-{turn_id}_{segment}:{step}{overflow}{part}"))
    }

    /// The request hash of a summary call of this part, from 1, of so many.
    pub(crate) fn summary_hash(
        &self,
        id: &EffectId,
        invocation_id: &InvocationId,
        prompt: &Prompt,
        (part, parts): (usize, usize),
    ) -> String {
        let count = |number: usize| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
        let compaction = Value::object([("part", count(part)), ("parts", count(parts))]);
        let context =
            Value::object([("invocationId", Value::from(invocation_id.as_str())), ("compaction", compaction)]);
        let texts = prompt.items().flat_map(|item| match item {
            PromptItem::User(parts) => parts.clone(),
            PromptItem::Assistant(_) | PromptItem::ToolResults(_) => Vec::new(),
        });
        let texts = texts.filter_map(|part| match part {
            UserPart::Text(text) => Some(Value::from(text)),
            // A summary is asked for in words.
            UserPart::Image(_) => None,
        });
        let instructions = prompt.instructions.iter().map(|text| Value::from(text.as_str()));
        let input = Value::object([
            ("instructions", Value::Array(instructions.collect())),
            ("items", Value::Array(texts.collect())),
        ]);
        self.hash(id, EffectKind::Model, [("input", input), ("context", context)])
    }

    /// The request hash of a tool call.
    pub(crate) fn tool_hash(&self, id: &EffectId, invocation_id: &InvocationId, request: &ToolRequest) -> String {
        let scope = ToolScope { session_id: &self.session_id, turn_id: &self.turn_id, segment: self.segment };
        let members = [
            ("capabilityId", Value::from(request.capability_id.as_str())),
            ("toolName", Value::from(request.tool_name.as_str())),
            ("input", request.input.value()),
            ("context", request.context(scope, id, invocation_id)),
        ];
        self.hash(id, EffectKind::Tool, members)
    }

    fn hash(&self, id: &EffectId, kind: EffectKind, own: impl IntoIterator<Item = (&'static str, Value)>) -> String {
        let common = [
            ("effectId", Value::from(id.as_str())),
            ("sessionId", Value::from(self.session_id.as_str())),
            ("turnId", Value::from(self.turn_id.as_str())),
            ("agentId", Value::from(self.agent_id.as_str())),
            ("manifestHash", Value::from(self.manifest_hash.as_str())),
            ("kind", Value::from(kind.as_str())),
        ];
        sha256_hex(Value::object(common.into_iter().chain(own)).canonical().as_bytes())
    }
}
