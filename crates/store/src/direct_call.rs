//! Calls of workspace tools by the application itself that have no end yet (api 2.5).

use nylorun_domain::direct_call::{DirectCall, DirectCallChange};
use nylorun_domain::id::{SessionId, WorkerId};
use nylorun_domain::time::Millis;
use nylorun_domain::tool::WorkspaceTool;

use crate::db::{DbError, Row, Statement};
use crate::rows::plain;
use crate::session::unknown_word;
use crate::{Store, StoreError, params};

const INSERT: &str = "INSERT INTO direct_calls (session_id, id, tool, subject, worker, began_at) \
     VALUES ($1, $2, $3, $4, $5, $6)";
const DELETE: &str = "DELETE FROM direct_calls WHERE session_id = $1 AND id = $2";
const GET: &str = "SELECT session_id, id, tool, subject, worker, began_at FROM direct_calls \
     WHERE session_id = $1 AND id = $2";
const LIST: &str = "SELECT session_id, id, tool, subject, worker, began_at FROM direct_calls \
     ORDER BY began_at, session_id, id";

pub(crate) const SQL: &[&str] = &[INSERT, DELETE, GET, LIST];

impl Store {
    /// The call of this id, while it has no end.
    pub async fn direct_call_get(&self, session: &SessionId, id: &str) -> Result<Option<DirectCall>, StoreError> {
        let rows = self.db.query(GET, params![session.as_str(), id]).await?;
        Ok(rows.first().map(read).transpose()?)
    }

    /// All calls that have no end, oldest first.
    pub async fn direct_call_list(&self) -> Result<Vec<DirectCall>, StoreError> {
        let rows = self.db.query(LIST, Vec::new()).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }
}

pub(crate) fn apply(session: &SessionId, change: &DirectCallChange) -> Statement {
    match change {
        DirectCallChange::Begin(call) => {
            let params = params![
                session.as_str(),
                call.id.as_str(),
                call.tool.as_str(),
                plain(call.subject.as_deref()),
                call.worker.as_str(),
                call.began_at.0,
            ];
            Statement::any(INSERT, params)
        }
        DirectCallChange::End { id } => Statement::any(DELETE, params![session.as_str(), id.as_str()]),
    }
}

fn read(row: &Row) -> Result<DirectCall, DbError> {
    Ok(DirectCall {
        session_id: SessionId::from_trusted(row.text_arc(0)?),
        id: row.text(1)?.to_owned(),
        tool: WorkspaceTool::from_wire(row.text(2)?).ok_or_else(|| unknown_word("tool"))?,
        subject: row.opt_text(3)?.map(str::to_owned),
        worker: WorkerId::from_trusted(row.text_arc(4)?),
        began_at: Millis(row.int(5)?),
    })
}
