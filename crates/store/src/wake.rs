//! The outbox: sessions that are to be advanced (engine c.3).

use nylorun_domain::change::WakeChange;
use nylorun_domain::id::{SessionId, WorkerId};
use nylorun_domain::time::Millis;

use crate::db::Statement;
use crate::{Store, StoreError, WriteError, params};

const INSERT: &str = "INSERT INTO wakes (id, session_id, reason, created_at) VALUES ($1, $2, $3, $4)";
const CLEAR: &str = "DELETE FROM wakes WHERE session_id = $1";
const DUE: &str = "SELECT DISTINCT session_id FROM wakes WHERE created_at <= $1 ORDER BY session_id LIMIT $2";
const HEARTBEAT: &str = "INSERT INTO workers (id, heartbeat_at) VALUES ($1, $2) \
     ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at";
const LAST_HEARTBEAT: &str = "SELECT heartbeat_at FROM workers WHERE id = $1";
const FORGET_WORKERS: &str = "DELETE FROM workers WHERE heartbeat_at < $1";

pub(crate) const SQL: &[&str] = &[INSERT, CLEAR, DUE, HEARTBEAT, LAST_HEARTBEAT, FORGET_WORKERS];

impl Store {
    /// Sessions with a wake that was made at or before `until`.
    pub async fn wake_due(&self, until: Millis, limit: i64) -> Result<Vec<SessionId>, StoreError> {
        let rows = self.db.query(DUE, params![until.0, limit]).await?;
        let ids = rows.iter().map(|row| row.text_arc(0).map(SessionId::from_trusted));
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// Says that this worker is alive: one row, however many sessions it has.
    pub async fn worker_heartbeat(&self, worker: &WorkerId, now: Millis) -> Result<(), WriteError> {
        self.db.write(vec![Statement::any(HEARTBEAT, params![worker.as_str(), now.0])]).await
    }

    /// When a worker last said that it is alive.
    pub async fn worker_last_heartbeat(&self, worker: &WorkerId) -> Result<Option<Millis>, StoreError> {
        let rows = self.db.query(LAST_HEARTBEAT, params![worker.as_str()]).await?;
        Ok(rows.first().map(|row| row.int(0)).transpose()?.map(Millis))
    }

    /// Whether a worker other than the caller's own is known to be gone (decisions, Takeover). On SQLite the
    /// caller holds the home directory's lock, so every other worker is; on PostgreSQL a worker holds a lock on its own
    /// connection.
    pub async fn worker_is_gone(&self, worker: &WorkerId) -> Result<bool, StoreError> {
        Ok(self.db.is_worker_gone(worker.as_str()).await?)
    }

    /// Forgets workers that have been silent since before `before`.
    pub async fn worker_forget(&self, before: Millis) -> Result<(), WriteError> {
        self.db.write(vec![Statement::any(FORGET_WORKERS, params![before.0])]).await
    }
}

pub(crate) fn apply(session: &SessionId, change: &WakeChange) -> Option<Statement> {
    match change {
        WakeChange::Keep => None,
        WakeChange::Put(wake) => {
            let params = params![wake.id.as_str(), session.as_str(), wake.reason.as_str(), wake.created_at.0];
            Some(Statement::any(INSERT, params))
        }
        WakeChange::Clear => Some(Statement::any(CLEAR, params![session.as_str()])),
    }
}
