//! The Runtime API for one key.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::agent::{Agent, AgentList, SavedAgent};
use crate::error::Error;
use crate::health::{Health, Ready};
use crate::http::{Call, Http};
use crate::key::Key;
use crate::session::{Effects, OpenSession, Session, SessionFilter, SessionPage, SessionStatus, SessionView};

/// A connection to a server's Runtime API. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    http: Arc<Http>,
}

impl Client {
    /// A client for the server at `base_url`, which calls with an application key or an issuer's token. Nothing is
    /// sent yet.
    ///
    /// # Errors
    /// [`Error::InvalidUrl`], or [`Error::Setup`] when this machine cannot make requests.
    pub fn new(base_url: &str, key: Key) -> Result<Self, Error> {
        Ok(Self { http: Arc::new(Http::new(base_url, key)?) })
    }

    /// The base URL, without a trailing slash.
    pub fn base_url(&self) -> &str {
        self.http.base()
    }

    /// Reads `/health`, which needs no key, without checking that this client can talk to the server.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn health(&self) -> Result<Health, Error> {
        self.http.read_health().await
    }

    /// Reads `/ready`, which needs no key; the answer of a server that is not ready is no error.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn ready(&self) -> Result<Ready, Error> {
        self.http.read_ready().await
    }

    /// Checks that this client can talk to the server. Every other request does so before it is sent, once.
    ///
    /// # Errors
    /// [`Error::Incompatible`] with what is missing.
    pub async fn check(&self) -> Result<Arc<Health>, Error> {
        self.http.compatible().await
    }

    /// Who the key is: `GET /v1/me` (api 7.5).
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn me(&self) -> Result<Map<String, Value>, Error> {
        self.http.json(&Call::get(&["v1", "me"])).await
    }

    /// Saves an agent's manifest under its own id: `PUT /v1/agents/{agentId}` (api 2.1). Sessions that are open
    /// keep the definition they began with.
    ///
    /// # Errors
    /// [`Error::Refused`] with every problem of the manifest ([`crate::Refusal::problems`]).
    pub async fn save_agent(
        &self,
        agent_id: &str,
        manifest: &Value,
        implementation_version: &str,
    ) -> Result<SavedAgent, Error> {
        let body = json!({"requestId": request_id()?, "manifest": manifest,
            "implementationVersion": implementation_version});
        self.http.json(&Call::put(&["v1", "agents", agent_id], body)).await
    }

    /// All saved agents that the key may use: `GET /v1/agents`.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn agents(&self) -> Result<Vec<Agent>, Error> {
        let list: AgentList = self.http.json(&Call::get(&["v1", "agents"])).await?;
        Ok(list.agents)
    }

    /// One page of sessions, newest first: `GET /v1/sessions` (api 1.10). It may hold fewer than the limit, also
    /// where more follow: only a page without `next_cursor` is the last. A server without pages gives all sessions at
    /// once, and the filter is applied here, but for `effects`, which only a server can choose by.
    ///
    /// # Errors
    /// 400 `cursor_mismatch` when the filter is another than that of the page before.
    pub async fn sessions(&self, filter: &SessionFilter) -> Result<SessionPage, Error> {
        let uncertain = match filter.effects {
            Effects::Any => None,
            Effects::Uncertain => Some("true"),
        };
        let call = Call::get(&["v1", "sessions"])
            .query("limit", Some(filter.limit.to_string()))
            .query("cursor", filter.cursor.as_deref())
            .query("agentId", filter.agent_id.as_deref())
            .query("status", filter.status.as_ref().map(SessionStatus::as_str))
            .query("ownerUserId", filter.owner_user_id.as_deref())
            .query("uncertain", uncertain);
        let mut page: SessionPage = self.http.json(&call).await?;
        page.sessions.retain(|session| filter.leaves(session));
        Ok(page)
    }

    /// Opens a session, or finds it again when it was opened with the same request: `PUT /v1/sessions/{id}`.
    ///
    /// # Errors
    /// 404 for an unknown agent, 409 when the id is taken by another session.
    pub async fn open_session(&self, id: &str, open: &OpenSession) -> Result<SessionView, Error> {
        self.http.json(&Call::put(&["v1", "sessions", id], open.to_body(request_id()?))).await
    }

    /// A session by its id. Nothing is sent yet.
    pub fn session(&self, id: impl Into<String>) -> Session {
        Session::new(Arc::clone(&self.http), id.into())
    }
}

/// A fresh request id: it only shows up in logs and answers.
pub(crate) fn request_id() -> Result<String, Error> {
    crate::id::uuid_v4().map_err(|error| Error::Setup(error.to_string()))
}
