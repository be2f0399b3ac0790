//! Sessions on the wire (api 2.2).

use std::collections::HashSet;

use nylorun_domain::check::{Path, ProblemCode, Problems};
use nylorun_domain::effect::EffectKind;
use nylorun_domain::grammar::parse_memory_mib;
use nylorun_domain::id::{AgentId, EffectId, MessageId, SessionId, TurnId, UserId};
use nylorun_domain::json::{Json, Text, Value};
use nylorun_domain::queue::QueuedMessage;
use nylorun_domain::time::Millis;
use nylorun_domain::transcript::Input;

use crate::body::{Body, missing, text_of, texts_of};

/// `PUT /v1/sessions/{id}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// The caller's name for this request.
    pub request_id: String,
    /// The agent whose definition the session pins.
    pub agent_id: AgentId,
    /// The person to whom the session belongs.
    pub owner_user_id: UserId,
    /// What the application notes about the session: an object, verbatim.
    pub info: Option<Json>,
    /// Vaults to attach; `None` keeps those that are attached.
    pub vault_ids: Option<Vec<String>>,
    /// Which credential serves which server; `None` keeps the selections.
    pub credential_selections: Option<Vec<CredentialSelection>>,
    /// The session's workspace.
    pub sandbox: SandboxChoice,
    /// SHA-256 of the canonical body without `requestId`, `vaultIds` and `credentialSelections`: what a repeated PUT
    /// must equal.
    pub identity: String,
}

/// A choice among several credentials for one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialSelection {
    /// The declared server.
    pub server_name: String,
    /// The credential that serves it.
    pub credential_id: String,
}

impl CredentialSelection {
    fn to_value(&self) -> Value {
        Value::object([
            ("serverName", Value::from(self.server_name.as_str())),
            ("credentialId", Value::from(self.credential_id.as_str())),
        ])
    }
}

/// Where a session's workspace comes from (sandbox-and-definitions a7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxChoice {
    /// Left out: the tenant's default.
    Default,
    /// `false`: none.
    None,
    /// Described here; each part that is left out takes the tenant's default.
    Inline {
        /// An image, on backends that take images.
        image: Option<String>,
        /// Host patterns that may be reached, as written.
        network_allow: Vec<String>,
        /// Processors, 1 to 64.
        cpus: Option<u32>,
        /// Memory, in MiB.
        memory_mib: Option<u32>,
    },
    /// `{id}`: an environment.
    Environment(String),
    /// `{session}`: another session's. Deprecated.
    Session(SessionId),
}

impl SandboxChoice {
    fn read(sandbox: Option<&Value>) -> Self {
        let Some(sandbox) = sandbox else { return Self::Default };
        if sandbox.as_bool() == Some(false) {
            return Self::None;
        }
        if let Some(id) = sandbox.get("id").and_then(Value::as_str) {
            return Self::Environment(id.to_owned());
        }
        if let Some(session) = sandbox.get("session").and_then(Value::as_str) {
            return Self::Session(SessionId::from_trusted(session));
        }
        let resources = sandbox.get("resources");
        let cpus = resources.and_then(|resources| resources.get("cpus")).and_then(Value::as_i64);
        let memory = resources.and_then(|resources| resources.get("memory")).and_then(Value::as_str);
        Self::Inline {
            image: sandbox.get("image").and_then(Value::as_str).map(str::to_owned),
            network_allow: sandbox.get("network").and_then(|network| texts_of(network, "allow")).unwrap_or_default(),
            cpus: cpus.and_then(|cpus| u32::try_from(cpus).ok()),
            memory_mib: memory.and_then(|memory| parse_memory_mib(memory).ok()),
        }
    }
}

impl OpenSession {
    /// Reads a body that follows the route's schema.
    pub fn read(body: &Body) -> Result<Self, Problems> {
        refuse_repetitions(body)?;
        let selections = body.value().get("credentialSelections").and_then(Value::as_array);
        Ok(Self {
            request_id: body.text("requestId")?,
            agent_id: AgentId::parse(&body.text("agentId")?).map_err(|_| missing("agentId"))?,
            owner_user_id: UserId::parse(&body.text("ownerUserId")?).map_err(|_| missing("ownerUserId"))?,
            info: body.json("info"),
            vault_ids: texts_of(body.value(), "vaultIds"),
            credential_selections: selections.map(read_selections).transpose()?,
            sandbox: SandboxChoice::read(body.value().get("sandbox")),
            identity: body.identity(&["requestId", "vaultIds", "credentialSelections"]),
        })
    }
}

