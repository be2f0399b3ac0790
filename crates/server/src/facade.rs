//! What the server asks of the application, until `crates/app` has it: an application in memory with the same calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use nylorun_domain::caller::{Caller, Principal, Role};
use nylorun_domain::check::Problems;
use nylorun_domain::event::Visibility;
use nylorun_domain::hash::sha256_hex;
use nylorun_domain::id::{AgentId, EffectId, SessionId, TenantId, TurnId};
use nylorun_domain::json::{Json, Value};
use nylorun_domain::time::Millis;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_wire::agent::{AgentListed, AgentSaved, SaveAgent};
use nylorun_wire::code::Code;
use nylorun_wire::command::{Accepted, Command, CommandKind};
use nylorun_wire::cursor;
use nylorun_wire::effect::Settle;
use nylorun_wire::key::{KeyListed, KeyMade};
use nylorun_wire::model::{CatalogueProvider, ModelView, ProviderView, PutModel, SelectModel};
use nylorun_wire::session::{OpenSession, PinnedManifest, SessionView, Summary};
use nylorun_wire::tenant::{Seed, Seeded, TenantStatus};
use tokio::sync::broadcast;

/// Why the application refuses or fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The document is wrong in these places: 400.
    Invalid(Problems),
    /// 400 with this code.
    BadRequest {
        /// The code.
        code: Code,
        /// Why.
        message: String,
    },
    /// 404: not there, or not the caller's.
    NotFound {
        /// What.
        message: String,
    },
    /// 409 with this code.
    Conflict {
        /// The code.
        code: Code,
        /// Why.
        message: String,
        /// The turn that is in the way.
        active_turn: Option<TurnId>,
        /// Facts for programs.
        details: Option<Value>,
    },
    /// 403 with this code.
    Forbidden {
        /// The code.
        code: Code,
        /// Why.
        message: String,
        /// Facts for programs.
        details: Option<Value>,
    },
    /// 413 with this code.
    TooLarge {
        /// The code.
        code: Code,
        /// Why.
        message: String,
        /// Facts for programs.
        details: Option<Value>,
    },
    /// 503: a repeat may help.
    Unavailable {
        /// Why.
        message: String,
    },
    /// 500: logged, never told.
    Internal {
        /// What happened.
        message: String,
    },
}

/// One event of the record, printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its position in the session's record.
    pub seq: i64,
    /// Its type.
    pub kind: String,
    /// Who may read it.
    pub public: Visibility,
    /// The event as JSON, `nylorun.event/2`.
    pub body: Arc<str>,
}

/// A piece of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    /// The events read, internal ones included.
    pub events: Vec<Arc<StoredEvent>>,
    /// The position of the last one read.
    pub last: Option<i64>,
    /// Whether nothing followed it when it was read.
    pub tail: bool,
}

/// What a follower is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// An event of the record.
    Event(Arc<StoredEvent>),
    /// A piece of an answer that is being made, as JSON; never in the record.
    Delta(Arc<str>),
}

/// Follows one session's record.
#[derive(Debug)]
pub struct Follower {
    waiting: std::vec::IntoIter<Arc<StoredEvent>>,
    live: broadcast::Receiver<Frame>,
}

impl Follower {
    /// The next frame, or `None` when the session is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Frame> {
        if let Some(event) = self.waiting.next() {
            return Some(Frame::Event(event));
        }
        self.live.recv().await.ok()
    }
}

/// What can be said about being ready: names and whether each is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checks(pub Vec<(&'static str, bool)>);

/// An application in memory.
#[derive(Clone, Debug)]
pub struct App(Arc<State>);

#[derive(Debug)]
struct State {
    tenant: TenantId,
    keys: BTreeMap<String, Principal>,
    agents: Mutex<BTreeMap<AgentId, AgentListed>>,
    sessions: Mutex<BTreeMap<SessionId, Open>>,
}

#[derive(Debug)]
struct Open {
    view: SessionView,
    identity: String,
    events: Vec<Arc<StoredEvent>>,
    live: broadcast::Sender<Frame>,
}

/// Answers of the application.
pub type Result<T> = std::result::Result<T, Error>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn missing<T>(message: &str) -> Result<T> {
    Err(Error::NotFound { message: message.to_owned() })
}

