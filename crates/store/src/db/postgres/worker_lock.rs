//! A worker's sign of life: an advisory lock that its own connection holds. When the process dies, or its connection
//! is lost, the server frees the lock at once, and anybody can see that by trying it.

use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio_postgres::error::SqlState;

use super::connection::Target;
use super::execute;
use crate::db::{WorkerLock, WorkerLockError};

/// Tries the lock and frees it at once, since its transaction is this statement. Shared, so that several who ask at the
/// same moment do not take each other for the worker.
pub(super) const IS_FREE: &str = "SELECT pg_try_advisory_xact_lock_shared($1)";

/// The number of a worker's lock.
pub(super) fn key(worker: &str) -> i64 {
    let digest = Sha256::digest(format!("nylorun worker {worker}").as_bytes());
    digest.iter().take(8).fold(0, |key, byte| (key << 8) | i64::from(*byte))
}

/// Takes the lock; it is held until the answer is dropped or its connection ends.
pub(super) async fn hold(target: &Target, worker: &str) -> Result<WorkerLock, WorkerLockError> {
    let (client, driver) = target.connect().await?;
    let driver = tokio::spawn(driver);
    target.begin_session(&client).await?;
    // Waits a moment, since one who asks whether the worker is gone holds the lock for an instant.
    let take = format!("SELECT pg_advisory_lock({})", key(worker));
    client.batch_execute(&take).await.map_err(|error| match error.code() {
        Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => WorkerLockError::Held,
        Some(_) | None => execute::failure("SELECT pg_advisory_lock", &error).into(),
    })?;
    let (lost, is_lost) = watch::channel(false);
    let keeper = tokio::spawn(async move {
        // The connection lives as long as its client, which this task keeps until the connection ends by itself.
        let _ = driver.await;
        drop(client);
        lost.send_replace(true);
    });
    Ok(WorkerLock::new(is_lost, Some(keeper.abort_handle())))
}

#[cfg(test)]
mod tests {
    #[test]
    fn keys_differ_and_stay() {
        assert_eq!(super::key("w1"), super::key("w1"));
        assert_ne!(super::key("w1"), super::key("w2"));
    }
}
