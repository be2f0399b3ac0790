//! The ledger of model calls (engine e.5).

use nylorun_domain::usage::{Completed, Repetition, UsageRow};

use crate::db::{Statement, Val};
use crate::params;
use crate::rows::{insert_rows, values_sql};

const INSERT: &str = "INSERT INTO model_usage (id, effect_id, session_id, turn_id, agent_id, provider, model, \
     outcome, duplicate, reported, \
     input_tokens, output_tokens, total_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, cost_nano_usd, \
     created_at) VALUES";
const COLUMNS: usize = 18;

/// Multi-row inserts are made at run time; the test prepares some of them.
pub(crate) fn insert_sql(rows: usize) -> String {
    values_sql(INSERT, COLUMNS, rows)
}

pub(crate) fn insert(rows: &[UsageRow]) -> Vec<Statement> {
    insert_rows(INSERT, COLUMNS, rows.iter().map(params_of).collect())
}

fn params_of(row: &UsageRow) -> Vec<Val> {
    let usage = row.usage.unwrap_or_default();
    let outcome = match row.completed {
        Completed::Completed => "completed",
        Completed::Failed => "failed",
    };
    let duplicate = match row.repetition {
        Repetition::First => 0_i64,
        Repetition::Duplicate => 1,
    };
    params![
        row.id.as_str(),
        row.effect_id.as_str(),
        row.session_id.as_str(),
        row.turn_id.as_str(),
        row.agent_id.as_str(),
        row.model.as_ref().map(|model| model.provider.as_str()),
        row.model.as_ref().map(|model| model.model.as_str()),
        outcome,
        duplicate,
        i64::from(row.usage.is_some()),
        usage.input,
        usage.output,
        usage.total,
        usage.cached,
        usage.cache_write,
        usage.reasoning,
        usage.cost_nano_usd,
        row.at.0,
    ]
}
