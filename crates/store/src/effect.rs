//! The journal (engine b.2).

use nylorun_domain::change::{EffectChange, EffectRow, EffectTool};
use nylorun_domain::effect::{EffectKind, EffectStatus, RunsAt};
use nylorun_domain::id::{CallId, EffectId, InvocationId, SessionId, TurnId};
use nylorun_domain::json::Document;
use nylorun_wire::outcome;

use crate::db::{Row, Statement, Val};
use crate::rows::{insert_rows, plain, values_sql};
use crate::session::unknown_word;
use crate::{Store, StoreError, crossing, params};

const INSERT: &str = "INSERT INTO effects (session_id, id, turn_id, segment, kind, invocation_id, call_id, tool_name, \
     capability_id, runs_at, subject, request_hash, status, outcome, error) VALUES";
const COLUMNS: usize = 15;
// What a call is about is only told while nobody knows what became of it; the record has it anyway.
const COMPLETE: &str = "UPDATE effects SET status = 'completed', outcome = $1, error = NULL, subject = NULL \
     WHERE session_id = $2 AND id = $3";
const UNCERTAIN: &str = "UPDATE effects SET status = 'uncertain', error = $1 WHERE session_id = $2 AND id = $3";
const CANCEL: &str = "UPDATE effects SET status = 'cancelled' WHERE session_id = $1 AND id = $2";
const SLIM: &str = "UPDATE effects SET outcome = NULL WHERE session_id = $1 AND turn_id = $2 AND outcome IS NOT NULL";
const FORGET: &str = "DELETE FROM effects WHERE session_id = $1 AND id = $2";
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT session_id, id, turn_id, segment, kind, invocation_id, call_id, tool_name, capability_id, \
             request_hash, status, outcome, error, subject, runs_at FROM effects WHERE ",
            $rest
        )
    };
}
const OF_TURN: &str = select!("session_id = $1 AND turn_id = $2 ORDER BY id");
const GET: &str = select!("session_id = $1 AND id = $2");
const UNCERTAIN_OF: &str = select!("session_id = $1 AND status = 'uncertain' ORDER BY id");
const COUNT_UNCERTAIN: &str = "SELECT count(*) FROM effects WHERE status = 'uncertain'";

pub(crate) const SQL: &[&str] =
    &[COMPLETE, UNCERTAIN, CANCEL, SLIM, FORGET, OF_TURN, GET, UNCERTAIN_OF, COUNT_UNCERTAIN];

/// Multi-row inserts are made at run time; the test prepares some of them.
pub(crate) fn insert_sql(rows: usize) -> String {
    values_sql(INSERT, COLUMNS, rows)
}

impl Store {
    /// The rows of one turn.
    pub async fn effect_list(&self, session: &SessionId, turn: &TurnId) -> Result<Vec<EffectRow>, StoreError> {
        let rows = self.db.query(OF_TURN, params![session.as_str(), turn.as_str()]).await?;
        rows.iter().map(read).collect()
    }

    /// The rows of one turn that can be read. Others are left out, with a line in the log.
    pub async fn effect_list_readable(&self, session: &SessionId, turn: &TurnId) -> Result<Vec<EffectRow>, StoreError> {
        let rows = self.db.query(OF_TURN, params![session.as_str(), turn.as_str()]).await?;
        let readable = rows.iter().filter_map(|row| match read(row) {
            Ok(effect) => Some(effect),
            Err(error) => {
                let effect = row.text(1).unwrap_or_default();
                tracing::error!(%session, effect, %error, "an effect cannot be read");
                None
            }
        });
        Ok(readable.collect())
    }

    /// One row.
    pub async fn effect_get(&self, session: &SessionId, id: &EffectId) -> Result<Option<EffectRow>, StoreError> {
        let rows = self.db.query(GET, params![session.as_str(), id.as_str()]).await?;
        rows.first().map(read).transpose()
    }

    /// The uncertain effects of a session, of all its turns.
    pub async fn effect_uncertain(&self, session: &SessionId) -> Result<Vec<EffectRow>, StoreError> {
        let rows = self.db.query(UNCERTAIN_OF, params![session.as_str()]).await?;
        rows.iter().map(read).collect()
    }

