//! Removing sessions with all that belongs to them. The ledger of model calls stays: money that was spent stays spent.

use nylorun_domain::id::SessionId;
use nylorun_domain::session::Session;

use crate::db::Statement;
use crate::{Removal, Store, WriteError, params, retention, sharing};

/// The session's row goes first: on PostgreSQL its lock orders everything else that writes to the session.
const DELETE_SESSION: &str = "DELETE FROM sessions WHERE id = $1 AND created_at = $2 AND sharers = 0";
const DELETE_WORKSPACE: &str = "DELETE FROM workspaces WHERE session_id = $1";
const DELETE_BELONGINGS: [&str; 8] = [
    "DELETE FROM events WHERE session_id = $1",
    "DELETE FROM effects WHERE session_id = $1",
    "DELETE FROM commands WHERE session_id = $1",
    "DELETE FROM wakes WHERE session_id = $1",
    "DELETE FROM checkpoints WHERE session_id = $1",
    "DELETE FROM transcript_snapshots WHERE session_id = $1",
    "DELETE FROM queued_messages WHERE session_id = $1",
    "DELETE FROM direct_calls WHERE session_id = $1",
];
/// Crossings are found by their time, not by their session: those of all sessions that are gone are removed at once.
const DELETE_CROSSINGS: &str = "DELETE FROM tool_crossings WHERE NOT EXISTS \
     (SELECT 1 FROM sessions WHERE sessions.id = tool_crossings.session_id)";

const OTHERS: [&str; 3] = [DELETE_SESSION, DELETE_WORKSPACE, DELETE_CROSSINGS];

pub(crate) fn sql() -> impl Iterator<Item = &'static str> {
    DELETE_BELONGINGS.into_iter().chain(OTHERS)
}

/// What removes all that belongs to a session, its row and the record of its workspace aside: by that record its files
/// are found.
pub(crate) fn delete_what_belongs_to(id: &SessionId) -> impl Iterator<Item = Statement> {
    DELETE_BELONGINGS.into_iter().map(|sql| Statement::any(sql, params![id.as_str()]))
}

impl Store {
    /// Removes a session whole, in one transaction, after its workspace: its row, record, journal, commands and outbox.
    /// Whoever decided a change of it finds its row gone. It is kept while others share its workspace, and when it is
    /// another one than was read.
    pub async fn session_delete(&self, session: &Session) -> Result<Removal, WriteError> {
        let id = &session.id;
        let mut statements =
            vec![Statement::one(DELETE_SESSION, params![id.as_str(), session.created_at.0], retention::IN_USE)];
        statements.extend(session.sandbox_owner.as_ref().map(sharing::leave));
        statements.extend(delete_what_belongs_to(id));
        statements.push(Statement::any(DELETE_WORKSPACE, params![id.as_str()]));
        retention::removal(self.db.write(statements).await)
    }

    /// Removes the crossings of sessions that are gone.
    pub async fn crossing_delete_orphans(&self) -> Result<(), WriteError> {
        self.db.write(vec![Statement::any(DELETE_CROSSINGS, Vec::new())]).await
    }
}
