//! Messages that wait: for the running turn to end, or for its next step (`docs/decisions/0016-queue-and-steer.md`).

use crate::id::MessageId;
use crate::json::Json;
use crate::model::words;
use crate::time::Millis;
use crate::transcript::Input;

/// Most messages that may wait in one session.
pub const MAX_QUEUED: i64 = 100;

words! {
    /// For what a message waits.
    QueueMode {
        /// For the turn to end: then it begins the next one.
        Queue = "queue",
        /// For the running turn's next step, which reads it. Should the turn end before that, it begins the next one.
        Steer = "steer",
    }
}

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedMessage {
    /// Its id. A turn that it begins has the same.
    pub id: MessageId,
    /// For what it waits.
    pub mode: QueueMode,
    /// Where in the record it was accepted: messages are taken in this order.
    pub seq: i64,
    /// The caller's name for the request.
    pub request_id: String,
    /// The caller's key.
    pub idempotency_key: String,
    /// What it says.
    pub input: Input,
    /// The manifest of the turn that it begins, checked to be a variant of the session's, and its hash.
    pub variant: Option<(Json, String)>,
    /// When it was accepted.
    pub at: Millis,
}
