//! What model calls used, and how much they may (api 1.10, 2.3, 3).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a session or one of its turns used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionUsage {
    /// The session.
    pub session_id: String,
    /// The turn that was asked for.
    pub turn_id: Option<String>,
    /// When it was read, ISO 8601 UTC.
    pub as_of: String,
    /// All tokens.
    pub total_tokens: u64,
    /// US dollars, for the calls whose price is known.
    pub cost_usd: f64,
    /// Calls that reached an end.
    pub calls: u64,
    /// The other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCall {
    /// Its id.
    pub id: String,
    /// Its session.
    pub session_id: String,
    /// Its turn.
    pub turn_id: String,
    /// The turn's agent.
    pub agent_id: String,
    /// Who was asked, when that is known.
    pub provider: Option<String>,
    /// Which model.
    pub model: Option<String>,
    /// When its outcome was recorded, ISO 8601 UTC.
    pub at: String,
    /// `completed` or `failed`.
    pub outcome: String,
    /// What it used; nothing for one that failed and reported nothing.
    pub usage: Option<Map<String, Value>>,
    /// The other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A page of a session's model calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCallPage {
    /// The oldest first.
    pub calls: Vec<ModelCall>,
    /// For the next page, or nothing when this is the last.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// When it was read, ISO 8601 UTC.
    pub as_of: String,
}

/// A page of the tenant's export of model calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCallExport {
    /// In the order of the ledger. A call that was given before may come again: tell them apart by their id.
    pub calls: Vec<ModelCall>,
    /// Where to go on, now or later.
    pub next: String,
    /// Whether this was all there was.
    pub caught_up: bool,
    /// When it was read, ISO 8601 UTC.
    pub as_of: String,
}

/// Whose usage is asked for, and of which time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// `tenant`, `agent` or `turn`; the server's default is `tenant`.
    pub scope: Option<String>,
    /// The agent's or the turn's id.
    pub id: Option<String>,
    /// `day`, `month` (UTC) or `total`; the server's default is `total`.
    pub period: Option<String>,
}

/// What the tenant, an agent or a turn spent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantUsage {
    /// `tenant`, `agent` or `turn`.
    pub scope: String,
    /// The agent's or the turn's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `day`, `month` or `total`.
    pub period: String,
    /// When the period began, ISO 8601 UTC; nothing for `total`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Calls that reached an end.
    pub calls: u64,
    /// All tokens.
    pub tokens: u64,
    /// US dollars, for the calls whose price is known.
    pub cost_usd: f64,
}

/// How much may be spent (api 3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// `tenant`, `agent` or `turn`.
    pub scope: String,
    /// The agent's id, for scope `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `day` or `month` (UTC), but for scope `turn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_usd: Option<f64>,
    /// Tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_tokens: Option<u64>,
}

/// `{budgets: […]}`
#[derive(Deserialize)]
pub(crate) struct BudgetList {
    pub(crate) budgets: Vec<Budget>,
}