impl App {
    /// An empty application that knows these keys.
    pub fn with_keys(keys: &[(&str, &str, Role)]) -> Self {
        let keys = keys
            .iter()
            .map(|(key, id, role)| (sha256_hex(key.as_bytes()), Principal { key_id: (*id).to_owned(), role: *role }));
        Self(Arc::new(State {
            tenant: TenantId::from_trusted("tn_0123456789abcdefghjkmnpqrs"),
            keys: keys.collect(),
            agents: Mutex::default(),
            sessions: Mutex::default(),
        }))
    }

    /// Whose key this is.
    pub async fn principal(&self, bearer: &str) -> Result<Option<Principal>> {
        Ok(self.0.keys.get(&sha256_hex(bearer.as_bytes())).cloned())
    }

    /// The tenant.
    pub fn tenant_id(&self) -> &TenantId {
        &self.0.tenant
    }

    /// The host.
    pub fn host_id(&self) -> &str {
        "host_0123456789abcdefghjkmnpqrs"
    }

    /// Whether everything that is needed is there.
    pub async fn ready(&self) -> Checks {
        Checks(vec![("tenant", true), ("database", true)])
    }

    /// Saves an agent.
    pub async fn agent_save(&self, _: &Caller, id: AgentId, body: SaveAgent) -> Result<AgentSaved> {
        let saved = AgentSaved {
            agent_id: id.clone(),
            manifest_hash: body.manifest.canonical_sha256(),
            implementation_version: body.implementation_version,
        };
        let listed = AgentListed {
            agent_id: id.clone(),
            manifest: body.manifest,
            manifest_hash: saved.manifest_hash.clone(),
            implementation_version: saved.implementation_version.clone(),
        };
        lock(&self.0.agents).insert(id, listed);
        Ok(saved)
    }

    /// Lists agents.
    pub async fn agent_list(&self, _: &Caller) -> Result<Vec<AgentListed>> {
        Ok(lock(&self.0.agents).values().cloned().collect())
    }

    /// Opens a session.
    pub async fn session_open(&self, caller: &Caller, id: SessionId, body: OpenSession) -> Result<SessionView> {
        let Some(agent) = lock(&self.0.agents).get(&body.agent_id).cloned() else {
            return missing("Definition not found");
        };
        if !caller.sees_owner(&body.owner_user_id) {
            let message = "ownerUserId must be the subject".to_owned();
            return Err(Error::Forbidden { code: Code::RequestRejected, message, details: None });
        }
        let mut sessions = lock(&self.0.sessions);
        if let Some(open) = sessions.get(&id) {
            if open.identity == body.identity {
                return Ok(open.view.clone());
            }
            let message = "The session was opened otherwise".to_owned();
            return Err(Error::Conflict { code: Code::RequestRejected, message, active_turn: None, details: None });
        }
        let view = view_of(&id, &agent, &body);
        let (live, _) = broadcast::channel(64);
        sessions.insert(id, Open { view: view.clone(), identity: body.identity, events: vec![], live });
        Ok(view)
    }

    fn with_session<T>(&self, caller: &Caller, id: &SessionId, read: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        let mut sessions = lock(&self.0.sessions);
        match sessions.get_mut(id).filter(|open| caller.sees_owner(&open.view.owner_user_id)) {
            Some(open) => read(open),
            None => missing("Session not found"),
        }
    }

    /// One session.
    pub async fn session_view(&self, caller: &Caller, id: &SessionId) -> Result<SessionView> {
        self.with_session(caller, id, |open| Ok(open.view.clone()))
    }

    /// The sessions that the caller sees.
    pub async fn session_list(&self, caller: &Caller, agent: Option<AgentId>) -> Result<Vec<Summary>> {
        let sessions = lock(&self.0.sessions);
        let seen = sessions.values().map(|open| &open.view).filter(|view| {
            caller.sees_owner(&view.owner_user_id) && agent.as_ref().is_none_or(|agent| *agent == view.agent_id)
        });
        let summary = |view: &SessionView| Summary {
            id: view.id.clone(),
            agent_id: view.agent_id.clone(),
            owner_user_id: view.owner_user_id.clone(),
            status: view.status.clone(),
            active_turn_id: None,
        };
        Ok(seen.map(summary).collect())
    }

