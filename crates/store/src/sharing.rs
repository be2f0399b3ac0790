//! Sessions that use one workspace (api 2.2, `sandbox: {session}`): the session that owns it and those that share it.
//!
//! Nothing is stored of who has the workspace: it is the session of the group whose turn is active. So no crash leaves
//! it taken. Whatever begins in a shared workspace first locks the owner's row, so that two beginnings are decided one
//! after the other.

use nylorun_domain::id::SessionId;
use nylorun_domain::session::Session;

use crate::db::{Guard, Statement};
use crate::{Store, StoreError, params};

/// Another session's turn has the workspace: load again and decide again.
pub const WORKSPACE_HELD: Guard = Guard("no other turn in the shared workspace");
/// The session whose workspace was to be shared is gone, or another one of its id is there.
pub const NO_WORKSPACE_OWNER: Guard = Guard("the owner of the shared workspace");

// The owner's row changes its revision: what was decided of it while it was alone is decided again.
const JOIN: &str = "UPDATE sessions SET sharers = sharers + 1, rev = rev + 1 WHERE id = $1 AND created_at = $2";
const LEAVE: &str = "UPDATE sessions SET sharers = sharers - 1 WHERE id = $1";
const LOCK: &str = "UPDATE sessions SET sharers = sharers WHERE id = $1";
// After the lock, in a statement of its own: on PostgreSQL it then sees what was committed while the lock was awaited.
const IS_FREE: &str = "UPDATE sessions SET sharers = sharers WHERE id = $1 AND (id = $2 OR active_turn_id IS NULL) \
     AND NOT EXISTS (SELECT 1 FROM sessions sharer WHERE sharer.sandbox_owner_id = $1 AND sharer.id <> $2 \
     AND sharer.active_turn_id IS NOT NULL)";
const HOLDER: &str = "SELECT id FROM sessions WHERE id = $1 AND id <> $2 AND active_turn_id IS NOT NULL UNION ALL \
     SELECT id FROM sessions WHERE sandbox_owner_id = $1 AND id <> $2 AND active_turn_id IS NOT NULL LIMIT 1";
const SHARERS: &str = "SELECT id FROM sessions WHERE sandbox_owner_id = $1 ORDER BY id LIMIT $2";

pub(crate) const SQL: &[&str] = &[JOIN, LEAVE, LOCK, IS_FREE, HOLDER, SHARERS];

impl Store {
    /// Another session whose turn has the workspace that this one uses.
    pub async fn workspace_holder(&self, session: &Session) -> Result<Option<SessionId>, StoreError> {
        let rows = self.db.query(HOLDER, params![session.workspace_owner().as_str(), session.id.as_str()]).await?;
        Ok(rows.first().map(|row| row.text_arc(0)).transpose()?.map(SessionId::from_trusted))
    }

    /// At most `limit` sessions that share the workspace of this one, in order.
    pub async fn session_sharers(&self, owner: &SessionId, limit: i64) -> Result<Vec<SessionId>, StoreError> {
        let rows = self.db.query(SHARERS, params![owner.as_str(), limit]).await?;
        let ids = rows.iter().map(|row| row.text_arc(0).map(SessionId::from_trusted));
        Ok(ids.collect::<Result<_, _>>()?)
    }
}

/// A session begins to share the workspace of `owner`. Before its own row is written.
pub(crate) fn join(owner: &Session) -> Statement {
    Statement::one(JOIN, params![owner.id.as_str(), owner.created_at.0], NO_WORKSPACE_OWNER)
}

/// A session that shares the workspace of `owner` goes. After its own row: rows are locked in this order everywhere.
pub(crate) fn leave(owner: &SessionId) -> Statement {
    Statement::any(LEAVE, params![owner.as_str()])
}

/// Refuses a change of `session` while another session's turn has the workspace of `owner`. After the session's row.
pub(crate) fn claim(session: &SessionId, owner: &SessionId) -> [Statement; 2] {
    let free = params![owner.as_str(), session.as_str()];
    [Statement::any(LOCK, params![owner.as_str()]), Statement::one(IS_FREE, free, WORKSPACE_HELD)]
}
