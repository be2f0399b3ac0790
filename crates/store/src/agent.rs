//! Agents and manifests. A manifest is stored once, by its hash.

use nylorun_domain::id::AgentId;
use nylorun_domain::json::Json;
use nylorun_domain::time::Millis;

use crate::db::{DbError, Row, Statement};
use crate::{Store, StoreError, WriteError, params};

const PUT: &str = "INSERT INTO agents (id, manifest_hash, implementation_version, updated_at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (id) DO UPDATE SET manifest_hash = excluded.manifest_hash, \
     implementation_version = excluded.implementation_version, updated_at = excluded.updated_at";
const PUT_MANIFEST: &str = "INSERT INTO manifests (hash, body) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING";
const GET: &str = "SELECT a.id, a.manifest_hash, a.implementation_version, m.body FROM agents a \
     JOIN manifests m ON m.hash = a.manifest_hash WHERE a.id = $1";
const LIST: &str = "SELECT a.id, a.manifest_hash, a.implementation_version, m.body FROM agents a \
     JOIN manifests m ON m.hash = a.manifest_hash ORDER BY a.id";
const GET_MANIFEST: &str = "SELECT body FROM manifests WHERE hash = $1";

pub(crate) const SQL: &[&str] = &[PUT, PUT_MANIFEST, GET, LIST, GET_MANIFEST];

/// A saved agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRow {
    /// Its id.
    pub id: AgentId,
    /// Its manifest's hash.
    pub manifest_hash: String,
    /// Its version, as its author named it.
    pub implementation_version: String,
    /// Its manifest.
    pub manifest: Json,
}

impl Store {
    /// Saves an agent: replaces its definition.
    pub async fn agent_put(&self, agent: &AgentRow, now: Millis) -> Result<(), WriteError> {
        let put =
            params![agent.id.as_str(), agent.manifest_hash.as_str(), agent.implementation_version.as_str(), now.0,];
        let manifest = put_manifest(&agent.manifest_hash, &agent.manifest);
        self.db.write(vec![manifest, Statement::any(PUT, put)]).await
    }

    /// Stores a manifest that is no agent's current one: a session's copy, a turn's variant.
    pub async fn manifest_put(&self, hash: &str, manifest: &Json) -> Result<(), WriteError> {
        self.db.write(vec![put_manifest(hash, manifest)]).await
    }

    /// The manifest of this hash.
    pub async fn manifest_get(&self, hash: &str) -> Result<Option<Json>, StoreError> {
        let rows = self.db.query(GET_MANIFEST, params![hash]).await?;
        Ok(rows.first().map(|row| row.text_arc(0)).transpose()?.map(Json::from_trusted))
    }

    /// The agent of this id.
    pub async fn agent_get(&self, id: &AgentId) -> Result<Option<AgentRow>, StoreError> {
        let rows = self.db.query(GET, params![id.as_str()]).await?;
        Ok(rows.first().map(read).transpose()?)
    }

    /// All agents, by id.
    pub async fn agent_list(&self) -> Result<Vec<AgentRow>, StoreError> {
        let rows = self.db.query(LIST, Vec::new()).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }
}

/// Stores a manifest unless it is stored.
pub(crate) fn put_manifest(hash: &str, manifest: &Json) -> Statement {
    Statement::any(PUT_MANIFEST, params![hash, manifest.as_str()])
}

fn read(row: &Row) -> Result<AgentRow, DbError> {
    Ok(AgentRow {
        id: AgentId::from_trusted(row.text_arc(0)?),
        manifest_hash: row.text(1)?.to_owned(),
        implementation_version: row.text(2)?.to_owned(),
        manifest: Json::from_trusted(row.text_arc(3)?),
    })
}