    /// How many effects of all sessions are uncertain.
    pub async fn effect_count_uncertain(&self) -> Result<i64, StoreError> {
        let rows = self.db.query(COUNT_UNCERTAIN, Vec::new()).await?;
        Ok(rows.first().map_or(Ok(0), |row| row.int(0))?)
    }
}

pub(crate) fn apply(session: &SessionId, changes: &[EffectChange]) -> Vec<Statement> {
    changes.iter().flat_map(|change| statements(session, change)).collect()
}

fn statements(session: &SessionId, change: &EffectChange) -> Vec<Statement> {
    match change {
        EffectChange::Insert(rows) => insert_rows(INSERT, COLUMNS, rows.iter().map(insert_params).collect()),
        EffectChange::Complete { id, outcome } => {
            let outcome = outcome.as_ref().map(|outcome| outcome::to_value(outcome).to_json().as_str().to_owned());
            vec![Statement::any(COMPLETE, params![outcome, session.as_str(), id.as_str()])]
        }
        EffectChange::Uncertain { id, error } => {
            vec![Statement::any(UNCERTAIN, params![plain(Some(error)), session.as_str(), id.as_str()])]
        }
        EffectChange::Cancel { id } => vec![Statement::any(CANCEL, params![session.as_str(), id.as_str()])],
        EffectChange::SlimTurn { turn_id } => {
            vec![Statement::any(SLIM, params![session.as_str(), turn_id.as_str()])]
        }
        EffectChange::Forget { id } => {
            vec![Statement::any(FORGET, params![session.as_str(), id.as_str()]), crossing::forget(id)]
        }
    }
}

fn insert_params(row: &EffectRow) -> Vec<Val> {
    let tool = row.tool.as_ref();
    params![
        row.session_id.as_str(),
        row.id.as_str(),
        row.turn_id.as_str(),
        row.segment,
        row.kind.as_str(),
        row.invocation_id.as_str(),
        tool.map(|tool| tool.call_id.as_str()),
        plain(tool.map(|tool| tool.name.as_str())),
        tool.map(|tool| tool.capability_id.as_str()),
        tool.map(|tool| tool.runs_at.as_str()),
        plain(tool.and_then(|tool| tool.subject.as_deref())),
        row.request_hash.as_str(),
        row.status.as_str(),
        row.outcome.as_ref().map(|outcome| outcome::to_value(outcome).to_json().as_str().to_owned()),
        plain(row.error.as_deref()),
    ]
}

fn read(row: &Row) -> Result<EffectRow, StoreError> {
    let tool = match (row.opt_text_arc(6)?, row.opt_text(7)?, row.opt_text(8)?) {
        (Some(call_id), Some(name), Some(capability_id)) => Some(EffectTool {
            call_id: CallId::from_trusted(call_id),
            name: name.to_owned(),
            capability_id: capability_id.to_owned(),
            runs_at: runs_at(row.opt_text(14)?)?,
            subject: row.opt_text(13)?.map(str::to_owned),
        }),
        _ => None,
    };
    let kind = EffectKind::from_wire(row.text(4)?).ok_or_else(|| unknown_word("kind"))?;
    let outcome = match row.opt_text(11)? {
        None => None,
        Some(text) => {
            let document = Document::parse(text).map_err(|_| unknown_word("outcome"))?;
            Some(outcome::from_node(kind, document.root()).map_err(|_| unknown_word("outcome"))?)
        }
    };
    Ok(EffectRow {
        session_id: SessionId::from_trusted(row.text_arc(0)?),
        id: EffectId::from_trusted(row.text_arc(1)?),
        turn_id: TurnId::from_trusted(row.text_arc(2)?),
        segment: u32::try_from(row.int(3)?).map_err(|_| unknown_word("segment"))?,
        kind,
        invocation_id: InvocationId::from_trusted(row.text_arc(5)?),
        tool,
        request_hash: row.text(9)?.to_owned(),
        status: EffectStatus::from_wire(row.text(10)?).ok_or_else(|| unknown_word("status"))?,
        outcome,
        error: row.opt_text(12)?.map(str::to_owned),
    })
}

/// Rows of builds before tool gates have no place: all tools ran in workspaces then.
fn runs_at(word: Option<&str>) -> Result<RunsAt, StoreError> {
    match word {
        None => Ok(RunsAt::Workspace),
        Some(word) => Ok(RunsAt::from_wire(word).ok_or_else(|| unknown_word("runs_at"))?),
    }
}
