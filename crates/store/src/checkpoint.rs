//! Checkpoints: from what the next segment of a session's turn begins (engine b.1). At most one row a session, and none
//! while its turn is in its first segment.

use nylorun_domain::change::CheckpointChange;
use nylorun_domain::checkpoint::Checkpoint;
use nylorun_domain::id::{SessionId, TurnId};
use nylorun_domain::json::Document;
use nylorun_wire::checkpoint::{from_node, to_value};

use crate::db::Statement;
use crate::session::unknown_word;
use crate::{Store, StoreError, params};

const PUT: &str = "INSERT INTO checkpoints (session_id, turn_id, segment, body) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (session_id) DO UPDATE SET turn_id = excluded.turn_id, segment = excluded.segment, \
     body = excluded.body";
const CLEAR: &str = "DELETE FROM checkpoints WHERE session_id = $1";
const GET: &str = "SELECT turn_id, segment, body FROM checkpoints WHERE session_id = $1";

pub(crate) const SQL: &[&str] = &[PUT, CLEAR, GET];

impl Store {
    /// The session's checkpoint.
    pub async fn checkpoint_get(&self, session: &SessionId) -> Result<Option<Checkpoint>, StoreError> {
        let rows = self.db.query(GET, params![session.as_str()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let segment = u32::try_from(row.int(1)?).map_err(|_| unknown_word("segment"))?;
        let body = Document::parse(row.text(2)?).map_err(|_| unknown_word("body"))?;
        let checkpoint = from_node(TurnId::from_trusted(row.text_arc(0)?), segment, body.root());
        Ok(Some(checkpoint.map_err(|_| unknown_word("body"))?))
    }
}

pub(crate) fn apply(session: &SessionId, change: &CheckpointChange) -> Option<Statement> {
    match change {
        CheckpointChange::Keep => None,
        CheckpointChange::Put(checkpoint) => {
            let body = to_value(checkpoint).to_json();
            let params = params![session.as_str(), checkpoint.turn_id.as_str(), checkpoint.segment, body.as_str()];
            Some(Statement::any(PUT, params))
        }
        CheckpointChange::Clear => Some(Statement::any(CLEAR, params![session.as_str()])),
    }
}
