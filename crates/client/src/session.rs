//! Sessions: open, look, command, read and follow (api 2.2 to 2.4).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::client::request_id;
use crate::command::{Accepted, Command, Settle};
use crate::error::Error;
use crate::event::HistoryPage;
use crate::follow::{Events, Follow};
use crate::http::{Call, Http};
use crate::usage::{ModelCallPage, SessionUsage};

/// What a session is opened with.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenSession {
    /// The agent, by id.
    pub agent_id: String,
    /// Whose session it is.
    pub owner_user_id: String,
    /// Facts for the agent's instructions; an object.
    pub info: Option<Map<String, Value>>,
    /// Vaults to attach.
    pub vault_ids: Option<Vec<String>>,
    /// Its workspace; the tenant's default when absent.
    pub environment: Option<Environment>,
}

/// The choice of a session's workspace.
#[derive(Clone, Debug, PartialEq)]
pub enum Environment {
    /// None: the agent has no shell and no files.
    Without,
    /// One of the session's own.
    Inline(InlineEnvironment),
    /// A shared one, by its id.
    Shared(String),
    /// That of another session of the same owner, by the session's id.
    OfSession(String),
}

/// A session's own workspace; what is absent is the tenant's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InlineEnvironment {
    /// Container image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// `{allow: [host…]}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Value>,
    /// `{cpus, memory}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Value>,
}

impl OpenSession {
    /// A session of an agent for its owner, with everything else at the server's default.
    pub fn new(agent_id: impl Into<String>, owner_user_id: impl Into<String>) -> Self {
        Self {
            agent_id: agent_id.into(),
            owner_user_id: owner_user_id.into(),
            info: None,
            vault_ids: None,
            environment: None,
        }
    }

    pub(crate) fn to_body(&self, request_id: String) -> Value {
        let mut body = json!({"requestId": request_id, "agentId": self.agent_id, "ownerUserId": self.owner_user_id});
        if let Some(info) = &self.info {
            body["info"] = Value::Object(info.clone());
        }
        if let Some(vault_ids) = &self.vault_ids {
            body["vaultIds"] = json!(vault_ids);
        }
        if let Some(environment) = &self.environment {
            body["sandbox"] = match environment {
                Environment::Without => Value::Bool(false),
                Environment::Inline(inline) => json!(inline),
                Environment::Shared(id) => json!({ "id": id }),
                Environment::OfSession(id) => json!({ "session": id }),
            };
        }
        body
    }
}

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    /// Open, without a turn yet.
    Idle,
    /// A turn waits for a worker.
    Runnable,
    /// A turn runs.
    Running,
    /// A turn waits for outside work.
    Waiting,
    /// A turn waits for an approval or an answer.
    Paused,
    /// It is unknown whether something of the turn happened.
    Uncertain,
    /// The last turn ended well.
    Completed,
    /// The last turn failed.
    Failed,
    /// The last turn was cancelled.
    Cancelled,
    /// A status that this client does not know.
    Other(String),
}

impl SessionStatus {
    /// All that this client knows.
    pub const KNOWN: &'static [Self] = &[
        Self::Idle,
        Self::Runnable,
        Self::Running,
        Self::Waiting,
        Self::Paused,
        Self::Uncertain,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The status as the wire has it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Idle => "idle",
            Self::Runnable => "runnable",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Uncertain => "uncertain",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for SessionStatus {
    fn from(name: &str) -> Self {
        let known = Self::KNOWN.iter().find(|known| known.as_str() == name);
        known.cloned().unwrap_or_else(|| Self::Other(name.to_owned()))
    }
}

impl fmt::Display for SessionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for SessionStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for SessionStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(deserializer)?.as_str()))
    }
}

