//! A small pool: connections are made when needed, used by one caller at a time, and closed when they have been idle.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::connection::{CONNECT_TIMEOUT, Connection, Target};
use crate::db::error::DbError;

/// A connection that nobody has used for so long is closed.
const IDLE: Duration = Duration::from_secs(30);

/// How long closing waits for the connections in use.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A pool of at most a fixed number of connections.
#[derive(Clone)]
pub(super) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    target: Target,
    size: u32,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// A connection in use. Dropping it closes it; [`Pooled::give_back`] keeps it for the next.
pub(super) struct Pooled {
    pub(super) connection: Connection,
    shared: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    /// A pool without connections yet.
    pub(super) fn new(target: Target, size: u32) -> Self {
        let permits = Arc::new(Semaphore::new(size as usize));
        let shared = Arc::new(Shared { target, size, permits, idle: Mutex::default() });
        tokio::spawn(reap(Arc::downgrade(&shared)));
        Self { shared }
    }

    /// An idle connection, the one used last first, or a new one; waits its turn when all are in use.
    pub(super) async fn get(&self) -> Result<Pooled, DbError> {
        let permits = Arc::clone(&self.shared.permits).acquire_owned();
        let permit = match tokio::time::timeout(CONNECT_TIMEOUT, permits).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(DbError::Closed),
            Err(_) => return Err(DbError::Busy),
        };
        let connection = match self.shared.take_idle() {
            Some(connection) => connection,
            None => Connection::open(&self.shared.target).await?,
        };
        Ok(Pooled { connection, shared: Arc::clone(&self.shared), _permit: permit })
    }

    /// Makes a connection for the first who asks. One that cannot be made is no failure yet: whoever asks tries again.
    pub(super) async fn warm<E>(&self) -> Result<(), E> {
        if let Ok(pooled) = self.get().await {
            pooled.give_back();
        }
        Ok(())
    }

    /// Waits a while for the connections in use and closes the rest.
    pub(super) async fn close(&self) {
        // Whoever is still busy then closes its connection itself, when it is done.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.shared.permits.acquire_many(self.shared.size)).await;
        self.shared.permits.close();
        self.shared.idle().clear();
    }
}

impl Pooled {
    /// Keeps the connection for the next caller. It must be outside of a transaction.
    pub(super) fn give_back(self) {
        if !self.connection.is_closed() && !self.shared.permits.is_closed() {
            self.shared.idle().push(Idle { connection: self.connection, since: Instant::now() });
        }
    }
}

/// A connection for one read outside of a transaction. When its reader stops waiting (a follower leaves, say), it is
/// kept for the next all the same: the answer that still comes is passed over.
pub(super) struct Reading(Option<Pooled>);

impl Reading {
    pub(super) fn new(pooled: Pooled) -> Self {
        Self(Some(pooled))
    }

    /// The connection; `None` once it was closed.
    pub(super) fn connection(&mut self) -> Option<&mut Connection> {
        self.0.as_mut().map(|pooled| &mut pooled.connection)
    }

    /// Closes the connection: whatever failed, a new one is the simplest way to be sure of its state.
    pub(super) fn close(&mut self) {
        self.0 = None;
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(pooled) = self.0.take() {
            pooled.give_back();
        }
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle();
        while let Some(Idle { connection, .. }) = idle.pop() {
            if !connection.is_closed() {
                return Some(connection);
            }
        }
        None
    }
}

/// Closes idle connections until the pool is gone.
async fn reap(shared: Weak<Shared>) {
    let mut tick = tokio::time::interval(IDLE / 3);
    loop {
        tick.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        shared.idle().retain(|idle| idle.since.elapsed() < IDLE && !idle.connection.is_closed());
    }
}
