//! The Management API for one key (api 3).

use std::sync::Arc;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::client::request_id;
use crate::error::Error;
use crate::health::Health;
use crate::http::{Call, Http};
use crate::key::Key;
use crate::model::{ModelChoice, ModelView, ProviderModels, ProviderView, SetModel};
use crate::sandbox::SandboxSettings;
use crate::usage::{Budget, BudgetList, ModelCallExport, TenantUsage, UsageQuery};

/// A connection to a server's Management API. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct TenantClient {
    http: Arc<Http>,
}

/// The tenant's status (api 3.1). `other` keeps the rest, so that serializing gives everything back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantStatus {
    /// `{id, name, createdAt, updatedAt, schemaVersion}`.
    pub tenant: Map<String, Value>,
    /// Each check with its result: `store`, `scheduler`, `model`, `schema`.
    #[serde(default)]
    pub checks: Map<String, Value>,
    /// The tenant's model.
    pub model: ModelView,
    /// How much there is.
    pub counts: Counts,
    /// `{backend, retained}`.
    #[serde(default)]
    pub sandbox: Option<Value>,
    /// The other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Numbers of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Sessions.
    #[serde(default)]
    pub sessions: u64,
    /// Sessions with a turn that runs.
    #[serde(default)]
    pub running_sessions: u64,
    /// Effects whose outcome is unknown.
    #[serde(default)]
    pub uncertain_effects: u64,
    /// The other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What to set where nothing is set yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Seed {
    /// The fixture model: deterministic, and without network.
    FixtureModel,
    /// A model with its credential.
    Model(SetModel),
}

/// What a reset removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetScope {
    /// All sessions with their records and their workspaces.
    Sessions,
    /// All workspaces with their files; sessions stay.
    Sandboxes,
    /// Both.
    All,
}

/// What a reset does about work that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActiveWork {
    /// It waits up to 30 seconds, and gives up then.
    Drain,
    /// It cancels it.
    Cancel,
}

/// Names of settings that a seed wrote, and of those that were set before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedAnswer {
    /// Written now.
    #[serde(default)]
    pub applied: Vec<String>,
    /// Left as they were.
    #[serde(default)]
    pub kept: Vec<String>,
}

/// A key in a list; its value is never shown again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyView {
    /// Its name.
    pub id: String,
    /// `application` or `management`.
    pub role: String,
    /// When it was made, ISO 8601 UTC.
    #[serde(default)]
    pub created_at: Option<String>,
}

/// A key that was made or replaced just now.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyPut {
    /// Its name.
    pub id: String,
    /// Its role.
    pub role: String,
    /// The value, shown this once.
    pub key: String,
    /// Whether an older key of that name died.
    #[serde(default)]
    pub rotated: bool,
}

/// How long idle sessions and old events are kept: durations such as `90d`; without one, for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// A session goes when nothing happened in it for so long.
    pub sessions: Option<String>,
    /// An event goes when it is so old; its session stays.
    pub events: Option<String>,
}

impl TenantClient {
    /// A client for the server at `base_url`, which calls with a management key. Nothing is sent yet.
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

    /// Checks that this client can talk to the server.
    ///
    /// # Errors
    /// [`Error::Incompatible`] with what is missing.
    pub async fn check(&self) -> Result<Arc<Health>, Error> {
        self.http.compatible().await
    }

