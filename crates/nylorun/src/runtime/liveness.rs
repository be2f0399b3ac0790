//! The sign of life of this process: a lock in the database, by which others know that it advances its sessions.

use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::id::WorkerId;
use nylorun_store::Db;
use nylorun_store::db::WorkerLock;
use nylorun_turns::{Scheduler, fresh_key};
use tokio::task::JoinHandle;

use crate::cli::Failure;

/// The name of this process among those that advance sessions.
pub(super) fn worker_id(host_id: &str) -> WorkerId {
    WorkerId::from_trusted(format!("worker-{host_id}-{}-{}", std::process::id(), &fresh_key()[..8]))
}

/// Takes the lock beside the rest of the start: on PostgreSQL it has a connection of its own, which takes a while.
pub(super) fn begin_lock(db: &Arc<Db>, worker: &WorkerId) -> JoinHandle<Result<WorkerLock, Failure>> {
    let (db, worker) = (Arc::clone(db), worker.clone());
    tokio::spawn(async move {
        let lock = db.hold_worker_lock(worker.as_str()).await;
        lock.map_err(|error| Failure::new(format!("cannot mark this process as alive: {error}")))
    })
}

/// While the lock is held, other processes know that this one is alive. When it is lost they may take over, so this one
/// gives up what it advances, and takes the lock again.
pub(super) async fn stay_alive(db: Arc<Db>, scheduler: Scheduler, mut lock: WorkerLock) {
    const RETRY: Duration = Duration::from_millis(500);
    loop {
        if lock.lost().wait_for(|lost| *lost).await.is_err() {
            // The store is closed.
            return;
        }
        tracing::warn!("the database connection that marks this process as alive was lost");
        scheduler.abandon();
        drop(lock);
        lock = loop {
            match db.hold_worker_lock(scheduler.worker().as_str()).await {
                Ok(lock) => break lock,
                Err(error) => tracing::warn!(%error, "this process cannot be marked as alive"),
            }
            tokio::time::sleep(RETRY).await;
        };
    }
}
