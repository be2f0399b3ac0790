//! Writes of the tenant's settings that carry an idempotency key (api 1.9).

use nylorun_domain::change::TenantWrite;
use nylorun_domain::json::Json;
use nylorun_turns::now;

use crate::{App, Error};

/// A write that asks to be carried out.
pub(crate) struct AskedWrite {
    /// The name of its route.
    pub(crate) operation: &'static str,
    /// The caller's key.
    pub(crate) idempotency_key: String,
    /// SHA-256 of the body without `requestId`, canonical.
    pub(crate) body_hash: String,
}

impl AskedWrite {
    /// The same, accepted with this answer.
    pub(crate) fn accepted(&self, answer: Json) -> TenantWrite {
        TenantWrite {
            operation: self.operation.to_owned(),
            idempotency_key: self.idempotency_key.clone(),
            body_hash: self.body_hash.clone(),
            answer,
            at: now(),
        }
    }
}

impl App {
    /// The answer that this write got before; a refusal when the key came with another body.
    pub(crate) async fn answered_before(&self, asked: &AskedWrite) -> Result<Option<Json>, Error> {
        let Some(write) = self.store().tenant_write_get(asked.operation, &asked.idempotency_key).await? else {
            return Ok(None);
        };
        if write.body_hash == asked.body_hash {
            return Ok(Some(write.answer));
        }
        Err(Error::conflict(format!(
            "Idempotency key {:?} was used for another request; use a new key for a new request",
            asked.idempotency_key
        )))
    }
}
