//! Effects as the journal is asked for them (engine a.3, a.4, a.5).

use std::borrow::Cow;

use nylorun_domain::effect::{EffectKind, Intent, IntentRequest, ToolRefusal, ToolRequest, ToolScope, ToolTarget};
use nylorun_domain::hash::sha256_hex;
use nylorun_domain::id::{AgentId, CallId, EffectId, InvocationId, SessionId, TurnId};
use nylorun_domain::json::{Json, Node, Value, member_of, parse_envelope};

use super::shape::{JsonObject, Malformed, Shape, document, read_word, shapes};

shapes! {
    /// One effect, as core is asked for it. A model's prompt stays away: the hash alone binds it (engine a.11, rule 2).
    EffectIntent {
        /// The effect.
        effect_id: EffectId = "effectId",
        /// The session.
        session_id: SessionId = "sessionId",
        /// The turn.
        turn_id: TurnId = "turnId",
        /// The agent whose turn it is.
        agent_id: AgentId = "agentId",
        /// The hash of the turn's manifest.
        manifest_hash: String = "manifestHash",
        /// The kind.
        kind: EffectKind = "kind",
        /// The agent used as a tool that wants it.
        agent: Option<ChildAgent> = "agent",
        /// The capability that declares the tool.
        capability_id: Option<String> = "capabilityId",
        /// The tool.
        tool_name: Option<String> = "toolName",
        /// Where in a flow.
        path: Option<String> = "path",
        /// Which part of a flow.
        key: Option<String> = "key",
        /// Which passes of a flow's loops.
        iterations: Option<Json> = "iterations",
        /// The tool's input, byte for byte; never a prompt.
        input: Option<Json> = "input",
        /// What else tells two effects apart.
        context: JsonObject = "context",
    }

    /// An agent used as a tool.
    ChildAgent {
        /// Its id.
        id: AgentId = "id",
        /// Where it stands in the manifest.
        path: String = "path",
        /// Which use of it.
        delegation_id: Option<String> = "delegationId",
    }

    /// `effect.intent`
    IntentRequested {
        /// The run.
        run_id: String = "runId",
        /// The effect.
        effect: EffectIntent = "effect",
        /// The hash of the whole effect, with a model's prompt.
        request_hash: RequestHash = "requestHash",
    }
}

/// The run that an effect belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectScope {
    /// The session.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: TurnId,
    /// Its agent.
    pub agent_id: AgentId,
    /// The hash of its manifest.
    pub manifest_hash: String,
    /// The segment.
    pub segment: u32,
}

impl EffectIntent {
    /// The form of an intent.
    pub fn of(intent: &Intent, scope: &EffectScope) -> Self {
        let (context, tool) = match &intent.request {
            IntentRequest::Model => (model_context(&intent.invocation_id, None), None),
            IntentRequest::Summary => {
                (model_context(&intent.invocation_id, Some(("compaction", Value::Bool(true)))), None)
            }
            IntentRequest::Tool(request) => {
                let EffectScope { session_id, turn_id, segment, .. } = scope;
                let of_turn =
                    ToolScope { session_id: session_id.as_str(), turn_id: turn_id.as_str(), segment: *segment };
                (request.context(of_turn, &intent.id, &intent.invocation_id), Some(request))
            }
        };
        Self {
            effect_id: intent.id.clone(),
            session_id: scope.session_id.clone(),
            turn_id: scope.turn_id.clone(),
            agent_id: scope.agent_id.clone(),
            manifest_hash: scope.manifest_hash.clone(),
            kind: intent.request.kind(),
            agent: None,
            capability_id: tool.map(|tool| tool.capability_id.clone()),
            tool_name: tool.map(|tool| tool.tool_name.clone()),
            path: None,
            key: None,
            iterations: None,
            input: tool.map(|tool| tool.input.clone()),
            context: JsonObject(context.to_json()),
        }
    }

    /// Whether it is an effect of this run.
    pub fn is_of(&self, scope: &EffectScope) -> bool {
        let ids = (&self.session_id, &self.turn_id, &self.agent_id);
        ids == (&scope.session_id, &scope.turn_id, &scope.agent_id) && self.manifest_hash == scope.manifest_hash
    }

