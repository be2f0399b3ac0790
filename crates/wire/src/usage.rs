//! What model calls used, on the wire (api 1.10, 2.3, 3).

use nylorun_domain::budget::Spend;
use nylorun_domain::id::{SessionId, TurnId};
use nylorun_domain::json::{Number, Value};
use nylorun_domain::model::Usage;
use nylorun_domain::time::Millis;
use nylorun_domain::usage::{Completed, Repetition, UsageRow, UsageTotals};

use crate::session::text_or_null;

/// `GET /v1/sessions/{id}/usage`
pub fn of_session(session: &SessionId, turn: Option<&TurnId>, as_of: Millis, totals: &UsageTotals) -> Value {
    let mut members = vec![
        ("sessionId", Value::from(session.as_str())),
        ("turnId", text_or_null(turn.map(TurnId::as_str))),
        ("asOf", Value::from(as_of.to_iso())),
    ];
    members.extend(numbers(&totals.used));
    members.push(("calls", Value::from(totals.calls)));
    members.push(("duplicates", Value::from(totals.duplicates)));
    members.push(("unpricedCalls", Value::from(totals.unpriced)));
    members.push(("unreportedCalls", Value::from(totals.unreported)));
    // Each call's row says whether its tokens were reported and its cost is known: there is none that does not.
    members.push(("unknownQualityCalls", Value::from(0)));
    Value::object(members)
}

/// `{calls: […], nextCursor, asOf}`
pub fn session_page(calls: &[UsageRow], next_cursor: Option<&str>, as_of: Millis) -> Value {
    Value::object([
        ("calls", Value::Array(calls.iter().map(call).collect())),
        ("nextCursor", text_or_null(next_cursor)),
        ("asOf", Value::from(as_of.to_iso())),
    ])
}

/// Whether an export has given everything that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It has, for now.
    CaughtUp,
    /// More follows.
    Behind,
}

/// `{calls: […], next, caughtUp, asOf}`
pub fn export_page<'a>(
    calls: impl Iterator<Item = &'a UsageRow>,
    next: &str,
    progress: Progress,
    as_of: Millis,
) -> Value {
    Value::object([
        ("calls", Value::Array(calls.map(call).collect())),
        ("next", Value::from(next)),
        ("caughtUp", Value::from(progress == Progress::CaughtUp)),
        ("asOf", Value::from(as_of.to_iso())),
    ])
}

/// What somebody's calls spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantUsage {
    /// `tenant`, `agent` or `turn`.
    pub scope: &'static str,
    /// The agent's or the turn's id.
    pub id: Option<String>,
    /// `day`, `month` or `total`.
    pub period: &'static str,
    /// When the period began; nothing for `total`.
    pub since: Option<Millis>,
    /// What was spent in it.
    pub spend: Spend,
}

impl TenantUsage {
    /// The answer's body.
    pub fn to_value(&self) -> Value {
        let mut members = vec![("scope", Value::from(self.scope))];
        members.extend(self.id.as_deref().map(|id| ("id", Value::from(id))));
        members.push(("period", Value::from(self.period)));
        members.extend(self.since.map(|since| ("since", Value::from(since.to_iso()))));
        members.push(("calls", Value::from(self.spend.calls)));
        members.push(("tokens", Value::from(self.spend.tokens)));
        members.push(("costUsd", usd(self.spend.cost_nano_usd)));
        Value::object(members)
    }
}

/// A model call in a list.
fn call(row: &UsageRow) -> Value {
    Value::object([
        ("id", Value::from(row.id.as_str())),
        ("sessionId", Value::from(row.session_id.as_str())),
        ("turnId", Value::from(row.turn_id.as_str())),
        ("agentId", Value::from(row.agent_id.as_str())),
        ("provider", text_or_null(row.model.as_ref().map(|model| model.provider.as_str()))),
        ("model", text_or_null(row.model.as_ref().map(|model| model.model.as_str()))),
        ("at", Value::from(row.at.to_iso())),
        (
            "outcome",
            Value::from(match row.completed {
                Completed::Completed => "completed",
                Completed::Failed => "failed",
            }),
        ),
        ("usage", call_usage(row)),
    ])
}

/// A call that failed and reported nothing has no usage; one that answered has, even if all that is known of it is that
/// nothing was reported.
fn call_usage(row: &UsageRow) -> Value {
    let (usage, is_reported) = match (row.usage, row.completed) {
        (Some(usage), _) => (usage, true),
        (None, Completed::Completed) => (Usage::default(), false),
        (None, Completed::Failed) => return Value::Null,
    };
    let mut members = numbers(&usage).to_vec();
    members.push(("duplicate", Value::from(row.repetition == Repetition::Duplicate)));
    members.push(("tokensReported", Value::from(is_reported)));
    members.push(("costKnown", Value::from(usage.cost_nano_usd.is_some())));
    Value::object(members)
}

fn numbers(usage: &Usage) -> [(&'static str, Value); 7] {
    [
        ("inputTokens", Value::from(usage.input)),
        ("outputTokens", Value::from(usage.output)),
        ("totalTokens", Value::from(usage.total)),
        ("cachedTokens", Value::from(usage.cached)),
        ("cacheWriteTokens", Value::from(usage.cache_write)),
        ("reasoningTokens", Value::from(usage.reasoning)),
        ("costUsd", usd(usage.cost_nano_usd.unwrap_or(0))),
    ]
}

/// Billionths of a US dollar as a number of dollars.
pub(crate) fn usd(nano: i64) -> Value {
    Value::Number(Number::from_billionths(nano))
}
