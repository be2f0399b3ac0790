//! Budgets (api 3.2).

use nylorun_domain::budget::Budget;
use nylorun_turns::now;

use crate::{App, Error};

impl App {
    /// All budgets, in their order.
    pub async fn budget_list(&self) -> Result<Vec<Budget>, Error> {
        Ok(self.store().budget_list().await?)
    }

    /// Replaces all budgets. They hold from each process's next model call on.
    pub async fn budget_put_all(&self, budgets: &[Budget]) -> Result<Vec<Budget>, Error> {
        self.store().budget_put_all(budgets, now()).await?;
        tracing::info!(count = budgets.len(), "budgets set");
        self.budget_list().await
    }
}