/// A session as GET and PUT answer it. `other` keeps the rest, so that serializing gives everything back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// Its id.
    pub id: String,
    /// Its agent.
    pub agent_id: String,
    /// Whose it is.
    pub owner_user_id: String,
    /// Hash of the definition that it keeps.
    pub manifest_hash: String,
    /// The application's own version of that definition.
    pub implementation_version: String,
    /// Where it stands.
    pub status: SessionStatus,
    /// The turn that has not ended.
    pub active_turn_id: Option<String>,
    /// What a paused turn waits for: `[{invocationId, interaction: {id, kind, prompt?, …}, status}]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Value>,
    /// Why the last turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Effects whose outcome is unknown.
    #[serde(default)]
    pub uncertain_effects: Vec<UncertainEffect>,
    /// The other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// An effect that may or may not have happened. It is never run again on its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UncertainEffect {
    /// Its id, for settling.
    pub effect_id: String,
    /// The turn that wanted it.
    pub turn_id: Option<String>,
    /// `model`, `tool`, …
    #[serde(default)]
    pub kind: String,
    /// Why the outcome is unknown.
    #[serde(default)]
    pub error: Option<String>,
    /// The other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Which sessions to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFilter {
    /// Page size, 1 to 200.
    pub limit: u16,
    /// `nextCursor` of the page before, which had the same filter.
    pub cursor: Option<String>,
    /// Only of this agent.
    pub agent_id: Option<String>,
    /// Only in this status.
    pub status: Option<SessionStatus>,
    /// Only of this person; not for a key that acts for a person itself.
    pub owner_user_id: Option<String>,
    /// Only with such effects.
    pub effects: Effects,
}

/// Which effects a listed session has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effects {
    /// Any, or none.
    #[default]
    Any,
    /// One at least whose outcome is unknown, of whatever turn.
    Uncertain,
}

impl SessionFilter {
    /// Whether a listed session belongs to the list, as far as it says so itself: it does not tell its effects.
    pub(crate) fn leaves(&self, session: &SessionSummary) -> bool {
        self.agent_id.as_ref().is_none_or(|agent| *agent == session.agent_id)
            && self.status.as_ref().is_none_or(|status| *status == session.status)
            && self.owner_user_id.as_ref().is_none_or(|owner| *owner == session.owner_user_id)
    }
}

/// A page of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionPage {
    /// Newest first; perhaps fewer than the limit, also where more follow.
    pub sessions: Vec<SessionSummary>,
    /// For the next page, or nothing when this is the last.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// Its id.
    pub id: String,
    /// Its agent.
    pub agent_id: String,
    /// Whose it is.
    pub owner_user_id: String,
    /// Where it stands.
    pub status: SessionStatus,
    /// The turn that has not ended.
    pub active_turn_id: Option<String>,
    /// When it was opened, ISO 8601 UTC.
    #[serde(default)]
    pub created_at: Option<String>,
    /// When its last event was written, ISO 8601 UTC.
    #[serde(default)]
    pub last_event_at: Option<String>,
    /// The other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// One session of a server. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    http: Arc<Http>,
    id: String,
}

impl Session {
    pub(crate) fn new(http: Arc<Http>, id: String) -> Self {
        Self { http, id }
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where it stands: `GET /v1/sessions/{id}`.
    ///
    /// # Errors
    /// 404 when it is missing or another's.
    pub async fn view(&self) -> Result<SessionView, Error> {
        self.http.json(&Call::get(&["v1", "sessions", &self.id])).await
    }

    /// Sends a command: `POST /v1/sessions/{id}/commands`. Sending the same command again, with its idempotency key,
    /// gives the stored answer and does nothing twice.
    ///
    /// # Errors
    /// 409 when the session's state does not allow it ([`crate::Refusal::active_turn_id`] says what is in the way).
    pub async fn command(&self, command: &Command) -> Result<Accepted, Error> {
        self.http.json(&Call::post(&["v1", "sessions", &self.id, "commands"], command.to_body(request_id()?))).await
    }

    /// Says what became of an uncertain effect, so that its turn goes on:
    /// `POST /v1/sessions/{id}/effects/{effectId}/settle`.
    ///
    /// # Errors
    /// 404 for an effect that does not exist, 409 for one that is not uncertain.
    pub async fn settle(&self, settle: &Settle) -> Result<Value, Error> {
        let segments = ["v1", "sessions", &self.id, "effects", &settle.effect_id, "settle"];
        self.http.json(&Call::post(&segments, settle.to_body(request_id()?))).await
    }

    /// Takes back a message that waits: `DELETE /v1/sessions/{id}/queue/{messageId}`.
    ///
    /// # Errors
    /// 404 when it does not wait any more.
    pub async fn remove_queued(&self, message_id: &str) -> Result<(), Error> {
        let _: Value = self.http.json(&Call::delete(&["v1", "sessions", &self.id, "queue", message_id])).await?;
        Ok(())
    }

    /// A page of the session's events, from after `cursor` on: `GET /v1/sessions/{id}/items` (api 2.3). Without
    /// a limit it holds everything up to now; with one (1 to 200), `cursor` must come from such a page.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn history(&self, cursor: Option<&str>, limit: Option<u16>) -> Result<HistoryPage, Error> {
        let segments = ["v1", "sessions", &self.id, "items"];
        let call = Call::get(&segments).query("cursor", cursor).query("limit", limit.map(|limit| limit.to_string()));
        self.http.json(&call).await
    }

