//! A reader's thread: takes one query after the other from the queue that all readers share.

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::execute;
use super::queue::Queue;
use crate::db::Prepared;
use crate::db::error::DbError;
use crate::db::value::{Row, Val};

/// What a reader is asked for.
pub(super) enum ReadJob {
    /// Run a SELECT.
    Query { sql: &'static str, params: Vec<Val>, reply: oneshot::Sender<Result<Vec<Row>, DbError>> },
    /// Prepare a statement of any kind, without running it.
    Prepare { sql: String, reply: oneshot::Sender<Result<Prepared, DbError>> },
}

/// Serves until the queue is closed.
pub(super) fn run(connection: &Connection, jobs: &Queue<ReadJob>) {
    while let Some(job) = jobs.pop() {
        // A caller that has gone away no longer wants its answer.
        match job {
            ReadJob::Query { sql, params, reply } => drop(reply.send(execute::query(connection, sql, &params))),
            ReadJob::Prepare { sql, reply } => drop(reply.send(execute::prepare(connection, &sql))),
        }
    }
}
