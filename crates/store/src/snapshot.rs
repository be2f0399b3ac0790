//! Snapshots of long transcripts: what the record folds to up to an event of it (decisions, 0009). They are made from
//! the record and never the truth: without one, the fold only takes longer.

use std::sync::Arc;

use nylorun_domain::id::SessionId;
use nylorun_domain::time::Millis;

use crate::db::Statement;
use crate::{Store, StoreError, WriteError, params};

/// Only of the session that was opened then: another one may have its id by now. An older one never takes the place of
/// a newer one.
const PUT: &str = "INSERT INTO transcript_snapshots (session_id, upto, entries) \
     SELECT id, CAST($3 AS BIGINT), CAST($4 AS TEXT) FROM sessions WHERE id = $1 AND created_at = $2 \
     ON CONFLICT (session_id) DO UPDATE SET upto = excluded.upto, entries = excluded.entries \
     WHERE transcript_snapshots.upto < excluded.upto";
const GET: &str = "SELECT upto, entries FROM transcript_snapshots WHERE session_id = $1 AND upto >= $2";

pub(crate) const SQL: &[&str] = &[PUT, GET];

/// Largest snapshot that is written, in bytes: a conversation beyond it is near the end of any model's window.
const MAX_SNAPSHOT: usize = 8 << 20;

/// A transcript as the record folds to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event that is folded into it, between two turns.
    pub upto: i64,
    /// The transcript after that event, as [`entries_to_lines`](nylorun_wire::transcript::entries_to_lines) prints it.
    pub entries: Arc<str>,
}

impl Store {
    /// The session's snapshot, when it reaches to `from` or further.
    pub async fn snapshot_get(&self, session: &SessionId, from: i64) -> Result<Option<Snapshot>, StoreError> {
        let rows = self.db.query(GET, params![session.as_str(), from]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(Snapshot { upto: row.int(0)?, entries: row.text_arc(1)? }))
    }

    /// Keeps what the record of the session that was opened then folds to. What is too large is not kept.
    pub async fn snapshot_put(
        &self,
        session: &SessionId,
        opened_at: Millis,
        snapshot: Snapshot,
    ) -> Result<(), WriteError> {
        let Snapshot { upto, entries } = snapshot;
        if entries.len() > MAX_SNAPSHOT {
            return Ok(());
        }
        self.db.write(vec![Statement::any(PUT, params![session.as_str(), opened_at.0, upto, entries])]).await
    }
}
