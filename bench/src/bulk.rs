//! Rows in bulk: copies of what the API made, so that they are as it makes them.

use std::path::Path;

use serde_json::Value;

use crate::server::Server;
use crate::turns::users;
use crate::{Database, Failure};

/// The session that is copied.
pub(crate) const ORIGINAL: &str = "many-0";

macro_rules! for_each_number {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            ", (WITH RECURSIVE c(value) AS (SELECT $1 UNION ALL SELECT value + 1 FROM c WHERE value < $2) \
             SELECT value FROM c) n WHERE ",
            $after
        )
    };
}

const COPY_SESSION: &str = for_each_number!(
    "INSERT INTO sessions SELECT 'idle-' || n.value, agent_id, owner_user_id, definition_hash, manifest_hash, \
     implementation_version, identity_hash, info, vault_ids, credential_selections, workspace, sandbox_source, \
     created_at + n.value, status, active_turn_id, last_turn_id, segment, input_seq, turn_manifest_hash, history_from, \
     epoch, owner, head, rev, last_event_at, error, history_snapshot, queued, steers, \
     retained_from, sandbox_owner_id, sharers FROM sessions",
    "id = 'many-0'"
);
const COPY_EVENTS: &str = for_each_number!(
    "INSERT INTO events SELECT 'idle-' || n.value, seq, type, visibility, body, committed_at FROM events",
    "session_id = 'many-0'"
);
/// One more turn like the session's first, whose edit of the transcript goes on where the one before ended: `$3` is how
/// many entries a turn has.
const ADD_TURN: &str = for_each_number!(
    "INSERT INTO events SELECT session_id, seq + n.value * (SELECT head FROM sessions WHERE id = 'many-0'), type, \
     visibility, CASE type WHEN 'transcript.updated' THEN replace(replace(body, '\"keep\":0,', '\"keep\":' || \
     (n.value * $3) || ','), '\"length\":' || $3, '\"length\":' || ((n.value + 1) * $3)) ELSE body END, committed_at \
     FROM events",
    "session_id = 'many-0'"
);
const COUNT_TURNS: &str = "UPDATE sessions SET head = head * ($1 + 1) WHERE id = 'many-0'";
const EDIT: &str = "SELECT body FROM events WHERE session_id = 'many-0' AND type = 'transcript.updated'";

/// A database between two runs of a server.
pub(crate) enum Rows {
    /// The file.
    Sqlite(rusqlite::Connection),
    /// A connection.
    Postgres(tokio_postgres::Client),
}

impl Rows {
    /// Opens it beside a server that was stopped.
    pub(crate) async fn open(home: &Path, database: &Database) -> Result<Self, Failure> {
        match database {
            Database::Sqlite => Ok(Self::Sqlite(rusqlite::Connection::open(home.join("tenant/nylorun.db"))?)),
            Database::Postgres(url) => {
                let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
                tokio::spawn(connection);
                Ok(Self::Postgres(client))
            }
        }
    }

    async fn execute(&self, sql: &str, numbers: &[i64]) -> Result<(), Failure> {
        match self {
            Self::Sqlite(connection) => {
                // `$2` would be a name there, numbered by where it first stands.
                connection.execute(&sql.replace('$', "?"), rusqlite::params_from_iter(numbers))?;
            }
            Self::Postgres(client) => {
                let params: Vec<_> = numbers
                    .iter()
                    .map(|number| {
                        let number: &(dyn tokio_postgres::types::ToSql + Sync) = number;
                        (number, tokio_postgres::types::Type::INT8)
                    })
                    .collect();
                client.execute_typed(sql, &params).await?;
            }
        }
        Ok(())
    }

    async fn text(&self, sql: &str) -> Result<String, Failure> {
        Ok(match self {
            Self::Sqlite(connection) => connection.query_row(sql, (), |row| row.get(0))?,
            Self::Postgres(client) => client.query_one(sql, &[]).await?.try_get(0)?,
        })
    }

    /// Copies of the session under the numbers from `first` to `last`, without their events.
    pub(crate) async fn copy_session(&self, first: i64, last: i64) -> Result<(), Failure> {
        self.execute(COPY_SESSION, &[first, last]).await
    }

    /// And their events.
    pub(crate) async fn copy_events(&self, first: i64, last: i64) -> Result<(), Failure> {
        self.execute(COPY_EVENTS, &[first, last]).await
    }

    /// Adds turns like its only one to the session.
    pub(crate) async fn add_turns(&self, turns: i64) -> Result<(), Failure> {
        let edit: Value = serde_json::from_str(&self.text(EDIT).await?)?;
        let entries = edit["payload"]["length"].as_i64().ok_or("the edit names no length")?;
        self.execute(ADD_TURN, &[1, turns, entries]).await?;
        self.execute(COUNT_TURNS, &[turns]).await
    }

    /// Whether there is a snapshot of the session's transcript.
    pub(crate) async fn has_snapshot(&self) -> Result<bool, Failure> {
        let sql = "SELECT CAST(COUNT(*) AS TEXT) FROM transcript_snapshots WHERE session_id = 'many-0'";
        Ok(self.text(sql).await? != "0")
    }

    /// Lets the database take stock, as it does by itself after a while.
    pub(crate) async fn analyze(&self) -> Result<(), Failure> {
        match self {
            // What was written must be in the file whose size is taken.
            Self::Sqlite(connection) => {
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?;
            }
            Self::Postgres(client) => client.batch_execute("VACUUM ANALYZE").await?,
        }
        Ok(())
    }

    /// Bytes that the events take, with their indexes: the whole file of SQLite.
    pub(crate) async fn bytes(&self) -> Result<f64, Failure> {
        self.analyze().await?;
        let sql = match self {
            Self::Sqlite(_) => "SELECT CAST(page_count * page_size AS TEXT) FROM pragma_page_count, pragma_page_size",
            Self::Postgres(_) => "SELECT CAST(pg_total_relation_size('events') AS TEXT)",
        };
        Ok(self.text(sql).await?.parse()?)
    }

    /// How much of that are indexes, where the database tells it.
    pub(crate) async fn index_bytes(&self) -> Result<Option<f64>, Failure> {
        match self {
            Self::Sqlite(_) => Ok(None),
            Self::Postgres(_) => Ok(Some(self.text("SELECT CAST(pg_indexes_size('events') AS TEXT)").await?.parse()?)),
        }
    }
}

/// A home whose database has the one session, of so many turns.
pub(crate) async fn one_session(home: &Path, database: &Database, turns: usize) -> Result<(), Failure> {
    let server = Server::start(home, database)?;
    server.prepare().await?;
    // It begins with one turn.
    let mut users = users(&server, 1).await?;
    for _ in 1..turns {
        users[0].turn("hi").await?;
    }
    Ok(())
}

/// Puts idle sessions with a turn each into an empty database.
pub(crate) async fn idle_sessions(home: &Path, database: &Database, count: i64) -> Result<(), Failure> {
    one_session(home, database, 1).await?;
    let rows = Rows::open(home, database).await?;
    rows.copy_session(1, count).await?;
    rows.copy_events(1, count).await
}