    /// The hash of a request that crosses whole: of anything but a model call (engine a.5).
    pub fn hash(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        let mut members = match parse_envelope(&text) {
            Ok(Value::Object(members)) => members,
            Ok(_) | Err(_) => Vec::new(),
        };
        if self.kind == EffectKind::Delegation {
            members.retain(|(name, _)| *name != "context");
        }
        sha256_hex(Value::Object(members).canonical().as_bytes())
    }

    /// The intent, where `target` says where the tool of a name runs by the turn's manifest.
    ///
    /// # Errors
    /// It is of a kind that is not built, or lacks what its kind needs.
    pub fn intent(
        &self,
        request_hash: &RequestHash,
        target: impl FnOnce(&str) -> ToolTarget,
    ) -> Result<Intent, Malformed> {
        let context = document(self.context.0.as_str())?;
        let context = context.root();
        let request = match self.kind {
            EffectKind::Model if context.get("compaction").is_some() => IntentRequest::Summary,
            EffectKind::Model => IntentRequest::Model,
            EffectKind::Tool => IntentRequest::Tool(self.tool(context, target)?),
            EffectKind::Delegation | EffectKind::Agent | EffectKind::Steer => {
                return Err(Malformed::new(format!("may not be {:?} yet", self.kind.as_str())).within("kind"));
            }
        };
        Ok(Intent {
            id: self.effect_id.clone(),
            invocation_id: InvocationId::from_trusted(text(context, "invocationId")?),
            request,
            request_hash: request_hash.as_str().to_owned(),
        })
    }

    fn tool(&self, context: Node<'_>, target: impl FnOnce(&str) -> ToolTarget) -> Result<ToolRequest, Malformed> {
        let missing = |name: &str| Malformed::new("is missing for a tool").within(name);
        let tool_name = self.tool_name.clone().ok_or_else(|| missing("toolName"))?;
        let step = text(context, "stepId")?.rsplit(':').next().and_then(|step| step.parse().ok());
        let target = match context.get("refused").and_then(Node::as_str) {
            None => target(&tool_name),
            Some(word) => ToolRefusal::from_wire(&word)
                .ok_or_else(|| Malformed::new(format!("may not be {word:?}")).within("context.refused"))?
                .into(),
        };
        Ok(ToolRequest {
            step: step.ok_or_else(|| Malformed::new("does not end in a step's number").within("context.stepId"))?,
            call_id: CallId::from_trusted(text(context, "callId")?),
            tool_name,
            capability_id: self.capability_id.clone().ok_or_else(|| missing("capabilityId"))?,
            input: self.input.clone().ok_or_else(|| missing("input"))?,
            target,
            resume: member_of(self.context.0.as_str(), "resume").map(Json::from_trusted),
        })
    }
}

fn model_context(invocation_id: &InvocationId, more: Option<(&'static str, Value)>) -> Value {
    let own = [("invocationId", Value::from(invocation_id.as_str()))];
    Value::object(own.into_iter().chain(more))
}

fn text<'d>(context: Node<'d>, name: &'static str) -> Result<Cow<'d, str>, Malformed> {
    let missing = || Malformed::new("is missing").within(name).within("context");
    context.get(name).and_then(Node::as_str).ok_or_else(missing)
}

impl Shape for EffectKind {
    fn write(&self, out: &mut String) {
        self.as_str().to_owned().write(out);
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        read_word(text, Self::from_wire)
    }
}

/// 64 lowercase hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHash(String);

impl RequestHash {
    /// A hash that this program computed.
    pub fn from_trusted(hash: impl Into<String>) -> Self {
        Self(hash.into())
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub(super) fn is_sha256_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Shape for RequestHash {
    fn write(&self, out: &mut String) {
        self.0.write(out);
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let hash = String::read(text)?;
        let refused = || Malformed::new("must be 64 lowercase hexadecimal digits");
        if is_sha256_hex(&hash) { Ok(Self(hash)) } else { Err(refused()) }
    }
}
