//! How a segment of a turn ends (engine b.4).

use crate::json::Json;

/// With what a segment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The turn is done.
    Completed {
        /// Its output.
        output: Json,
    },
    /// The turn failed.
    Failed {
        /// A dotted word: `model.auth`.
        code: String,
        /// What happened.
        message: String,
    },
    /// An effect is uncertain: the turn waits for somebody to settle it.
    Uncertain,
}
