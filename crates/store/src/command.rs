//! Accepted commands by their idempotency key (api 1.9).

use nylorun_domain::change::CommandRecord;
use nylorun_domain::id::{SessionId, TurnId};
use nylorun_domain::time::Millis;

use crate::db::Statement;
use crate::{Store, StoreError, params};

const INSERT: &str = "INSERT INTO commands (session_id, idempotency_key, body_hash, request_id, turn_id, seq, \
     created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)";
const GET: &str = "SELECT idempotency_key, body_hash, request_id, turn_id, seq, created_at FROM commands \
     WHERE session_id = $1 AND idempotency_key = $2";

pub(crate) const SQL: &[&str] = &[INSERT, GET];

impl Store {
    /// The command that was accepted under this key, if any.
    pub async fn command_get(&self, session: &SessionId, key: &str) -> Result<Option<CommandRecord>, StoreError> {
        let rows = self.db.query(GET, params![session.as_str(), key]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(CommandRecord {
            idempotency_key: row.text(0)?.to_owned(),
            body_hash: row.text(1)?.to_owned(),
            request_id: row.text(2)?.to_owned(),
            turn_id: row.opt_text_arc(3)?.map(TurnId::from_trusted),
            seq: row.int(4)?,
            at: Millis(row.int(5)?),
        }))
    }
}

pub(crate) fn insert(session: &SessionId, record: &CommandRecord) -> Statement {
    let params = params![
        session.as_str(),
        record.idempotency_key.as_str(),
        record.body_hash.as_str(),
        record.request_id.as_str(),
        record.turn_id.as_ref().map(TurnId::as_str),
        record.seq,
        record.at.0,
    ];
    Statement::any(INSERT, params)
}