/// No vault twice, and no server with two selections.
fn refuse_repetitions(body: &Body) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let items = |name| body.value().get(name).and_then(Value::as_array).unwrap_or_default();
    let vaults = Path::ROOT.name("vaultIds");
    for at in repeated(items("vaultIds").iter().map(Value::as_str)) {
        problems.add(ProblemCode::Custom, &vaults.index(at), "The vault is named twice");
    }
    let selections = Path::ROOT.name("credentialSelections");
    let servers = items("credentialSelections").iter().map(|item| item.get("serverName").and_then(Value::as_str));
    for at in repeated(servers) {
        problems.add(ProblemCode::Custom, &selections.index(at).name("serverName"), "The server is named twice");
    }
    problems.or(())
}

/// Where something stands that stood before.
fn repeated<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> Vec<usize> {
    let mut seen = HashSet::new();
    texts.enumerate().filter(|(_, text)| !seen.insert(*text)).map(|(at, _)| at).collect()
}

fn read_selections(items: &[Value]) -> Result<Vec<CredentialSelection>, Problems> {
    let read = |item| {
        Ok(CredentialSelection {
            server_name: text_of(item, "serverName")?,
            credential_id: text_of(item, "credentialId")?,
        })
    };
    items.iter().map(read).collect()
}

/// The session view: the answer of PUT and GET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// The session.
    pub id: SessionId,
    /// Its agent.
    pub agent_id: AgentId,
    /// Its owner.
    pub owner_user_id: UserId,
    /// Hash of the session's own copy of the definition.
    pub manifest_hash: String,
    /// Hash of the definition as it was saved, when the runtime added to the session's copy.
    pub definition_hash: Option<String>,
    /// As saved with the definition.
    pub implementation_version: String,
    /// The status's word.
    pub status: String,
    /// The turn that runs or waits.
    pub active_turn_id: Option<TurnId>,
    /// Attached vaults.
    pub vault_ids: Vec<String>,
    /// Chosen credentials.
    pub credential_selections: Vec<CredentialSelection>,
    /// The session whose workspace this one shares; `None` for its own (decisions, Small print).
    pub sandbox_owner_id: Option<SessionId>,
    /// The environment to which it is attached.
    pub sandbox_id: Option<String>,
    /// The pinned specification of its workspace.
    pub sandbox: Option<Json>,
    /// Where that came from: `default`, `inline`, `shared`, `sandbox`.
    pub sandbox_source: Option<String>,
    /// What its MCP servers offered.
    pub mcp_snapshot: Option<Json>,
    /// What is wrong with its MCP servers: objects.
    pub mcp_diagnostics: Vec<Json>,
    /// Interactions and linked sessions that are waited for.
    pub waits: Option<Json>,
    /// Why the last turn failed.
    pub error: Option<String>,
    /// Effects of which nobody knows whether they happened.
    pub uncertain_effects: Vec<UncertainEffect>,
    /// Messages that wait, in the order in which they are taken. Left out when there are none: clients up to protocol
    /// 10 refuse members that they do not know, and never let a message wait.
    pub queue: Vec<QueuedMessage>,
}

/// An effect of which nobody knows whether it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncertainEffect {
    /// The effect.
    pub effect_id: EffectId,
    /// Its turn.
    pub turn_id: TurnId,
    /// Its kind.
    pub kind: EffectKind,
    /// What is known of it.
    pub error: Option<String>,
}

impl UncertainEffect {
    fn to_value(&self) -> Value {
        Value::object([
            ("effectId", Value::from(self.effect_id.as_str())),
            ("turnId", Value::from(self.turn_id.as_str())),
            ("kind", Value::from(self.kind.as_str())),
            ("error", text_or_null(self.error.as_deref())),
        ])
    }
}

