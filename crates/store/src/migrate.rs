//! Migrations: SQL files inside the binary, one pair for each version, applied in order and each in its own
//! transaction, under a lock. Why not a library: `docs/decisions/0003-migrations.md`.
//!
//! The table `schema_migrations` records what was applied, with the SHA-256 of the text. A database that knows a newer
//! version, or an applied text that has changed since, is refused and left as it is.

use std::fmt::Write as _;

use rusqlite::Connection;
use sha2::{Digest, Sha256};

use crate::db::{DbError, OpenError};

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

const CREATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations \
                            (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)";
const SELECT_APPLIED: &str = "SELECT version, checksum FROM schema_migrations ORDER BY version";
const INSERT_APPLIED: &str = "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)";

/// A row of `schema_migrations`.
struct Applied {
    version: i64,
    checksum: String,
}

/// Brings a SQLite file to this build's schema. Each step takes the write lock first and looks again what is there, so
/// that two processes that begin at once apply each step once.
pub(crate) fn sqlite(connection: &mut Connection) -> Result<(), OpenError> {
    // Rebuilding a table that others refer to needs foreign keys off; they are checked before each commit instead.
    sqlite_batch(connection, "PRAGMA foreign_keys = OFF").map_err(opening)?;
    while sqlite_step(connection)? {}
    sqlite_batch(connection, "PRAGMA foreign_keys = ON").map_err(opening)
}

/// Applies the next migration; false when there is none.
fn sqlite_step(connection: &mut Connection) -> Result<bool, OpenError> {
    sqlite_batch(connection, "BEGIN IMMEDIATE").map_err(opening)?;
    let stepped = sqlite_step_locked(connection);
    let end = match stepped {
        Ok(_) => "COMMIT",
        Err(_) => "ROLLBACK",
    };
    sqlite_batch(connection, end).map_err(opening)?;
    stepped
}

fn sqlite_step_locked(connection: &Connection) -> Result<bool, OpenError> {
    sqlite_batch(connection, CREATE_TABLE).map_err(opening)?;
    let Some(next) = next(MIGRATIONS, &sqlite_applied(connection).map_err(opening)?, |step| step.sqlite)? else {
        return Ok(false);
    };
    let failed = |source| OpenError::Migration { version: next.version, name: next.name, source };
    sqlite_batch(connection, next.sqlite).map_err(failed)?;
    let violations = sqlite_violations(connection).map_err(failed)?;
    if violations > 0 {
        return Err(failed(failure("PRAGMA foreign_key_check", &format!("{violations} rows refer to nothing"))));
    }
    connection
        .execute(INSERT_APPLIED, (next.version, next.name, checksum(next.sqlite)))
        .map_err(|error| failed(failure(INSERT_APPLIED, &error)))?;
    Ok(true)
}

fn sqlite_applied(connection: &Connection) -> Result<Vec<Applied>, DbError> {
    let failed = |error: rusqlite::Error| failure(SELECT_APPLIED, &error);
    let mut statement = connection.prepare(SELECT_APPLIED).map_err(failed)?;
    let rows = statement.query_map([], |row| Ok(Applied { version: row.get(0)?, checksum: row.get(1)? }));
    rows.and_then(Iterator::collect).map_err(failed)
}

fn sqlite_violations(connection: &Connection) -> Result<i64, DbError> {
    let sql = "SELECT COUNT(*) FROM pragma_foreign_key_check";
    connection.query_row(sql, [], |row| row.get(0)).map_err(|error| failure(sql, &error))
}

fn sqlite_batch(connection: &Connection, sql: &str) -> Result<(), DbError> {
    connection.execute_batch(sql).map_err(|error| failure(sql, &error))
}

/// The first migration that is not applied yet, after checking those that are.
fn next<'a>(
    known: &'a [Migration],
    applied: &[Applied],
    text: fn(&Migration) -> &'static str,
) -> Result<Option<&'a Migration>, OpenError> {
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
    Ok(known.iter().find(|migration| migration.version > done))
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
    DbError::Statement { sql: sql.into(), code: "migration".into(), message: error.to_string().into() }
}