    /// `GET /v1/tenant`.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn status(&self) -> Result<TenantStatus, Error> {
        self.http.json(&Call::get(&["v1", "tenant"])).await
    }

    /// The tenant's model: `GET /v1/tenant/model`.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn model(&self) -> Result<ModelView, Error> {
        self.http.json(&Call::get(&["v1", "tenant", "model"])).await
    }

    /// Sets the tenant's model with its credential: `PUT /v1/tenant/model`.
    ///
    /// # Errors
    /// 400 for an unknown provider or model, or a `baseUrl` where none belongs.
    pub async fn set_model(&self, model: &SetModel) -> Result<ModelView, Error> {
        self.http.json(&Call::put(&["v1", "tenant", "model"], with_ids(model.to_body())?)).await
    }

    /// Chooses a model of a provider that has a credential already: `PUT /v1/tenant/model/selection`.
    ///
    /// # Errors
    /// 409 when the provider has none.
    pub async fn select_model(&self, choice: &ModelChoice) -> Result<ModelView, Error> {
        self.http.json(&Call::put(&["v1", "tenant", "model", "selection"], with_ids(choice.to_body())?)).await
    }

    /// Sets what is not set yet: `PUT /v1/tenant/config/seed`.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn seed(&self, seed: &Seed) -> Result<SeedAnswer, Error> {
        let mut body = json!({"requestId": request_id()?});
        match seed {
            Seed::FixtureModel => body["fixtureModel"] = json!(true),
            Seed::Model(model) => body["model"] = Value::Object(model.to_body()),
        }
        self.http.json(&Call::put(&["v1", "tenant", "config", "seed"], body)).await
    }

    /// Removes sessions, workspaces or both; agents, keys, model and settings stay: `POST /v1/tenant/reset`. It may be
    /// repeated, also when an earlier one did not end.
    ///
    /// # Errors
    /// 409 when work still runs after 30 seconds of draining, or another reset runs.
    pub async fn reset(&self, scope: ResetScope, active_work: ActiveWork) -> Result<(), Error> {
        let scope = match scope {
            ResetScope::Sessions => "sessions",
            ResetScope::Sandboxes => "sandboxes",
            ResetScope::All => "all",
        };
        let active_work = match active_work {
            ActiveWork::Drain => "drain",
            ActiveWork::Cancel => "cancel",
        };
        let body = json!({"requestId": request_id()?, "scope": scope, "activeWork": active_work});
        let segments = ["v1", "tenant", "reset"];
        let call = Call { method: Method::POST, segments: &segments, query: Vec::new(), body: Some(body) };
        let _: Value = self.http.json(&call).await?;
        Ok(())
    }

    /// Providers that have a credential: `GET /v1/tenant/providers`.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn providers(&self) -> Result<Vec<ProviderView>, Error> {
        #[derive(Deserialize)]
        struct List {
            providers: Vec<ProviderView>,
        }
        let list: List = self.http.json(&Call::get(&["v1", "tenant", "providers"])).await?;
        Ok(list.providers)
    }

    /// The catalogue of models: `GET /v1/tenant/models`.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn models(&self) -> Result<Vec<ProviderModels>, Error> {
        #[derive(Deserialize)]
        struct List {
            providers: Vec<ProviderModels>,
        }
        let list: List = self.http.json(&Call::get(&["v1", "tenant", "models"])).await?;
        Ok(list.providers)
    }

    /// What the tenant, an agent or a turn spent on model calls: `GET /v1/tenant/usage`.
    ///
    /// # Errors
    /// 400 `query_invalid` for an id that is missing or has no place.
    pub async fn usage(&self, query: &UsageQuery) -> Result<TenantUsage, Error> {
        let call = Call::get(&["v1", "tenant", "usage"])
            .query("scope", query.scope.as_deref())
            .query("id", query.id.as_deref())
            .query("period", query.period.as_deref());
        self.http.json(&call).await
    }

    /// The next model calls of the whole tenant: `GET /v1/tenant/calls/model`. Going on with `next` until `caught_up`,
    /// now and later, misses none.
    ///
    /// # Errors
    /// 400 `cursor_invalid` for an `after` that is no `next`.
    pub async fn export_model_calls(&self, after: Option<&str>, limit: Option<u16>) -> Result<ModelCallExport, Error> {
        let call = Call::get(&["v1", "tenant", "calls", "model"]).query("after", after);
        self.http.json(&call.query("limit", limit.map(|limit| limit.to_string()))).await
    }

    /// How long idle sessions and old events are kept: `GET /v1/tenant/retention`.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn retention(&self) -> Result<Retention, Error> {
        self.http.json(&Call::get(&["v1", "tenant", "retention"])).await
    }

    /// Sets how long they are kept: `PUT /v1/tenant/retention`. Removing begins some seconds later.
    ///
    /// # Errors
    /// [`Error::Refused`] with every time that is no duration ([`crate::Refusal::problems`]).
    pub async fn set_retention(&self, retention: &Retention) -> Result<Retention, Error> {
        let Retention { sessions, events } = retention;
        let body = json!({"requestId": request_id()?, "sessions": sessions, "events": events});
        self.http.json(&Call::put(&["v1", "tenant", "retention"], body)).await
    }

    /// All budgets: `GET /v1/tenant/budgets`.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn budgets(&self) -> Result<Vec<Budget>, Error> {
        let list: BudgetList = self.http.json(&Call::get(&["v1", "tenant", "budgets"])).await?;
        Ok(list.budgets)
    }

    /// Replaces all budgets: `PUT /v1/tenant/budgets`.
    ///
    /// # Errors
    /// [`Error::Refused`] with every problem of the budgets ([`crate::Refusal::problems`]).
    pub async fn set_budgets(&self, budgets: &[Budget]) -> Result<Vec<Budget>, Error> {
        let body = json!({"requestId": request_id()?, "budgets": budgets});
        let list: BudgetList = self.http.json(&Call::put(&["v1", "tenant", "budgets"], body)).await?;
        Ok(list.budgets)
    }

    /// The settings for workspaces with the probes of each backend: `GET /v1/tenant/sandbox`.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn sandbox(&self) -> Result<SandboxSettings, Error> {
        self.http.json(&Call::get(&["v1", "tenant", "sandbox"])).await
    }

    /// Replaces all settings for workspaces: `PUT /v1/tenant/sandbox`. They hold for sessions that are opened later.
    ///
    /// # Errors
    /// [`Error::Refused`] with every problem of the settings ([`crate::Refusal::problems`]).
    pub async fn set_sandbox(&self, config: &Map<String, Value>) -> Result<SandboxSettings, Error> {
        let mut body = config.clone();
        body.insert("requestId".into(), json!(request_id()?));
        self.http.json(&Call::put(&["v1", "tenant", "sandbox"], Value::Object(body))).await
    }

    /// All keys, by name: `GET /v1/tenant/keys`.
    ///
    /// # Errors
    /// As every request: [`Error`].
    pub async fn keys(&self) -> Result<Vec<KeyView>, Error> {
        #[derive(Deserialize)]
        struct List {
            keys: Vec<KeyView>,
        }
        let list: List = self.http.json(&Call::get(&["v1", "tenant", "keys"])).await?;
        Ok(list.keys)
    }

    /// Makes an application key, or replaces the one of that name at once: `PUT /v1/tenant/keys/{keyId}`.
    ///
    /// # Errors
    /// 400 for a name that breaks the grammar or is reserved.
    pub async fn put_key(&self, id: &str) -> Result<KeyPut, Error> {
        let segments = ["v1", "tenant", "keys", id];
        let call = Call { method: Method::PUT, segments: &segments, query: Vec::new(), body: None };
        self.http.json(&call).await
    }

    /// Removes a key, at once: `DELETE /v1/tenant/keys/{keyId}`.
    ///
    /// # Errors
    /// 404 for a key that does not exist.
    pub async fn delete_key(&self, id: &str) -> Result<(), Error> {
        let segments = ["v1", "tenant", "keys", id];
        let _: Value = self.http.json(&Call::delete(&segments)).await?;
        Ok(())
    }
}

/// A body with the two ids that writes of settings carry.
fn with_ids(mut body: Map<String, Value>) -> Result<Value, Error> {
    body.insert("requestId".into(), json!(request_id()?));
    body.insert("idempotencyKey".into(), json!(request_id()?));
    Ok(Value::Object(body))
}