impl SessionView {
    /// The answer's body.
    pub fn to_value(&self) -> Value {
        let mut members = vec![
            ("id", Value::from(self.id.as_str())),
            ("agentId", Value::from(self.agent_id.as_str())),
            ("ownerUserId", Value::from(self.owner_user_id.as_str())),
            ("manifestHash", Value::from(self.manifest_hash.as_str())),
        ];
        push_text(&mut members, "definitionHash", self.definition_hash.as_deref());
        members.extend([
            ("implementationVersion", Value::from(self.implementation_version.as_str())),
            ("status", Value::from(self.status.as_str())),
            ("activeTurnId", text_or_null(self.active_turn_id.as_ref().map(TurnId::as_str))),
            ("vaultIds", Value::Array(self.vault_ids.iter().map(|id| Value::from(id.as_str())).collect())),
            (
                "credentialSelections",
                Value::Array(self.credential_selections.iter().map(CredentialSelection::to_value).collect()),
            ),
            ("sandboxOwnerId", text_or_null(self.sandbox_owner_id.as_ref().map(SessionId::as_str))),
        ]);
        push_text(&mut members, "sandboxId", self.sandbox_id.as_deref());
        members.push(("sandbox", json_or_null(self.sandbox.as_ref())));
        push_text(&mut members, "sandboxSource", self.sandbox_source.as_deref());
        members.push(("mcpSnapshot", json_or_null(self.mcp_snapshot.as_ref())));
        members.push(("mcpDiagnostics", Value::Array(self.mcp_diagnostics.iter().map(Json::value).collect())));
        if let Some(waits) = &self.waits {
            members.push(("waits", waits.value()));
        }
        push_text(&mut members, "error", self.error.as_deref());
        let uncertain = self.uncertain_effects.iter().map(UncertainEffect::to_value).collect();
        members.push(("uncertainEffects", Value::Array(uncertain)));
        if !self.queue.is_empty() {
            members.push(("queue", Value::Array(self.queue.iter().map(queued_to_value).collect())));
        }
        Value::object(members)
    }
}

/// `{id, mode, requestId, at, content | data | parts}`
fn queued_to_value(message: &QueuedMessage) -> Value {
    let input = match &message.input {
        Input::Content(text) => ("content", Value::from(text.clone())),
        Input::Data(data) => ("data", data.value()),
        Input::Parts(texts) => {
            let part = |text: &Text| Value::object([("type", Value::from("text")), ("text", text.clone().into())]);
            ("parts", Value::Array(texts.iter().map(part).collect()))
        }
    };
    Value::object([
        ("id", Value::from(message.id.as_str())),
        ("mode", Value::from(message.mode.as_str())),
        ("requestId", Value::from(message.request_id.as_str())),
        ("at", Value::from(message.at.to_iso().as_str())),
        input,
    ])
}

/// The answer to the removal of a message that waited: `{id, deleted: true}`.
pub fn removed(id: &MessageId) -> Value {
    Value::object([("id", Value::from(id.as_str())), ("deleted", Value::Bool(true))])
}

fn push_text(members: &mut Vec<(&'static str, Value)>, name: &'static str, text: Option<&str>) {
    if let Some(text) = text {
        members.push((name, Value::from(text)));
    }
}

pub(crate) fn text_or_null(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::from)
}

fn json_or_null(json: Option<&Json>) -> Value {
    json.map_or(Value::Null, Json::value)
}

/// One session of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The session.
    pub id: SessionId,
    /// Its agent.
    pub agent_id: AgentId,
    /// Its owner.
    pub owner_user_id: UserId,
    /// The status's word.
    pub status: String,
    /// The turn that runs or waits.
    pub active_turn_id: Option<TurnId>,
    /// The turn that ended last.
    pub last_turn_id: Option<TurnId>,
    /// When it was opened.
    pub created_at: Millis,
    /// When its last event was written.
    pub last_event_at: Option<Millis>,
}

impl Summary {
    fn members(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("id", Value::from(self.id.as_str())),
            ("agentId", Value::from(self.agent_id.as_str())),
            ("ownerUserId", Value::from(self.owner_user_id.as_str())),
            ("status", Value::from(self.status.as_str())),
            ("activeTurnId", text_or_null(self.active_turn_id.as_ref().map(TurnId::as_str))),
        ]
    }

    /// An element of the whole list.
    fn to_value(&self) -> Value {
        Value::object(self.members())
    }

    /// An element of a page. No session is in an environment of its own name yet: `sandboxId` is null.
    fn to_page_value(&self) -> Value {
        let mut members = self.members();
        members.push(("lastTurnId", text_or_null(self.last_turn_id.as_ref().map(TurnId::as_str))));
        members.push(("sandboxId", Value::Null));
        members.push(("createdAt", Value::from(self.created_at.to_iso().as_str())));
        members.push(("lastEventAt", text_or_null(self.last_event_at.map(Millis::to_iso).as_deref())));
        Value::object(members)
    }
}

