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
const TRANSCRIPT: &str = "SELECT seq, type, body FROM events WHERE session_id = $1 AND seq >= $2 \
     AND type IN ('transcript.updated', 'turn.cancelled', 'turn.failed') ORDER BY seq LIMIT $3";

/// Edits that are fetched at once: few enough that most of a long record is fetched while what came before is read.
const TRANSCRIPT_PAGE: i64 = 128;
/// How much of the record is read without a pause, in bytes: about half a millisecond.
const UNBROKEN_BYTES: usize = 256 * 1024;

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

    /// Gives what the record from `from` on did to the transcript, in order. While a page is read, the next one is
    /// fetched: neither the database nor the reader waits for the other, and no more than two pages are held.
    pub async fn event_transcript<E: From<StoreError>>(
        &self,
        session: &SessionId,
        from: i64,
        mut take: impl FnMut(Folding) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut page = self.transcript_page(session, from).await?;
        while let Some(next) = page.next_from {
            let fetched = self.transcript_page(session, next);
            let (fetched, taken) = tokio::join!(fetched, take_page(&page.rows, &mut take));
            taken?;
            page = fetched?;
        }
        take_page(&page.rows, &mut take).await
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

    async fn transcript_page(&self, session: &SessionId, from: i64) -> Result<TranscriptPage, StoreError> {
        let rows = self.db.query(TRANSCRIPT, params![session.as_str(), from, TRANSCRIPT_PAGE]).await?;
        let last = rows.last().filter(|_| rows.len() as i64 == TRANSCRIPT_PAGE);
        let next_from = last.map(|row| row.int(0)).transpose()?.map(|seq| seq + 1);
        Ok(TranscriptPage { rows, next_from })
    }
}

/// Rows of the record that a transcript is folded from.
struct TranscriptPage {
    rows: Vec<Row>,
    /// Where the next page begins, if there may be one.
    next_from: Option<i64>,
}

/// Reads a page, and lets others have the thread every now and then.
async fn take_page<E: From<StoreError>>(
    rows: &[Row],
    take: &mut impl FnMut(Folding) -> Result<(), E>,
) -> Result<(), E> {
    let mut unbroken = 0;
    for row in rows {
        if let Some(folding) = read_folding_of(row)? {
            take(folding)?;
        }
        unbroken += row.text(2).map_err(StoreError::from)?.len();
        if unbroken >= UNBROKEN_BYTES {
            unbroken = 0;
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

fn read_folding_of(row: &Row) -> Result<Option<Folding>, StoreError> {
    Ok(read_folding(row.text(1)?, row.text(2)?)?)
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
