//! The record: one ordered log a session (engine c.3).

use std::sync::Arc;

use nylorun_domain::event::{Event, Visibility};
use nylorun_domain::id::{EffectId, SessionId, TenantId};
use nylorun_domain::json::{Json, Value};
use nylorun_domain::time::Millis;
use nylorun_domain::transcript::Folding;
use nylorun_wire::event::{encode, event_type, read_folding};

use crate::db::{DbError, Row, Statement, Val};
use crate::rows::{insert_rows, values_sql};
use crate::session::unknown_word;
use crate::{Store, StoreError, params};

const INSERT: &str = "INSERT INTO events (session_id, seq, type, visibility, body, committed_at) VALUES";
const COLUMNS: usize = 6;
const RANGE: &str = "SELECT seq, type, visibility, body, committed_at FROM events WHERE session_id = $1 AND seq > $2 \
     ORDER BY seq LIMIT $3";
const ONE: &str = "SELECT seq, type, visibility, body, committed_at FROM events WHERE session_id = $1 AND seq = $2";
const TRANSCRIPT: &str = "SELECT type, body FROM events WHERE session_id = $1 AND seq >= $2 \
     AND type IN ('transcript.updated', 'turn.cancelled', 'turn.failed') ORDER BY seq";

const SETTLED: &str = "SELECT body FROM events WHERE session_id = $1 AND seq > $2 AND type = 'effect.settled' \
     ORDER BY seq";

pub(crate) const SQL: &[&str] = &[RANGE, ONE, TRANSCRIPT, SETTLED];

/// Multi-row inserts are made at run time; the test prepares some of them.
pub(crate) fn insert_sql(rows: usize) -> String {
    values_sql(INSERT, COLUMNS, rows)
}

/// An event as the record holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its sequence number.
    pub seq: i64,
    /// Its type.
    pub kind: Arc<str>,
    /// Who may read it.
    pub visibility: Visibility,
    /// The whole `nylorun.event/2` document.
    pub body: Arc<str>,
    /// When it was decided; its transaction followed at once.
    pub committed_at: Millis,
}

impl StoredEvent {
    /// The stored form of an event.
    pub fn of(event: &Event, tenant: &TenantId) -> Self {
        Self {
            seq: event.seq,
            kind: event_type(&event.payload).into(),
            visibility: event.payload.visibility(),
            body: encode(event, tenant).into(),
            committed_at: event.time,
        }
    }
}

impl Store {
    /// Events after `after` (-1 for all), at most `limit`, in order.
    pub async fn event_range(
        &self,
        session: &SessionId,
        after: i64,
        limit: i64,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let rows = self.db.query(RANGE, params![session.as_str(), after, limit]).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    /// The event at `seq`.
    pub async fn event_get(&self, session: &SessionId, seq: i64) -> Result<Option<StoredEvent>, StoreError> {
        let rows = self.db.query(ONE, params![session.as_str(), seq]).await?;
        Ok(rows.first().map(read).transpose()?)
    }

    /// What the record from `from` on did to the transcript, in order.
    pub async fn event_transcript(&self, session: &SessionId, from: i64) -> Result<Vec<Folding>, StoreError> {
        let rows = self.db.query(TRANSCRIPT, params![session.as_str(), from]).await?;
        let read = |row: &Row| Ok(read_folding(row.text(0)?, row.text(1)?)?);
        rows.iter().filter_map(|row| read(row).transpose()).collect()
    }

    /// The effects that were settled after `after`, as the record says.
    pub async fn event_settled(&self, session: &SessionId, after: i64) -> Result<Vec<EffectId>, StoreError> {
        let rows = self.db.query(SETTLED, params![session.as_str(), after]).await?;
        let effect = |row: &Row| {
            let body = Json::from_trusted(row.text_arc(0)?).value();
            let id = body.get("payload").and_then(|payload| payload.get("effectId")).and_then(Value::as_str);
            Ok(id.map(EffectId::from_trusted))
        };
        rows.iter().filter_map(|row| effect(row).transpose()).collect()
    }
}

fn read(row: &Row) -> Result<StoredEvent, DbError> {
    Ok(StoredEvent {
        seq: row.int(0)?,
        kind: row.text_arc(1)?,
        visibility: Visibility::from_wire(row.text(2)?).ok_or_else(|| unknown_word("visibility"))?,
        body: row.text_arc(3)?,
        committed_at: Millis(row.int(4)?),
    })
}

pub(crate) fn insert(session: &SessionId, events: &[Arc<StoredEvent>]) -> Vec<Statement> {
    let row = |event: &Arc<StoredEvent>| -> Vec<Val> {
        params![
            session.as_str(),
            event.seq,
            Arc::clone(&event.kind),
            event.visibility.as_str(),
            Arc::clone(&event.body),
            event.committed_at.0,
        ]
    };
    insert_rows(INSERT, COLUMNS, events.iter().map(row).collect())
}