    /// The definition that the session keeps: `GET /v1/sessions/{id}/manifest`.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn manifest(&self) -> Result<Map<String, Value>, Error> {
        self.http.json(&Call::get(&["v1", "sessions", &self.id, "manifest"])).await
    }

    /// What the session's model calls used, or those of one of its turns: `GET /v1/sessions/{id}/usage`.
    ///
    /// # Errors
    /// 403 for a caller that is no application as itself.
    pub async fn usage(&self, turn_id: Option<&str>) -> Result<SessionUsage, Error> {
        self.http.json(&Call::get(&["v1", "sessions", &self.id, "usage"]).query("turnId", turn_id)).await
    }

    /// A page of the session's model calls, the oldest first, or of those of one of its turns:
    /// `GET /v1/sessions/{id}/calls/model` (api 1.10).
    ///
    /// # Errors
    /// 400 `cursor_mismatch` when the turn is another than that of the page before.
    pub async fn model_calls(
        &self,
        turn_id: Option<&str>,
        cursor: Option<&str>,
        limit: Option<u16>,
    ) -> Result<ModelCallPage, Error> {
        let segments = ["v1", "sessions", &self.id, "calls", "model"];
        let call = Call::get(&segments).query("turnId", turn_id).query("cursor", cursor);
        self.http.json(&call.query("limit", limit.map(|limit| limit.to_string()))).await
    }

    /// Follows the session's events, live and through lost connections.
    pub fn events(&self, follow: Follow) -> Events {
        Events::new(Arc::clone(&self.http), self.id.clone(), follow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_body_says_only_what_was_chosen() {
        let mut open = OpenSession::new("a", "me");
        assert_eq!(open.to_body("r".into()), json!({"requestId": "r", "agentId": "a", "ownerUserId": "me"}));
        let choices = [
            (Environment::Without, json!(false)),
            (Environment::Inline(InlineEnvironment::default()), json!({})),
            (Environment::Shared("team/x".into()), json!({"id": "team/x"})),
            (Environment::OfSession("s".into()), json!({"session": "s"})),
        ];
        for (choice, expected) in choices {
            open.environment = Some(choice);
            assert_eq!(open.to_body("r".into())["sandbox"], expected);
        }
    }

    #[test]
    fn a_view_gives_back_what_it_does_not_know() {
        let body = json!({"id": "s", "agentId": "a", "ownerUserId": "o", "manifestHash": "h",
            "implementationVersion": "1", "status": "dreaming", "activeTurnId": null,
            "uncertainEffects": [{"effectId": "e", "turnId": "t", "kind": "tool", "error": "lost"}],
            "vaultIds": [], "sandboxOwnerId": null, "new": {"x": 1}});
        let view: SessionView = serde_json::from_value(body.clone()).unwrap();
        assert_eq!(view.status, SessionStatus::Other("dreaming".into()));
        assert_eq!(serde_json::to_value(&view).unwrap(), body);
    }
}
