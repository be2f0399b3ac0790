//! Sessions' rows (api 2.2).

use std::sync::Arc;

use nylorun_domain::change::SessionChange;
use nylorun_domain::id::{AgentId, SessionId, TurnId, UserId, WorkerId};
use nylorun_domain::json::{Json, Value};
use nylorun_domain::manifest::AgentManifest;
use nylorun_domain::session::{SandboxSource, Session, Status};
use nylorun_domain::time::Millis;
use nylorun_domain::workspace::WorkspaceSpec;

use crate::db::{DbError, Dialect, Guard, Row, Statement, Val};
use crate::rows::plain;
use crate::{
    Store, StoreError, StoredEvent, WriteError, agent, checkpoint, command, direct_call, effect, event, params, queue,
    sharing, usage, wake, workspace,
};

/// The session's row is not as it was when the change was decided: load it again and decide again.
pub const STALE_SESSION: Guard = Guard("session revision");

const INSERT: &str = "INSERT INTO sessions (id, agent_id, owner_user_id, definition_hash, manifest_hash, \
     implementation_version, identity_hash, info, vault_ids, credential_selections, workspace, sandbox_source, \
     created_at, status, active_turn_id, last_turn_id, segment, input_seq, turn_manifest_hash, history_from, \
     epoch, owner, head, rev, last_event_at, error, history_snapshot, queued, steers, sandbox_owner_id, sharers) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
     $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31)";
const UPDATE: &str = "UPDATE sessions SET status = $1, active_turn_id = $2, last_turn_id = $3, segment = $4, \
     input_seq = $5, turn_manifest_hash = $6, history_from = $7, epoch = $8, owner = $9, head = $10, rev = $11, \
     last_event_at = $12, error = $13, vault_ids = $14, credential_selections = $15, history_snapshot = $16, \
     queued = $17, steers = $18 WHERE id = $19 AND rev = $20 AND created_at = $21";
const GET: &str = "SELECT id, agent_id, owner_user_id, definition_hash, manifest_hash, implementation_version, \
     identity_hash, info, vault_ids, credential_selections, workspace, sandbox_source, created_at, status, \
     active_turn_id, last_turn_id, segment, input_seq, turn_manifest_hash, history_from, epoch, owner, head, \
     rev, last_event_at, error, history_snapshot, queued, steers, sandbox_owner_id, sharers FROM sessions \
     WHERE id = $1";
const IDS: &str = "SELECT id FROM sessions WHERE id > $1 ORDER BY id LIMIT $2";
const LIVE: &str = "SELECT id FROM sessions WHERE status IN ('runnable', 'running') AND id > $1 ORDER BY id LIMIT $2";
const COUNT: &str = "SELECT count(*) FROM sessions";
const COUNT_RUNNING: &str = "SELECT count(*) FROM sessions WHERE status IN ('runnable', 'running')";

/// Every statement of this file, for the test that prepares them.
pub(crate) const SQL: &[&str] = &[INSERT, UPDATE, GET, IDS, LIVE, COUNT, COUNT_RUNNING];

impl Store {
    /// Opens a session with its own copy of the manifest. `owner` is the session whose workspace it shares, as it was
    /// read. Fails as a duplicate when a session of this id exists, and with
    /// [`NO_WORKSPACE_OWNER`](crate::NO_WORKSPACE_OWNER) when the owner is gone.
    pub async fn session_insert(
        &self,
        session: &Session,
        pinned: &AgentManifest,
        owner: Option<&Session>,
    ) -> Result<(), WriteError> {
        let mut statements: Vec<_> = owner.map(sharing::join).into_iter().collect();
        statements.push(Statement::any(INSERT, insert_params(session)));
        statements.push(agent::put_manifest(&pinned.hash, &pinned.document));
        self.db.write(statements).await
    }

    /// The session of this id.
    pub async fn session_get(&self, id: &SessionId) -> Result<Option<Session>, StoreError> {
        let rows = self.db.query(GET, params![id.as_str()]).await?;
        Ok(rows.first().map(read).transpose()?)
    }

