//! Budgets of model calls (api 3.2).

use nylorun_domain::budget::{Budget, BudgetScope, Limits, Period};
use nylorun_domain::id::AgentId;
use nylorun_domain::time::Millis;

use crate::db::{DbError, Row, Statement, Val};
use crate::rows::{insert_rows, values_sql};
use crate::session::unknown_word;
use crate::{Store, StoreError, WriteError, params};

const LIST: &str = "SELECT scope, scope_id, period, limit_nano_usd, limit_tokens FROM model_budgets \
     ORDER BY CASE scope WHEN 'tenant' THEN 0 WHEN 'agent' THEN 1 ELSE 2 END, scope_id";
const DELETE: &str = "DELETE FROM model_budgets";
const INSERT: &str =
    "INSERT INTO model_budgets (scope, scope_id, period, limit_nano_usd, limit_tokens, updated_at) VALUES";
const COLUMNS: usize = 6;
// Counted in the transaction of the change, so that whoever reads the count learns of changes by other processes.
const COUNT_CHANGE: &str = "INSERT INTO settings (key, value) VALUES ($1, '1') ON CONFLICT (key) DO UPDATE \
     SET value = CAST(CAST(settings.value AS BIGINT) + 1 AS TEXT)";
const MODEL_SETTINGS: &str = "SELECT key, value FROM settings WHERE key IN ($1, $2)";

/// Every fixed statement of this file, for the test that prepares them.
pub(crate) const SQL: &[&str] = &[LIST, DELETE, COUNT_CHANGE, MODEL_SETTINGS];

/// The setting that counts changes of budgets.
const BUDGET_CHANGES: &str = "budget.changes";

/// Multi-row inserts are made at run time; the test prepares some of them.
pub(crate) fn insert_sql(rows: usize) -> String {
    values_sql(INSERT, COLUMNS, rows)
}

/// What each model call reads of the tenant's settings, at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSettings {
    /// The value of [`crate::FIXTURE_MODEL`].
    pub fixture: Option<String>,
    /// How often budgets were put, by any process; `None` when they never were. As long as it stays the same, so do
    /// they.
    pub budget_changes: Option<String>,
}

impl Store {
    /// What each model call reads of the tenant's settings: one statement.
    pub async fn model_settings(&self) -> Result<ModelSettings, StoreError> {
        let mut settings = ModelSettings::default();
        for row in self.db.query(MODEL_SETTINGS, params![crate::FIXTURE_MODEL, BUDGET_CHANGES]).await? {
            let value = Some(row.text(1)?.to_owned());
            match row.text(0)? {
                BUDGET_CHANGES => settings.budget_changes = value,
                _ => settings.fixture = value,
            }
        }
        Ok(settings)
    }

    /// All budgets: the tenant's, those of agents by id, that of turns.
    pub async fn budget_list(&self) -> Result<Vec<Budget>, StoreError> {
        let rows = self.db.query(LIST, Vec::new()).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    /// Replaces all budgets. A scope stands at most once among them.
    pub async fn budget_put_all(&self, budgets: &[Budget], now: Millis) -> Result<(), WriteError> {
        let mut statements = vec![Statement::any(DELETE, Vec::new())];
        let rows = budgets.iter().map(|budget| insert_params(budget, now)).collect();
        statements.extend(insert_rows(INSERT, COLUMNS, rows));
        statements.push(Statement::any(COUNT_CHANGE, params![BUDGET_CHANGES]));
        self.db.write(statements).await
    }
}

fn insert_params(budget: &Budget, now: Millis) -> Vec<Val> {
    let (scope, id, period) = match &budget.scope {
        BudgetScope::Tenant(period) => ("tenant", "", Some(*period)),
        BudgetScope::Agent(agent, period) => ("agent", agent.as_str(), Some(*period)),
        BudgetScope::Turn => ("turn", "", None),
    };
    let Limits { cost_nano_usd, tokens } = budget.limits;
    params![scope, id, period.map(Period::as_str), cost_nano_usd, tokens, now.0]
}

fn read(row: &Row) -> Result<Budget, DbError> {
    let period = || row.opt_text(2)?.and_then(Period::from_wire).ok_or_else(|| unknown_word("period"));
    let scope = match row.text(0)? {
        "tenant" => BudgetScope::Tenant(period()?),
        "agent" => BudgetScope::Agent(AgentId::from_trusted(row.text_arc(1)?), period()?),
        "turn" => BudgetScope::Turn,
        _ => return Err(unknown_word("scope")),
    };
    Ok(Budget { scope, limits: Limits { cost_nano_usd: row.opt_int(3)?, tokens: row.opt_int(4)? } })
}
