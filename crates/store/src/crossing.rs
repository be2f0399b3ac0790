//! Crossings: calls that a gate sends at most once (trust 5, engine e.2).

use nylorun_domain::id::{EffectId, SessionId, TurnId};
use nylorun_domain::json::Document;
use nylorun_domain::time::Millis;
use nylorun_domain::tool::ToolOutcome;
use nylorun_wire::outcome::{tool_from_node, tool_to_value};

use crate::db::{Guard, Statement};
use crate::session::unknown_word;
use crate::{Store, StoreError, WriteError, params};

/// Only who holds the session's active turn may begin a crossing, so the check and the row are one statement.
const BEGIN: &str = "INSERT INTO tool_crossings (key, session_id, turn_id, request_hash, started_at) \
     SELECT $1, id, active_turn_id, $2, CAST($3 AS BIGINT) FROM sessions \
     WHERE id = $4 AND active_turn_id = $5 AND epoch = $6";
const SETTLE: &str = "UPDATE tool_crossings SET settled_at = $1, answer = $2 WHERE key = $3 AND settled_at IS NULL";
const GET: &str = "SELECT request_hash, answer FROM tool_crossings WHERE key = $1";
const FORGET: &str = "DELETE FROM tool_crossings WHERE key = $1";
/// A crossing of an active turn is kept however old it is: its call may be asked for again.
const PRUNE: &str = "DELETE FROM tool_crossings WHERE started_at < $1 AND NOT EXISTS (SELECT 1 FROM sessions \
     WHERE sessions.id = tool_crossings.session_id AND sessions.active_turn_id = tool_crossings.turn_id)";

pub(crate) const SQL: &[&str] = &[BEGIN, SETTLE, GET, FORGET, PRUNE];

/// The caller's run does not hold the session's active turn any more.
pub const TURN_NOT_HELD: Guard = Guard("the run holds the active turn");

/// What is known of a crossing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossingRow {
    /// Hash of the request that it was begun for.
    pub request_hash: String,
    /// What came of it; `None` while nobody knows.
    pub answer: Option<ToolOutcome>,
}

impl Store {
    /// Begins a crossing: once this answers `Ok`, its call may be sent, once. Fails as a duplicate when there is one
    /// under this key, and with [`TURN_NOT_HELD`] when `epoch` and `turn` are not the session's.
    pub async fn crossing_begin(
        &self,
        key: &EffectId,
        request_hash: &str,
        (session, turn, epoch): (&SessionId, &TurnId, i64),
        now: Millis,
    ) -> Result<(), WriteError> {
        let params = params![key.as_str(), request_hash, now.0, session.as_str(), turn.as_str(), epoch];
        self.db.write(vec![Statement::one(BEGIN, params, TURN_NOT_HELD)]).await
    }

    /// Records what came of a crossing. The first answer stays.
    pub async fn crossing_settle(&self, key: &EffectId, answer: &ToolOutcome, now: Millis) -> Result<(), WriteError> {
        let answer = tool_to_value(answer).to_json();
        self.db.write(vec![Statement::any(SETTLE, params![now.0, answer.as_str(), key.as_str()])]).await
    }

    /// The crossing of this key.
    pub async fn crossing_get(&self, key: &EffectId) -> Result<Option<CrossingRow>, StoreError> {
        let rows = self.db.query(GET, params![key.as_str()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let answer = row.opt_text(1)?.map(|text| {
            let answer = Document::parse(text).map_err(|_| unknown_word("answer"))?;
            tool_from_node(answer.root()).map_err(|_| unknown_word("answer"))
        });
        Ok(Some(CrossingRow { request_hash: row.text(0)?.to_owned(), answer: answer.transpose()? }))
    }

    /// Drops crossings that began before `before` and whose turn is over.
    pub async fn crossing_prune(&self, before: Millis) -> Result<(), WriteError> {
        self.db.write(vec![Statement::any(PRUNE, params![before.0])]).await
    }
}

/// Forgets a crossing, so that its call may be sent again.
pub(crate) fn forget(key: &EffectId) -> Statement {
    Statement::any(FORGET, params![key.as_str()])
}
