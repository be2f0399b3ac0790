//! Migrations: SQL files inside the binary, one pair for each version. What is missing is applied in order, under a
//! lock and in one transaction. Why not a library: `docs/decisions/0003-migrations.md`.
//!
//! The table `schema_migrations` records what was applied, with the SHA-256 of the text. A database that knows a newer
//! version, or an applied text that has changed since, is refused and left as it is.

use std::fmt::Write as _;

use futures_util::future::join_all;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use tokio_postgres::Client;

use crate::db::{DbError, Fault, OlderSchema, OpenError, chain, sqlite_failure};

/// One step of the schema, in both dialects.
struct Migration {
    version: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

/// All versions in order, without gaps, from 1. A released one is never changed: write the next instead.
const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "foundation",
    sqlite: include_str!("../migrations/sqlite/0001_foundation.sql"),
    postgres: include_str!("../migrations/postgres/0001_foundation.sql"),
}];

/// The newest schema version that this build knows.
pub fn schema_version() -> i64 {
    MIGRATIONS.last().map_or(0, |newest| newest.version)
}

/// The lock that a process holds while it migrates a PostgreSQL database: "nylorun", by its bytes.
const ADVISORY_LOCK: i64 = 0x006e_796c_6f72_756e;

const CREATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations \
                            (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)";
const SELECT_APPLIED: &str = "SELECT version, checksum FROM schema_migrations ORDER BY version";
const INSERT_APPLIED: &str = "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)";

/// A row of `schema_migrations`.
struct Applied {
    version: i64,
    checksum: String,
}

/// Brings a SQLite file to this build's schema: all that is missing, or nothing of it. The write lock is taken before
/// looking what is there, so that two processes that begin at once apply each step once.
pub(crate) fn sqlite(connection: &mut Connection, older: OlderSchema) -> Result<(), OpenError> {
    match older {
        OlderSchema::Migrate => {}
        OlderSchema::Refuse => return refuse_older(&sqlite_known(connection).map_err(opening)?, |step| step.sqlite),
    }
    // Rebuilding a table that others refer to needs foreign keys off; they are checked before the commit instead.
    sqlite_batch(connection, "PRAGMA foreign_keys = OFF").map_err(opening)?;
    sqlite_batch(connection, "BEGIN IMMEDIATE").map_err(opening)?;
    // After an error the connection is closed, and that takes back what was done.
    sqlite_steps(connection)?;
    sqlite_batch(connection, "COMMIT").map_err(opening)?;
    sqlite_batch(connection, "PRAGMA foreign_keys = ON").map_err(opening)
}

fn sqlite_steps(connection: &Connection) -> Result<(), OpenError> {
    sqlite_batch(connection, CREATE_TABLE).map_err(opening)?;
    let applied = sqlite_applied(connection).map_err(opening)?;
    for step in missing(MIGRATIONS, &applied, |step| step.sqlite)? {
        let failed = |source| OpenError::Migration { version: step.version, name: step.name, source };
        sqlite_batch(connection, step.sqlite).map_err(failed)?;
        let violations = sqlite_violations(connection).map_err(failed)?;
        if violations > 0 {
            return Err(failed(failure("PRAGMA foreign_key_check", &format!("{violations} rows refer to nothing"))));
        }
        connection
            .execute(INSERT_APPLIED, (step.version, step.name, checksum(step.sqlite)))
            .map_err(|error| failed(sqlite_failure(INSERT_APPLIED, &error)))?;
    }
    Ok(())
}

fn sqlite_applied(connection: &Connection) -> Result<Vec<Applied>, DbError> {
    let failed = |error: rusqlite::Error| sqlite_failure(SELECT_APPLIED, &error);
    let mut statement = connection.prepare(SELECT_APPLIED).map_err(failed)?;
    let rows = statement.query_map([], |row| Ok(Applied { version: row.get(0)?, checksum: row.get(1)? }));
    rows.and_then(Iterator::collect).map_err(failed)
}

fn sqlite_known(connection: &Connection) -> Result<Vec<Applied>, DbError> {
    let sql = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'schema_migrations'";
    let tables: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(|error| sqlite_failure(sql, &error))?;
    if tables == 0 { Ok(Vec::new()) } else { sqlite_applied(connection) }
}

fn sqlite_violations(connection: &Connection) -> Result<i64, DbError> {
    let sql = "SELECT COUNT(*) FROM pragma_foreign_key_check";
    connection.query_row(sql, [], |row| row.get(0)).map_err(|error| sqlite_failure(sql, &error))
}

fn sqlite_batch(connection: &Connection, sql: &str) -> Result<(), DbError> {
    connection.execute_batch(sql).map_err(|error| sqlite_failure(sql, &error))
}