    /// A session's pinned manifest.
    pub async fn session_manifest(&self, caller: &Caller, id: &SessionId) -> Result<PinnedManifest> {
        let view = self.session_view(caller, id).await?;
        Ok(PinnedManifest {
            session_id: view.id,
            agent_id: view.agent_id,
            manifest_hash: view.manifest_hash,
            implementation_version: view.implementation_version,
            manifest: Json::from_trusted("{}"),
        })
    }

    /// Takes a command: writes its event.
    pub async fn command(&self, caller: &Caller, id: &SessionId, command: Command) -> Result<Accepted> {
        self.with_session(caller, id, |open| {
            let seq = i64::try_from(open.events.len()).unwrap_or(i64::MAX);
            let (kind, turn) = match command.kind {
                CommandKind::Message { .. } => ("command.message", Some(TurnId::from_trusted("turn-1"))),
                CommandKind::Approve { .. } | CommandKind::Respond { .. } => {
                    let message = "The session awaits no answer".to_owned();
                    return Err(Error::Conflict {
                        code: Code::RequestRejected,
                        message,
                        active_turn: None,
                        details: None,
                    });
                }
                CommandKind::Cancel { .. } => ("turn.cancelled", None),
            };
            let body = format!(r#"{{"seq":{seq},"type":"{kind}","payload":{}}}"#, command.raw);
            let event = StoredEvent { seq, kind: kind.to_owned(), public: Visibility::Public, body: body.into() };
            let event = Arc::new(event);
            open.events.push(event.clone());
            let _ = open.live.send(Frame::Event(event));
            Ok(Accepted { turn_id: turn, cursor: Some(cursor::event(id, seq)), request_id: command.request_id })
        })
    }

    /// Settles an effect.
    pub async fn effect_settle(&self, caller: &Caller, id: &SessionId, _: &EffectId, _: Settle) -> Result<Accepted> {
        self.with_session(caller, id, |_| missing("Effect not found"))
    }

    /// Reads the record.
    pub async fn history(
        &self,
        caller: &Caller,
        id: &SessionId,
        after: Option<i64>,
        limit: Option<usize>,
    ) -> Result<HistoryPage> {
        self.with_session(caller, id, |open| {
            check_head(open, after)?;
            let from = after.map_or(0, |after| after + 1);
            let rest = open.events.iter().filter(|event| event.seq >= from);
            let events: Vec<_> = rest.clone().take(limit.unwrap_or(usize::MAX)).cloned().collect();
            let tail = events.len() == rest.count();
            Ok(HistoryPage { last: events.last().map(|event| event.seq), events, tail })
        })
    }

    /// Follows the record.
    pub async fn follow(&self, caller: &Caller, id: &SessionId, after: Option<i64>) -> Result<Follower> {
        self.with_session(caller, id, |open| {
            check_head(open, after)?;
            let from = after.map_or(0, |after| after + 1);
            let waiting: Vec<_> = open.events.iter().filter(|event| event.seq >= from).cloned().collect();
            Ok(Follower { waiting: waiting.into_iter(), live: open.live.subscribe() })
        })
    }

    /// Sends a frame to whoever follows the session.
    pub fn publish(&self, id: &SessionId, frame: Frame) {
        if let Some(open) = lock(&self.0.sessions).get(id) {
            let _ = open.live.send(frame);
        }
    }

    /// Runs a tool.
    pub async fn workspace_tool(
        &self,
        caller: &Caller,
        id: &SessionId,
        tool: WorkspaceTool,
        input: Json,
    ) -> Result<ToolOutcome> {
        self.with_session(caller, id, |_| Ok(()))?;
        match tool {
            WorkspaceTool::Bash => panic_on(&input),
            WorkspaceTool::Read
            | WorkspaceTool::Write
            | WorkspaceTool::Edit
            | WorkspaceTool::Grep
            | WorkspaceTool::Glob => Ok(ToolOutcome::Completed { output: input }),
        }
    }

    /// The tenant's state.
    pub async fn tenant_status(&self) -> Result<TenantStatus> {
        Ok(TenantStatus {
            id: self.0.tenant.clone(),
            name: "tenant".to_owned(),
            created_at: Millis(0),
            updated_at: Millis(0),
            schema_version: 1,
            path: "/home".to_owned(),
            store_ok: true,
            scheduler_ok: true,
            model_ok: false,
            schema_ok: true,
            model: ModelView::Unconfigured,
            agents: lock(&self.0.agents).keys().cloned().collect(),
            sessions: 0,
            running_sessions: 0,
            uncertain_effects: 0,
            sandbox_backend: None,
            sandboxes_retained: 0,
            extra: vec![],
        })
    }

    /// Writes settings that are not set.
    pub async fn seed(&self, _: Seed) -> Result<Seeded> {
        Ok(Seeded { applied: vec!["model.fixture"], kept: vec![] })
    }

    /// The keys.
    pub async fn key_list(&self) -> Result<Vec<KeyListed>> {
        let listed = |key: &Principal| KeyListed {
            id: key.key_id.clone(),
            role: key.role.as_str().to_owned(),
            created_at: Millis(0),
        };
        Ok(self.0.keys.values().map(listed).collect())
    }

    /// Makes or rotates a key.
    pub async fn key_put(&self, id: &str) -> Result<KeyMade> {
        Ok(KeyMade { id: id.to_owned(), created_at: Millis(0), key: "0".repeat(64), rotated: false })
    }

    /// Deletes a key.
    pub async fn key_delete(&self, id: &str) -> Result<()> {
        missing(&format!("No key {id}"))
    }

    /// The model.
    pub async fn model_view(&self) -> Result<ModelView> {
        Ok(ModelView::Unconfigured)
    }

    /// Sets the model.
    pub async fn model_put(&self, body: PutModel) -> Result<ModelView> {
        Ok(ModelView::Configured {
            auth_type: body.model.auth.as_str().to_owned(),
            provider: body.model.provider,
            model: body.model.model,
            base_url: body.model.base_url,
            settings: body.model.settings.map(|settings| settings.document),
        })
    }

    /// Chooses a model.
    pub async fn model_select(&self, _: SelectModel) -> Result<ModelView> {
        let message = "The provider has no credential".to_owned();
        Err(Error::Conflict { code: Code::RequestRejected, message, active_turn: None, details: None })
    }

    /// The catalogue.
    pub async fn model_catalogue(&self) -> Result<Vec<CatalogueProvider>> {
        Ok(vec![])
    }

    /// Providers with a credential.
    pub async fn model_providers(&self) -> Result<Vec<ProviderView>> {
        Ok(vec![])
    }
}

/// For tests of what becomes of a panic.
fn panic_on(input: &Json) -> Result<ToolOutcome> {
    assert!(input.value().get("panic").is_none(), "a secret of the inside");
    Err(Error::Internal { message: "a secret of the inside".to_owned() })
}

fn check_head(open: &Open, after: Option<i64>) -> Result<()> {
    let head = i64::try_from(open.events.len()).unwrap_or(i64::MAX);
    if after.is_some_and(|after| after >= head) {
        return Err(Error::BadRequest { code: Code::RequestRejected, message: "Invalid cursor".to_owned() });
    }
    Ok(())
}

fn view_of(id: &SessionId, agent: &AgentListed, body: &OpenSession) -> SessionView {
    SessionView {
        id: id.clone(),
        agent_id: body.agent_id.clone(),
        owner_user_id: body.owner_user_id.clone(),
        manifest_hash: agent.manifest_hash.clone(),
        definition_hash: None,
        implementation_version: agent.implementation_version.clone(),
        status: "idle".to_owned(),
        active_turn_id: None,
        vault_ids: body.vault_ids.clone().unwrap_or_default(),
        credential_selections: body.credential_selections.clone().unwrap_or_default(),
        sandbox_owner_id: None,
        sandbox_id: None,
        sandbox: None,
        sandbox_source: None,
        mcp_snapshot: None,
        mcp_diagnostics: vec![],
        waits: None,
        error: None,
        uncertain_effects: vec![],
    }
}
