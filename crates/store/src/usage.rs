//! The ledger of model calls: what is written with each outcome (engine e.5).
//!
//! A row has a *place*, by which the ledger is exported and summed up ([`crate::usage_reads`]).

use nylorun_domain::usage::{Completed, Repetition, UsageRow};

use crate::db::{Dialect, Statement, Val};
use crate::params;
use crate::rows::{insert_rows_with, plain, values_sql_with};

const INSERT: &str = "INSERT INTO model_usage (id, effect_id, session_id, turn_id, agent_id, provider, model, \
     outcome, duplicate, reported, \
     input_tokens, output_tokens, total_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, cost_nano_usd, \
     created_at, place) VALUES";
/// Those that are bound; the place is not.
const COLUMNS: usize = 18;

/// What is added to transactions' numbers. A database that was restored into another server counts them anew, from
/// below the places that are stored already.
macro_rules! base {
    () => {
        "COALESCE((SELECT CAST(value AS BIGINT) FROM settings WHERE key = 'usage.base'), 0)"
    };
}
pub(crate) use base;

/// The place below which the ledger is settled: no row will appear there any more.
macro_rules! settled_below {
    (sqlite) => {
        "(SELECT COALESCE(MAX(place), 0) + 1 FROM model_usage)"
    };
    (postgres) => {
        concat!("(CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) + ", base!(), ")")
    };
}
pub(crate) use settled_below;

/// The place of a row that is being written.
///
/// SQLite has one writer, so places that are counted rise in the order of commits. PostgreSQL commits in any order: the
/// place is the transaction's number, and readers stop below those that are still open.
fn place(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "(SELECT COALESCE(MAX(place), 0) + 1 FROM model_usage)",
        Dialect::Postgres => concat!("(CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) + ", base!(), ")"),
    }
}

/// Multi-row inserts are made at run time; the test prepares some of them.
pub(crate) fn insert_sql(rows: usize, dialect: Dialect) -> String {
    values_sql_with(INSERT, COLUMNS, rows, Some(place(dialect)))
}

pub(crate) fn insert(rows: &[UsageRow], dialect: Dialect) -> Vec<Statement> {
    insert_rows_with(INSERT, COLUMNS, rows.iter().map(params_of).collect(), Some(place(dialect)))
}

fn params_of(row: &UsageRow) -> Vec<Val> {
    let usage = row.usage.unwrap_or_default();
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
        plain(row.model.as_ref().map(|model| model.provider.as_str())),
        plain(row.model.as_ref().map(|model| model.model.as_str())),
        outcome_word(row.completed),
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

fn outcome_word(completed: Completed) -> &'static str {
    match completed {
        Completed::Completed => "completed",
        Completed::Failed => "failed",
    }
}
