//! Accepted writes of the tenant's settings by their idempotency key (api 1.9).

use nylorun_domain::change::TenantWrite;
use nylorun_domain::json::Json;
use nylorun_domain::time::Millis;

use crate::db::Statement;
use crate::{Store, StoreError, params};

const INSERT: &str = "INSERT INTO tenant_writes (operation, idempotency_key, body_hash, answer, created_at) \
     VALUES ($1, $2, $3, $4, $5)";
const GET: &str = "SELECT operation, idempotency_key, body_hash, answer, created_at FROM tenant_writes \
     WHERE operation = $1 AND idempotency_key = $2";

pub(crate) const SQL: &[&str] = &[INSERT, GET];

impl Store {
    /// The write that was accepted under this key, if any.
    pub async fn tenant_write_get(&self, operation: &str, key: &str) -> Result<Option<TenantWrite>, StoreError> {
        let rows = self.db.query(GET, params![operation, key]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(TenantWrite {
            operation: row.text(0)?.to_owned(),
            idempotency_key: row.text(1)?.to_owned(),
            body_hash: row.text(2)?.to_owned(),
            answer: Json::from_trusted(row.text_arc(3)?),
            at: Millis(row.int(4)?),
        }))
    }
}

/// Remembers a write in the transaction that carries it out.
pub(crate) fn insert(write: &TenantWrite) -> Statement {
    let params = params![
        write.operation.as_str(),
        write.idempotency_key.as_str(),
        write.body_hash.as_str(),
        write.answer.as_str(),
        write.at.0,
    ];
    Statement::any(INSERT, params)
}