/// `{sessions: […]}`
pub fn list(sessions: &[Summary]) -> Value {
    Value::object([("sessions", Value::Array(sessions.iter().map(Summary::to_value).collect()))])
}

/// `{sessions: […], nextCursor}` (api 1.10)
pub fn page(sessions: &[Summary], next_cursor: Option<&str>) -> Value {
    let sessions = sessions.iter().map(Summary::to_page_value).collect();
    Value::object([("sessions", Value::Array(sessions)), ("nextCursor", text_or_null(next_cursor))])
}

/// The manifest that a session pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedManifest {
    /// The session.
    pub session_id: SessionId,
    /// Its agent.
    pub agent_id: AgentId,
    /// The hash of `manifest`.
    pub manifest_hash: String,
    /// As saved with the definition.
    pub implementation_version: String,
    /// The document.
    pub manifest: Json,
}

impl PinnedManifest {
    /// The answer's body.
    pub fn to_value(&self) -> Value {
        Value::object([
            ("sessionId", Value::from(self.session_id.as_str())),
            ("agentId", Value::from(self.agent_id.as_str())),
            ("manifestHash", Value::from(self.manifest_hash.as_str())),
            ("implementationVersion", Value::from(self.implementation_version.as_str())),
            ("manifest", self.manifest.value()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use nylorun_domain::json::Json;

    use super::{OpenSession, SandboxChoice};
    use crate::body::Body;
    use crate::schema::bodies::OPEN_SESSION;

    fn read(members: &str) -> OpenSession {
        let text = format!(r#"{{"requestId":"r","agentId":"a","ownerUserId":"u"{members}}}"#);
        let body = Body::new(Json::parse(&text).unwrap());
        assert_eq!(OPEN_SESSION.check(body.value()), Ok(()));
        OpenSession::read(&body).unwrap()
    }

    #[test]
    fn reads_every_choice_of_a_workspace() {
        let choice = |sandbox: &str| read(&format!(r#","sandbox":{sandbox}"#)).sandbox;
        assert_eq!(read("").sandbox, SandboxChoice::Default);
        assert_eq!(choice("false"), SandboxChoice::None);
        assert_eq!(choice(r#"{"id":"a/b"}"#), SandboxChoice::Environment("a/b".to_owned()));
        let inline =
            |network_allow, cpus, memory_mib| SandboxChoice::Inline { image: None, network_allow, cpus, memory_mib };
        assert_eq!(choice("{}"), inline(vec![], None, None));
        assert_eq!(
            choice(r#"{"network":{"allow":["a.b"]},"resources":{"cpus":2,"memory":"1GiB"}}"#),
            inline(vec!["a.b".to_owned()], Some(2), Some(1024))
        );
    }

    #[test]
    fn identity_leaves_out_what_may_change() {
        let one = read(r#","vaultIds":["v"],"info":{"a":1}"#);
        let same = read(r#","info":{ "a":1.0 }"#);
        let other = read(r#","info":{"a":2}"#);
        assert_eq!(one.identity, same.identity);
        assert_ne!(one.identity, other.identity);
        assert_eq!((one.vault_ids, same.vault_ids), (Some(vec!["v".to_owned()]), None));
        assert_eq!(same.info.unwrap().as_str(), r#"{ "a":1.0 }"#);
    }

    #[test]
    fn refuses_repetitions_with_their_place() {
        let text = r#"{"requestId":"r","agentId":"a","ownerUserId":"u","vaultIds":["v","w","v"],
            "credentialSelections":[{"serverName":"s","credentialId":"1"},{"serverName":"s","credentialId":"2"}]}"#;
        let problems = OpenSession::read(&Body::new(Json::parse(text).unwrap())).unwrap_err();
        assert_eq!(
            problems.to_string(),
            "vaultIds.2: The vault is named twice\ncredentialSelections.1.serverName: The server is named twice"
        );
    }
}