    /// Ids of sessions, in order, after `after`, at most `limit`.
    pub async fn session_ids(&self, after: &str, limit: i64) -> Result<Vec<SessionId>, StoreError> {
        let rows = self.db.query(IDS, params![after, limit]).await?;
        let ids = rows.iter().map(|row| row.text_arc(0).map(SessionId::from_trusted));
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// Ids of sessions that are to be advanced or are being advanced, in order, after `after`, at most `limit`.
    pub async fn session_live(&self, after: &str, limit: i64) -> Result<Vec<SessionId>, StoreError> {
        let rows = self.db.query(LIVE, params![after, limit]).await?;
        let ids = rows.iter().map(|row| row.text_arc(0).map(SessionId::from_trusted));
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// How many sessions there are, and how many of them have a turn to advance.
    pub async fn session_counts(&self) -> Result<(i64, i64), StoreError> {
        let all = self.db.query(COUNT, Vec::new()).await?;
        let running = self.db.query(COUNT_RUNNING, Vec::new()).await?;
        let count = |rows: &[Row]| rows.first().map_or(Ok(0), |row| row.int(0));
        Ok((count(&all)?, count(&running)?))
    }

    /// Commits one change of a session: row, events, journal, outbox and ledger together or not at all.
    ///
    /// [`WriteError::Guard`] with [`STALE_SESSION`]: the row changed meanwhile; with
    /// [`WORKSPACE_HELD`](crate::WORKSPACE_HELD): another session's turn has the shared workspace.
    /// [`WriteError::Duplicate`] in `commands`: the same idempotency key was accepted meanwhile. All: load again and
    /// decide again.
    ///
    /// Answers the events as they are stored: each is encoded once, and followers share it.
    pub async fn session_commit(&self, change: &SessionChange) -> Result<Vec<Arc<StoredEvent>>, WriteError> {
        let events: Vec<_> = change.events.iter().map(|event| Arc::new(StoredEvent::of(event, &self.tenant))).collect();
        self.db.write(statements(change, &events, self.db.dialect())).await?;
        Ok(events)
    }
}

/// The row first: on PostgreSQL its lock orders everything else that writes to the session.
fn statements(change: &SessionChange, events: &[Arc<StoredEvent>], dialect: Dialect) -> Vec<Statement> {
    let id = &change.session.id;
    let mut statements = vec![Statement::one(UPDATE, update_params(change), STALE_SESSION)];
    statements.extend(change.claims_workspace_of.iter().flat_map(|owner| sharing::claim(id, owner)));
    statements.extend(change.command.iter().map(|record| command::insert(id, record)));
    statements.extend(event::insert(id, events));
    statements.extend(effect::apply(id, &change.effects));
    statements.extend(checkpoint::apply(id, &change.checkpoint));
    statements.extend(queue::apply(id, &change.queue));
    statements.extend(wake::apply(id, &change.wake));
    statements.extend(usage::insert(&change.usage, dialect));
    statements.extend(change.workspaces.iter().map(workspace::upsert));
    statements.extend(change.direct_calls.iter().map(|call| direct_call::apply(id, call)));
    statements
}

fn insert_params(session: &Session) -> Vec<Val> {
    params![
        session.id.as_str(),
        session.agent_id.as_str(),
        session.owner_user_id.as_str(),
        session.definition_hash.as_str(),
        session.manifest_hash.as_str(),
        session.implementation_version.as_str(),
        session.identity_hash.as_str(),
        session.info.as_ref().map(Json::as_str),
        session.vault_ids.as_str(),
        session.credential_selections.as_str(),
        session.workspace.as_ref().map(write_spec),
        session.sandbox_source.map(SandboxSource::as_str),
        session.created_at.0,
        session.status.as_str(),
        session.active_turn_id.as_ref().map(TurnId::as_str),
        session.last_turn_id.as_ref().map(TurnId::as_str),
        session.segment,
        session.input_seq,
        session.turn_manifest_hash.as_deref(),
        session.history_from,
        session.epoch,
        session.owner.as_ref().map(WorkerId::as_str),
        session.head,
        session.rev,
        session.last_event_at.map(|at| at.0),
        plain(session.error.as_deref()),
        session.history_snapshot,
        session.queued,
        session.steers,
        session.sandbox_owner.as_ref().map(SessionId::as_str),
        session.sharers,
    ]
}

fn update_params(change: &SessionChange) -> Vec<Val> {
    let session = &change.session;
    params![
        session.status.as_str(),
        session.active_turn_id.as_ref().map(TurnId::as_str),
        session.last_turn_id.as_ref().map(TurnId::as_str),
        session.segment,
        session.input_seq,
        session.turn_manifest_hash.as_deref(),
        session.history_from,
        session.epoch,
        session.owner.as_ref().map(WorkerId::as_str),
        session.head,
        session.rev,
        session.last_event_at.map(|at| at.0),
        plain(session.error.as_deref()),
        session.vault_ids.as_str(),
        session.credential_selections.as_str(),
        session.history_snapshot,
        session.queued,
        session.steers,
        session.id.as_str(),
        change.before_rev,
        // Another session of this id, opened after a reset, may have come to the same revision.
        session.created_at.0,
    ]
}

fn read(row: &Row) -> Result<Session, DbError> {
    Ok(Session {
        id: SessionId::from_trusted(row.text_arc(0)?),
        agent_id: AgentId::from_trusted(row.text_arc(1)?),
        owner_user_id: UserId::from_trusted(row.text_arc(2)?),
        definition_hash: row.text(3)?.to_owned(),
        manifest_hash: row.text(4)?.to_owned(),
        implementation_version: row.text(5)?.to_owned(),
        identity_hash: row.text(6)?.to_owned(),
        info: row.opt_text_arc(7)?.map(Json::from_trusted),
        vault_ids: Json::from_trusted(row.text_arc(8)?),
        credential_selections: Json::from_trusted(row.text_arc(9)?),
        workspace: row.opt_text(10)?.and_then(read_spec),
        sandbox_source: row.opt_text(11)?.and_then(SandboxSource::from_wire),
        created_at: Millis(row.int(12)?),
        status: Status::from_wire(row.text(13)?).ok_or_else(|| unknown_word("status"))?,
        active_turn_id: row.opt_text_arc(14)?.map(TurnId::from_trusted),
        last_turn_id: row.opt_text_arc(15)?.map(TurnId::from_trusted),
        segment: u32::try_from(row.int(16)?).map_err(|_| unknown_word("segment"))?,
        input_seq: row.opt_int(17)?,
        turn_manifest_hash: row.opt_text(18)?.map(str::to_owned),
        history_from: row.int(19)?,
        epoch: row.int(20)?,
        owner: row.opt_text_arc(21)?.map(WorkerId::from_trusted),
        head: row.int(22)?,
        rev: row.int(23)?,
        last_event_at: row.opt_int(24)?.map(Millis),
        error: row.opt_text(25)?.map(str::to_owned),
        history_snapshot: row.opt_int(26)?,
        queued: row.int(27)?,
        steers: row.int(28)?,
        sandbox_owner: row.opt_text_arc(29)?.map(SessionId::from_trusted),
        sharers: row.int(30)?,
    })
}

/// A column holds a word that this build does not know.
pub(crate) fn unknown_word(column: &str) -> DbError {
    DbError::Column { column: column.to_owned(), wanted: "a word that this build knows", found: "another" }
}

fn write_spec(spec: &WorkspaceSpec) -> String {
    let mut members = vec![
        ("cpus", Value::from(i64::from(spec.cpus))),
        ("memoryMiB", Value::from(i64::from(spec.memory_mib))),
        ("networkAllow", Value::Array(spec.network_allow.iter().map(|host| Value::from(host.as_str())).collect())),
        ("idleMs", Value::from(spec.idle_ms)),
    ];
    if let Some(image) = &spec.image {
        members.push(("image", Value::from(image.as_str())));
    }
    Value::object(members).to_json().as_str().to_owned()
}

fn read_spec(text: &str) -> Option<WorkspaceSpec> {
    let value = Json::from_trusted(text).value();
    let number = |name: &str| value.get(name).and_then(Value::as_i64);
    let hosts = value.get("networkAllow").and_then(Value::as_array)?;
    Some(WorkspaceSpec {
        image: value.get("image").and_then(Value::as_str).map(str::to_owned),
        cpus: u32::try_from(number("cpus")?).ok()?,
        memory_mib: u32::try_from(number("memoryMiB")?).ok()?,
        network_allow: hosts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        idle_ms: number("idleMs")?,
    })
}
