//! A worker's sign of life, by which others know at once that it is gone (decisions, Takeover).

use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::error::DbError;

/// Held for a worker's life; dropping it lets the worker count as gone.
#[derive(Debug)]
pub struct WorkerLock {
    lost: watch::Receiver<bool>,
    /// Keeps the connection that holds the lock; on SQLite the lock on the home directory does the work.
    keeper: Option<AbortHandle>,
}

/// A lock that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerLockError {
    /// Another connection holds it: two workers have the same id.
    #[error("a worker with this id is alive")]
    Held,
    /// The database did not answer.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl WorkerLock {
    pub(super) fn new(lost: watch::Receiver<bool>, keeper: Option<AbortHandle>) -> Self {
        Self { lost, keeper }
    }

    /// Becomes `true` when the connection that holds the lock is lost: others may take over, so the worker must stop
    /// writing. Stays `false` for ever on SQLite.
    pub fn lost(&self) -> watch::Receiver<bool> {
        self.lost.clone()
    }
}

impl Drop for WorkerLock {
    fn drop(&mut self) {
        if let Some(keeper) = &self.keeper {
            keeper.abort();
        }
    }
}
