//! Settling uncertain effects on the wire (decisions, Settling).

use nylorun_domain::check::Problems;
use nylorun_domain::json::{Json, Value};
use nylorun_domain::turn::SettleOutcome;

use crate::body::{Body, missing, text_of};
use crate::raw;

/// `POST /v1/sessions/{id}/effects/{effectId}/settle`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settle {
    /// The caller's name for this request.
    pub request_id: String,
    /// Its key: one effect a key and session.
    pub idempotency_key: String,
    /// SHA-256 of the canonical body without `requestId`: a key used again must come with the same.
    pub body_hash: String,
    /// What the effect is taken to have given.
    pub outcome: SettleOutcome,
}

impl Settle {
    /// Reads a body that follows the route's schema.
    pub fn read(body: &Body) -> Result<Self, Problems> {
        Ok(Self {
            request_id: body.text("requestId")?,
            idempotency_key: body.text("idempotencyKey")?,
            body_hash: body.identity(&["requestId"]),
            outcome: read_outcome(&body.json("outcome").ok_or_else(|| missing("outcome"))?)?,
        })
    }
}

fn read_outcome(outcome: &Json) -> Result<SettleOutcome, Problems> {
    let members = outcome.value();
    if members.get("retry").and_then(Value::as_bool) == Some(true) {
        return Ok(SettleOutcome::Retry);
    }
    match raw::member(outcome, "value") {
        Some(value) => Ok(SettleOutcome::Value(value)),
        None => Ok(SettleOutcome::Error(text_of(&members, "error")?)),
    }
}
