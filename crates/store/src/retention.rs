//! Removing what is too old (`docs/guide/retention.md`): idle sessions whole, and events of sessions that stay.

use nylorun_domain::id::SessionId;
use nylorun_domain::time::Millis;

use crate::db::{DbError, Guard, Row, Statement};
use crate::{Store, StoreError, WriteError, params, reset, sharing};

/// Sessions by age. Who was opened later cannot be idle for longer.
const OPENED_BEFORE: &str = "SELECT id, created_at, COALESCE(last_event_at, created_at), active_turn_id, \
     retained_from, history_from, COALESCE(last_turn_id, ''), sandbox_owner_id \
     FROM sessions WHERE created_at < $3 AND (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $4";
// The owner of a workspace stays as long as others share it.
const DELETE_IDLE: &str = "DELETE FROM sessions WHERE id = $1 AND active_turn_id IS NULL AND sharers = 0 \
     AND COALESCE(last_event_at, created_at) < $2 \
     AND id NOT IN (SELECT session_id FROM direct_calls WHERE session_id = $1)";
const TIMES: &str = "SELECT seq, committed_at FROM events WHERE session_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3";
const MOVE_ON: &str =
    "UPDATE sessions SET retained_from = $2 WHERE id = $1 AND active_turn_id IS NULL AND retained_from < $2";
// What the model's history is folded from stays, as far back as the fold begins.
const DELETE_EVENTS: &str = "DELETE FROM events WHERE session_id = $1 AND seq >= $2 AND seq < $3 \
     AND type NOT IN ('transcript.updated', 'turn.cancelled', 'turn.failed')";
const DELETE_OLD_HISTORY: &str = "DELETE FROM events WHERE session_id = $1 AND seq < $2";
const DELETE_OLD_SNAPSHOT: &str = "DELETE FROM transcript_snapshots WHERE session_id = $1 AND upto < $2";
const DELETE_JOURNAL: &str =
    "DELETE FROM effects WHERE session_id = $1 AND turn_id <> $2 AND status IN ('completed', 'cancelled')";
const DELETE_COMMANDS: &str = "DELETE FROM commands WHERE session_id = $1 AND seq < $2";

pub(crate) const SQL: &[&str] = &[
    OPENED_BEFORE,
    DELETE_IDLE,
    TIMES,
    MOVE_ON,
    DELETE_EVENTS,
    DELETE_OLD_HISTORY,
    DELETE_OLD_SNAPSHOT,
    DELETE_JOURNAL,
    DELETE_COMMANDS,
];

/// Events that one transaction removes at most.
const STEP: i64 = 2_000;

/// A turn is active, something happened since, or others share the workspace: the session stays as it is.
pub(crate) const IN_USE: Guard = Guard("session is at rest");

/// A session that may be too old.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgedSession {
    /// Its id.
    pub id: SessionId,
    /// When it was opened.
    pub created_at: Millis,
    /// When something happened in it last.
    pub used_at: Millis,
    /// Whether a turn is active.
    pub is_active: bool,
    /// Where its events begin that may have to go.
    pub retained_from: i64,
    history_from: i64,
    last_turn_id: String,
    sandbox_owner: Option<SessionId>,
}

/// What became of what was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed,
    /// The session is in use again, or was gone before.
    Kept,
}

impl Store {
    /// At most `limit` sessions that were opened before this time, the oldest first, from after this one on.
    pub async fn session_opened_before(
        &self,
        cutoff: Millis,
        after: Option<&AgedSession>,
        limit: i64,
    ) -> Result<Vec<AgedSession>, StoreError> {
        let (at, id) = after.map_or((i64::MIN, ""), |session| (session.created_at.0, session.id.as_str()));
        let rows = self.db.query(OPENED_BEFORE, params![at, id, cutoff.0, limit]).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    /// Removes a session with all that belongs to it, unless a turn or a call is active, something happened since, or
    /// others share its workspace. The record of its workspace stays until its files are gone.
    pub async fn session_expire(&self, session: &AgedSession, cutoff: Millis) -> Result<Removal, WriteError> {
        let id = &session.id;
        let mut statements = vec![Statement::one(DELETE_IDLE, params![id.as_str(), cutoff.0], IN_USE)];
        statements.extend(session.sandbox_owner.as_ref().map(sharing::leave));
        statements.extend(reset::delete_what_belongs_to(id));
        removal(self.db.write(statements).await)
    }

    /// Removes the oldest events of a session as far as they are older than this, at most 2,000, with the journal and
    /// the commands that go with them. Answers whether it did, and where to go on when there may be more. A session
    /// with an active turn stays as it is, and so does what the model's history is folded from.
    pub async fn event_expire(
        &self,
        session: &AgedSession,
        cutoff: Millis,
    ) -> Result<(Removal, Option<AgedSession>), WriteError> {
        let id = session.id.as_str();
        let rows = self.db.query(TIMES, params![id, session.retained_from, STEP]).await?;
        let mut end = session.retained_from;
        for row in &rows {
            if row.int(1)? >= cutoff.0 {
                break;
            }
            end = row.int(0)? + 1;
        }
        if end == session.retained_from {
            return Ok((Removal::Kept, None));
        }
        let statements = vec![
            Statement::one(MOVE_ON, params![id, end], IN_USE),
            Statement::any(DELETE_EVENTS, params![id, session.retained_from, end]),
            Statement::any(DELETE_OLD_HISTORY, params![id, end.min(session.history_from)]),
            Statement::any(DELETE_OLD_SNAPSHOT, params![id, session.history_from]),
            Statement::any(DELETE_JOURNAL, params![id, session.last_turn_id.as_str()]),
            Statement::any(DELETE_COMMANDS, params![id, end]),
        ];
        let removal = removal(self.db.write(statements).await)?;
        let may_be_more = removal == Removal::Removed && end == last_of(&rows)? + 1;
        Ok((removal, may_be_more.then(|| AgedSession { retained_from: end, ..session.clone() })))
    }
}

/// The number of the last event that was read.
fn last_of(rows: &[Row]) -> Result<i64, DbError> {
    rows.last().map_or(Ok(i64::MAX - 1), |row| row.int(0))
}

/// What a removal came to whose row is guarded by [`IN_USE`].
pub(crate) fn removal(written: Result<(), WriteError>) -> Result<Removal, WriteError> {
    match written {
        Ok(()) => Ok(Removal::Removed),
        Err(WriteError::Guard(IN_USE)) => Ok(Removal::Kept),
        Err(error) => Err(error),
    }
}

fn read(row: &Row) -> Result<AgedSession, DbError> {
    Ok(AgedSession {
        id: SessionId::from_trusted(row.text(0)?),
        created_at: Millis(row.int(1)?),
        used_at: Millis(row.int(2)?),
        is_active: row.opt_text(3)?.is_some(),
        retained_from: row.int(4)?,
        history_from: row.int(5)?,
        last_turn_id: row.text(6)?.to_owned(),
        sandbox_owner: row.opt_text_arc(7)?.map(SessionId::from_trusted),
    })
}
