//! The tenant on the wire (api 3, 3.1).

use nylorun_domain::check::Problems;
use nylorun_domain::id::{AgentId, TenantId};
use nylorun_domain::json::{Json, Value};
use nylorun_domain::time::Millis;

use crate::body::{Body, missing};
use crate::model::{ModelChoice, ModelView};
use crate::raw;

/// `PUT /v1/tenant/config/seed`: settings that are written only where none is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The caller's name for this request.
    pub request_id: String,
    /// `sandbox.backend`: `auto` or `virtual`.
    pub sandbox_backend: Option<String>,
    /// `sandbox.config`: sandbox settings, verbatim.
    pub sandbox_config: Option<Json>,
    /// `model`
    pub model: Option<ModelChoice>,
    /// `model.fixture`: the deterministic model serves the tenant's turns.
    pub fixture_model: bool,
}

impl Seed {
    /// Reads a body that follows the route's schema.
    pub fn read(body: &Body) -> Result<Self, Problems> {
        let sandbox = body.json("sandbox");
        let backend = body.value().get("sandbox").and_then(|sandbox| sandbox.get("backend")).and_then(Value::as_str);
        Ok(Self {
            request_id: body.text("requestId")?,
            sandbox_backend: backend.map(str::to_owned),
            sandbox_config: sandbox.and_then(|sandbox| raw::member(&sandbox, "config")),
            model: body.json("model").as_ref().map(ModelChoice::read).transpose()?,
            fixture_model: body.value().get("fixtureModel").and_then(Value::as_bool) == Some(true),
        })
    }
}

/// `POST /v1/tenant/reset`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// The caller's name for this request.
    pub request_id: String,
    /// What is removed.
    pub scope: ResetScope,
    /// What becomes of work that runs.
    pub active_work: ActiveWork,
}

/// What a reset removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetScope {
    /// All sessions with their records and their own workspaces.
    Sessions,
    /// All workspaces with their files; sessions stay.
    Sandboxes,
    /// Both.
    All,
}

/// What a reset does about work that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActiveWork {
    /// It waits.
    Drain,
    /// It cancels it.
    Cancel,
}

impl ResetScope {
    /// All, by the wire's words.
    pub(crate) const WORDS: &'static [&'static str] = &["sessions", "sandboxes", "all"];

    /// The wire's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Sandboxes => "sandboxes",
            Self::All => "all",
        }
    }
}

impl ActiveWork {
    /// All, by the wire's words.
    pub(crate) const WORDS: &'static [&'static str] = &["drain", "cancel"];

    /// The wire's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Cancel => "cancel",
        }
    }
}

impl Reset {
    /// Reads a body that follows the route's schema.
    pub fn read(body: &Body) -> Result<Self, Problems> {
        Ok(Self {
            request_id: body.text("requestId")?,
            scope: match body.text("scope")?.as_str() {
                "sessions" => ResetScope::Sessions,
                "sandboxes" => ResetScope::Sandboxes,
                "all" => ResetScope::All,
                _ => return Err(missing("scope")),
            },
            active_work: match body.text("activeWork")?.as_str() {
                "drain" => ActiveWork::Drain,
                "cancel" => ActiveWork::Cancel,
                _ => return Err(missing("activeWork")),
            },
        })
    }
}

/// The answer to a reset: `{ok: true}`.
pub fn reset_done() -> Value {
    Value::object([("ok", Value::from(true))])
}

/// What a seed wrote and what it left as it was: names of settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seeded {
    /// Written.
    pub applied: Vec<&'static str>,
    /// Set already.
    pub kept: Vec<&'static str>,
}

impl Seeded {
    /// The answer's body.
    pub fn to_value(&self) -> Value {
        let names = |names: &[&'static str]| Value::Array(names.iter().map(|name| Value::from(*name)).collect());
        Value::object([("applied", names(&self.applied)), ("kept", names(&self.kept))])
    }
}

/// `GET /v1/tenant`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantStatus {
    /// The tenant.
    pub id: TenantId,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_at: Millis,
    /// When its settings last changed.
    pub updated_at: Millis,
    /// The version of the database's schema.
    pub schema_version: i64,
    /// Where its files are.
    pub path: String,
    /// Whether the store answers.
    pub store_ok: bool,
    /// Whether turns are scheduled.
    pub scheduler_ok: bool,
    /// Whether a model can be called.
    pub model_ok: bool,
    /// Whether the database has the schema that this program needs.
    pub schema_ok: bool,
    /// Its model.
    pub model: ModelView,
    /// Its agents.
    pub agents: Vec<AgentId>,
    /// Its sessions.
    pub sessions: i64,
    /// Those whose turn runs.
    pub running_sessions: i64,
    /// Effects that nobody settled yet.
    pub uncertain_effects: i64,
    /// The backend of new workspaces.
    pub sandbox_backend: Option<String>,
    /// Workspaces that are kept.
    pub sandboxes_retained: i64,
    /// Further members that this implementation adds, by name: counters of the store, for instance.
    pub extra: Vec<(&'static str, Value)>,
}

impl TenantStatus {
    /// The answer's body.
    pub fn to_value(&self) -> Value {
        let tenant = Value::object([
            ("id", Value::from(self.id.as_str())),
            ("name", Value::from(self.name.as_str())),
            ("createdAt", Value::from(self.created_at.to_iso())),
            ("updatedAt", Value::from(self.updated_at.to_iso())),
            ("schemaVersion", Value::from(self.schema_version)),
        ]);
        let checks = Value::object([
            ("store", Value::from(self.store_ok)),
            ("scheduler", Value::from(self.scheduler_ok)),
            ("model", Value::from(self.model_ok)),
            ("schema", Value::from(self.schema_ok)),
        ]);
        let agents = self.agents.iter().map(|id| Value::object([("agentId", Value::from(id.as_str()))])).collect();
        let counts = Value::object([
            ("sessions", Value::from(self.sessions)),
            ("runningSessions", Value::from(self.running_sessions)),
            ("uncertainEffects", Value::from(self.uncertain_effects)),
        ]);
        let sandbox = Value::object([
            ("backend", self.sandbox_backend.as_deref().map_or(Value::Null, Value::from)),
            ("retained", Value::from(self.sandboxes_retained)),
        ]);
        let mut members = vec![
            ("tenant", tenant),
            ("path", Value::from(self.path.as_str())),
            ("checks", checks),
            ("model", self.model.to_value()),
            ("agents", Value::Array(agents)),
            ("counts", counts),
            ("sandbox", sandbox),
        ];
        members.extend(self.extra.iter().cloned());
        Value::object(members)
    }
}
