//! The writer's thread. Writes that wait are applied one after the other as savepoints of one transaction and share
//! one commit, which is one sync to disk; each caller hears of its own write only after that sync.

use std::sync::mpsc::Receiver;

use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use super::execute;
use crate::db::counts::Counters;
use crate::db::error::{DbError, WriteError};
use crate::db::statement::Statement;

/// Writes in one group at most: enough to spread a sync thin, few enough that nobody waits long for the others.
const GROUP_LIMIT: usize = 256;

/// What the writer is asked for.
pub(super) enum WriteJob {
    /// Apply these statements as one.
    Write { statements: Vec<Statement>, reply: Reply },
    /// Give free pages back to the file system.
    Shrink { reply: oneshot::Sender<Result<(), DbError>> },
    /// Finish and end.
    Close,
}

type Reply = oneshot::Sender<Result<(), WriteError>>;

/// A write of the group that is being made.
struct Member {
    statements: Vec<Statement>,
    reply: Reply,
}

/// Serves until it is closed or nobody can ask any more, then folds the log into the file.
pub(super) fn run(connection: Connection, jobs: &Receiver<WriteJob>, counters: &Counters) {
    loop {
        let Some((group, then)) = next_group(jobs) else { break };
        if !group.is_empty() {
            let results = apply_group(&connection, &group, counters);
            for (member, result) in group.into_iter().zip(results) {
                // The write stands whether or not its caller still listens.
                let _ = member.reply.send(result);
            }
        }
        match then {
            Then::GoOn => {}
            Then::Shrink(reply) => {
                let _ = reply.send(shrink(&connection));
            }
            Then::End => break,
        }
    }
    // If another process is reading, the log stays and is folded in later: nothing is lost.
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

/// What the writer does after a group.
enum Then {
    GoOn,
    Shrink(oneshot::Sender<Result<(), DbError>>),
    End,
}

/// Most free pages that are given back at once: some milliseconds of work, so that no write waits for long.
const SHRINK_PAGES: u32 = 2_000;

/// Cuts free pages off the file, and the file itself once the log is folded into it.
fn shrink(connection: &Connection) -> Result<(), DbError> {
    let sql = format!("PRAGMA incremental_vacuum({SHRINK_PAGES})");
    let failed = |error: rusqlite::Error| execute::failure(&sql, &error);
    // The pragma frees one page a step.
    let mut statement = connection.prepare(&sql).map_err(failed)?;
    let mut rows = statement.raw_query();
    while rows.next().map_err(failed)?.is_some() {}
    let passive = "PRAGMA wal_checkpoint(PASSIVE)";
    connection.query_row(passive, [], |_| Ok(())).map_err(|error| execute::failure(passive, &error))
}

/// Waits for one job and takes the writes that are there with it.
fn next_group(jobs: &Receiver<WriteJob>) -> Option<(Vec<Member>, Then)> {
    let mut group = Vec::new();
    let mut job = jobs.recv().ok();
    while let Some(next) = job {
        match next {
            WriteJob::Write { statements, reply } => group.push(Member { statements, reply }),
            WriteJob::Shrink { reply } => return Some((group, Then::Shrink(reply))),
            WriteJob::Close => return Some((group, Then::End)),
        }
        job = if group.len() < GROUP_LIMIT { jobs.try_recv().ok() } else { None };
    }
    (!group.is_empty()).then_some((group, Then::GoOn))
}

/// Applies the group in one transaction and gives each member its result.
fn apply_group(connection: &Connection, group: &[Member], counters: &Counters) -> Vec<Result<(), WriteError>> {
    let all = |error: &WriteError| group.iter().map(|_| Err(error.clone())).collect();
    if let Err(error) = control(connection, "BEGIN IMMEDIATE") {
        return all(&WriteError::Db(error));
    }
    let mut results = Vec::with_capacity(group.len());
    for member in group {
        let result = match group.len() {
            1 => apply(connection, &member.statements),
            _ => apply_in_savepoint(connection, &member.statements),
        };
        results.push(result);
        // Some failures (a full disk, a failed read) end the whole transaction: then nothing of the group stands.
        if connection.is_autocommit() {
            let reason = results.pop().and_then(Result::err).unwrap_or(WriteError::Db(DbError::Closed));
            return all(&reason);
        }
    }
    finish(connection, group, &mut results, counters);
    results
}

fn finish(connection: &Connection, group: &[Member], results: &mut [Result<(), WriteError>], counters: &Counters) {
    if results.iter().all(Result::is_err) {
        roll_back(connection);
        return;
    }
    match commit(connection) {
        Ok(()) => {
            counters.transaction();
            let applied = group.iter().zip(results).filter(|(_, result)| result.is_ok());
            applied.for_each(|(member, _)| counters.committed(member.statements.len()));
        }
        Err(error) => {
            roll_back(connection);
            results.iter_mut().filter(|result| result.is_ok()).for_each(|result| *result = Err(error.clone()));
        }
    }
}

/// Applies one member so that its failure leaves the others alone.
fn apply_in_savepoint(connection: &Connection, statements: &[Statement]) -> Result<(), WriteError> {
    control(connection, "SAVEPOINT one")?;
    let result = apply(connection, statements);
    if connection.is_autocommit() {
        return result;
    }
    if result.is_err() {
        control(connection, "ROLLBACK TO one")?;
    }
    control(connection, "RELEASE one")?;
    result
}

fn apply(connection: &Connection, statements: &[Statement]) -> Result<(), WriteError> {
    for statement in statements {
        let changed = execute::change(connection, statement)?;
        statement.expect.check(changed).map_err(WriteError::Guard)?;
    }
    Ok(())
}

fn commit(connection: &Connection) -> Result<(), WriteError> {
    let ran = connection.prepare_cached("COMMIT").and_then(|mut statement| statement.raw_execute());
    ran.map(|_| ()).map_err(|error| {
        let failure = execute::control_failure("COMMIT", &error);
        match error.sqlite_error_code() {
            // The log may hold the commit although its sync failed, and a restart would then find it.
            Some(ErrorCode::SystemIoFailure) => WriteError::Unknown(failure),
            _ => WriteError::Db(failure),
        }
    })
}

fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        // If this fails too, the next BEGIN fails and says so to its callers.
        let _ = control(connection, "ROLLBACK");
    }
}

fn control(connection: &Connection, sql: &str) -> Result<(), DbError> {
    let ran = connection.prepare_cached(sql).and_then(|mut statement| statement.raw_execute());
    ran.map(|_| ()).map_err(|error| execute::control_failure(sql, &error))
}