/// Brings a PostgreSQL database to this build's schema. One process at a time: the others wait for its lock, which the
/// server frees if it dies. The connection must not be used for anything else afterwards.
pub(crate) async fn postgres(client: &Client, older: OlderSchema) -> Result<(), OpenError> {
    match older {
        OlderSchema::Migrate => {}
        OlderSchema::Refuse => {
            return refuse_older(&postgres_known(client).await.map_err(opening)?, |step| step.postgres);
        }
    }
    postgres_batch(client, "SET statement_timeout = 0").await.map_err(opening)?;
    postgres_batch(client, &format!("SELECT pg_advisory_lock({ADVISORY_LOCK})")).await.map_err(opening)?;
    postgres_batch(client, "BEGIN").await.map_err(opening)?;
    // After an error the connection is closed, and that takes back what was done.
    postgres_steps(client).await?;
    postgres_batch(client, "COMMIT").await.map_err(opening)?;
    postgres_batch(client, &format!("SELECT pg_advisory_unlock({ADVISORY_LOCK})")).await.map_err(opening)
}

async fn postgres_steps(client: &Client) -> Result<(), OpenError> {
    if !postgres_has_table(client).await.map_err(opening)? {
        postgres_batch(client, CREATE_TABLE).await.map_err(opening)?;
    }
    let applied = postgres_applied(client).await.map_err(opening)?;
    // All are on their way at once: the server takes them in order, and what follows one that fails fails with it.
    let steps = missing(MIGRATIONS, &applied, |step| step.postgres)?.iter().map(|step| postgres_step(client, step));
    join_all(steps).await.into_iter().collect()
}

async fn postgres_step(client: &Client, step: &Migration) -> Result<(), OpenError> {
    let Migration { version, name, postgres, .. } = *step;
    let checksum = checksum(postgres);
    let sql = format!(
        "{postgres};
        INSERT INTO schema_migrations (version, name, checksum) VALUES ({version}, '{name}', '{checksum}')"
    );
    postgres_batch(client, &sql).await.map_err(|source| OpenError::Migration { version, name, source })
}

async fn postgres_has_table(client: &Client) -> Result<bool, DbError> {
    let sql = "SELECT to_regclass('schema_migrations') IS NOT NULL";
    let row = client.query_one(sql, &[]).await.map_err(|error| failure(sql, &chain(&error)))?;
    row.try_get(0).map_err(|error| failure(sql, &chain(&error)))
}

async fn postgres_known(client: &Client) -> Result<Vec<Applied>, DbError> {
    if postgres_has_table(client).await? { postgres_applied(client).await } else { Ok(Vec::new()) }
}

async fn postgres_applied(client: &Client) -> Result<Vec<Applied>, DbError> {
    let failed = |error: tokio_postgres::Error| failure(SELECT_APPLIED, &chain(&error));
    let rows = client.query(SELECT_APPLIED, &[]).await.map_err(failed)?;
    let applied = |row: &tokio_postgres::Row| Ok(Applied { version: row.try_get(0)?, checksum: row.try_get(1)? });
    rows.iter().map(applied).collect::<Result<_, _>>().map_err(failed)
}

async fn postgres_batch(client: &Client, sql: &str) -> Result<(), DbError> {
    client.batch_execute(sql).await.map_err(|error| failure(sql, &chain(&error)))
}

/// The migrations that are not applied yet, after checking those that are.
fn missing<'a>(
    known: &'a [Migration],
    applied: &[Applied],
    text: fn(&Migration) -> &'static str,
) -> Result<&'a [Migration], OpenError> {
    let newest = known.last().map_or(0, |migration| migration.version);
    for row in applied {
        let Some(migration) = known.iter().find(|migration| migration.version == row.version) else {
            return Err(OpenError::SchemaTooNew { found: row.version, known: newest });
        };
        if row.checksum != checksum(text(migration)) {
            return Err(OpenError::ChecksumChanged { version: migration.version, name: migration.name });
        }
    }
    let done = applied.last().map_or(0, |row| row.version);
    Ok(&known[known.partition_point(|migration| migration.version <= done)..])
}

/// Fails unless every migration was applied.
fn refuse_older(applied: &[Applied], text: fn(&Migration) -> &'static str) -> Result<(), OpenError> {
    if missing(MIGRATIONS, applied, text)?.is_empty() {
        return Ok(());
    }
    Err(OpenError::SchemaOld { found: applied.last().map_or(0, |row| row.version), wanted: schema_version() })
}

fn checksum(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        // Writing into a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn opening(source: DbError) -> OpenError {
    OpenError::Open { target: "the schema".to_owned(), source }
}

fn failure(sql: &str, error: &dyn std::fmt::Display) -> DbError {
    let (code, message) = ("migration".into(), error.to_string().into());
    DbError::Statement { sql: sql.into(), code, message, fault: Fault::ForGood }
}
