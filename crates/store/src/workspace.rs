//! Records of workspaces (environments 3).

use nylorun_domain::id::SessionId;
use nylorun_domain::time::Millis;
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceRecord, WorkspaceState};

use crate::db::{DbError, Row, Statement};
use crate::session::unknown_word;
use crate::{Store, StoreError, WriteError, params};

const UPSERT: &str = "INSERT INTO workspaces (key, session_id, environment_id, backend, image, state, created_at, \
     updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (key) DO UPDATE SET backend = excluded.backend, \
     image = excluded.image, state = excluded.state, updated_at = excluded.updated_at";
const GET: &str = "SELECT key, session_id, environment_id, backend, image, state, created_at, updated_at FROM \
     workspaces WHERE key = $1";
const LIST: &str = "SELECT key, session_id, environment_id, backend, image, state, created_at, updated_at FROM \
     workspaces ORDER BY key";
const DELETE: &str = "DELETE FROM workspaces WHERE key = $1";
const COUNT: &str = "SELECT count(*) FROM workspaces";

pub(crate) const SQL: &[&str] = &[UPSERT, GET, LIST, DELETE, COUNT];

impl Store {
    /// The record of this key.
    pub async fn workspace_get(&self, key: &WorkspaceKey) -> Result<Option<WorkspaceRecord>, StoreError> {
        let rows = self.db.query(GET, params![key.as_str()]).await?;
        Ok(rows.first().map(read).transpose()?)
    }

    /// All records, by key.
    pub async fn workspace_list(&self) -> Result<Vec<WorkspaceRecord>, StoreError> {
        let rows = self.db.query(LIST, Vec::new()).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    /// Forgets a record.
    pub async fn workspace_delete(&self, key: &WorkspaceKey) -> Result<(), WriteError> {
        self.db.write(vec![Statement::any(DELETE, params![key.as_str()])]).await
    }

    /// How many records there are.
    pub async fn workspace_count(&self) -> Result<i64, StoreError> {
        let rows = self.db.query(COUNT, Vec::new()).await?;
        Ok(rows.first().map_or(Ok(0), |row| row.int(0))?)
    }
}

pub(crate) fn upsert(record: &WorkspaceRecord) -> Statement {
    let params = params![
        record.key.as_str(),
        record.session_id.as_str(),
        record.environment_id.as_deref(),
        record.backend.as_str(),
        record.image.as_str(),
        record.state.as_str(),
        record.created_at.0,
        record.updated_at.0,
    ];
    Statement::any(UPSERT, params)
}

fn read(row: &Row) -> Result<WorkspaceRecord, DbError> {
    Ok(WorkspaceRecord {
        key: WorkspaceKey::from_trusted(row.text(0)?),
        session_id: SessionId::from_trusted(row.text_arc(1)?),
        environment_id: row.opt_text(2)?.map(str::to_owned),
        backend: row.text(3)?.to_owned(),
        image: row.text(4)?.to_owned(),
        state: WorkspaceState::from_wire(row.text(5)?).ok_or_else(|| unknown_word("state"))?,
        created_at: Millis(row.int(6)?),
        updated_at: Millis(row.int(7)?),
    })
}
