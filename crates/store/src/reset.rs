//! Removing sessions with all that belongs to them. The ledger of model calls stays: money that was spent stays spent.

use nylorun_domain::id::SessionId;

use crate::db::Statement;
use crate::{Store, WriteError, params};

/// The session's row first: on PostgreSQL its lock orders everything else that writes to the session.
const DELETE: [&str; 9] = [
    "DELETE FROM sessions WHERE id = $1",
    "DELETE FROM events WHERE session_id = $1",
    "DELETE FROM effects WHERE session_id = $1",
    "DELETE FROM commands WHERE session_id = $1",
    "DELETE FROM wakes WHERE session_id = $1",
    "DELETE FROM checkpoints WHERE session_id = $1",
    "DELETE FROM queued_messages WHERE session_id = $1",
    "DELETE FROM direct_calls WHERE session_id = $1",
    "DELETE FROM workspaces WHERE session_id = $1",
];
/// Crossings are found by their time, not by their session: those of all sessions that are gone are removed at once.
const DELETE_CROSSINGS: &str = "DELETE FROM tool_crossings WHERE NOT EXISTS \
     (SELECT 1 FROM sessions WHERE sessions.id = tool_crossings.session_id)";

pub(crate) const SQL: &[&str] = &[
    DELETE[0],
    DELETE[1],
    DELETE[2],
    DELETE[3],
    DELETE[4],
    DELETE[5],
    DELETE[6],
    DELETE[7],
    DELETE[8],
    DELETE_CROSSINGS,
];

/// What removes all that belongs to a session, its row aside.
pub(crate) fn delete_what_belongs_to(id: &SessionId) -> impl Iterator<Item = Statement> {
    DELETE[1..].iter().map(|sql| Statement::any(*sql, params![id.as_str()]))
}

impl Store {
    /// Removes a session whole, in one transaction: its row, record, journal, commands and outbox. One that is not
    /// there is fine. Whoever decided a change of it finds its row gone.
    pub async fn session_delete(&self, id: &SessionId) -> Result<(), WriteError> {
        self.db.write(DELETE.iter().map(|sql| Statement::any(*sql, params![id.as_str()])).collect()).await
    }

    /// Removes the crossings of sessions that are gone.
    pub async fn crossing_delete_orphans(&self) -> Result<(), WriteError> {
        self.db.write(vec![Statement::any(DELETE_CROSSINGS, Vec::new())]).await
    }
}
