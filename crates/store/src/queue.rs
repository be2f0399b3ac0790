//! Messages that wait in a session.

use nylorun_domain::change::QueueChange;
use nylorun_domain::id::{MessageId, SessionId};
use nylorun_domain::json::{Document, Json};
use nylorun_domain::queue::{QueueMode, QueuedMessage};
use nylorun_domain::time::Millis;
use nylorun_wire::transcript::{input_from_node, input_to_value};

use crate::db::{Row, Statement};
use crate::session::unknown_word;
use crate::{Store, StoreError, params};

const INSERT: &str = "INSERT INTO queued_messages (session_id, id, seq, mode, request_id, idempotency_key, input, \
     manifest, manifest_hash, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const REMOVE: &str = "DELETE FROM queued_messages WHERE session_id = $1 AND id = $2";
const CLEAR: &str = "DELETE FROM queued_messages WHERE session_id = $1";
const LIST: &str = "SELECT id, seq, mode, request_id, idempotency_key, input, manifest, manifest_hash, created_at \
     FROM queued_messages WHERE session_id = $1 ORDER BY seq";

pub(crate) const SQL: &[&str] = &[INSERT, REMOVE, CLEAR, LIST];

impl Store {
    /// The messages that wait in a session, in the order in which they are taken.
    pub async fn queue_list(&self, session: &SessionId) -> Result<Vec<QueuedMessage>, StoreError> {
        let rows = self.db.query(LIST, params![session.as_str()]).await?;
        rows.iter().map(read).collect()
    }
}

fn read(row: &Row) -> Result<QueuedMessage, StoreError> {
    let input = Document::parse(row.text(5)?).map_err(|_| unknown_word("input"))?;
    let variant = match (row.opt_text_arc(6)?, row.opt_text(7)?) {
        (Some(manifest), Some(hash)) => Some((Json::from_trusted(manifest), hash.to_owned())),
        (Some(_) | None, _) => None,
    };
    Ok(QueuedMessage {
        id: MessageId::from_trusted(row.text_arc(0)?),
        seq: row.int(1)?,
        mode: QueueMode::from_wire(row.text(2)?).ok_or_else(|| unknown_word("mode"))?,
        request_id: row.text(3)?.to_owned(),
        idempotency_key: row.text(4)?.to_owned(),
        input: input_from_node(input.root()).map_err(|_| unknown_word("input"))?,
        variant,
        at: Millis(row.int(8)?),
    })
}

pub(crate) fn apply(session: &SessionId, changes: &[QueueChange]) -> Vec<Statement> {
    changes.iter().map(|change| statement(session, change)).collect()
}

fn statement(session: &SessionId, change: &QueueChange) -> Statement {
    match change {
        QueueChange::Put(message) => {
            let (manifest, hash) =
                message.variant.as_ref().map(|(document, hash)| (document.as_str(), &**hash)).unzip();
            let input = input_to_value(&message.input).to_json();
            let params = params![
                session.as_str(),
                message.id.as_str(),
                message.seq,
                message.mode.as_str(),
                message.request_id.as_str(),
                message.idempotency_key.as_str(),
                input.as_str(),
                manifest,
                hash,
                message.at.0,
            ];
            Statement::any(INSERT, params)
        }
        QueueChange::Remove(id) => Statement::any(REMOVE, params![session.as_str(), id.as_str()]),
        QueueChange::Clear => Statement::any(CLEAR, params![session.as_str()]),
    }
}
