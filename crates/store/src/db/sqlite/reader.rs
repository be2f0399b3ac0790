//! A reader's thread: takes one query after the other from the queue that all readers share.

use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::execute;
use crate::db::Prepared;
use crate::db::error::DbError;
use crate::db::value::{Row, Val};

/// What a reader is asked for.
pub(super) enum ReadJob {
    /// Run a SELECT.
    Query { sql: &'static str, params: Vec<Val>, reply: oneshot::Sender<Result<Vec<Row>, DbError>> },
    /// Prepare a statement of any kind, without running it.
    Prepare { sql: String, reply: oneshot::Sender<Result<Prepared, DbError>> },
    /// End; sent once for each reader.
    Close,
}

/// Serves until the queue is closed.
pub(super) fn run(connection: &Connection, jobs: &Mutex<Receiver<ReadJob>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        // A caller that has gone away no longer wants its answer.
        match job {
            Ok(ReadJob::Query { sql, params, reply }) => drop(reply.send(execute::query(connection, sql, &params))),
            Ok(ReadJob::Prepare { sql, reply }) => drop(reply.send(execute::prepare(connection, &sql))),
            Ok(ReadJob::Close) | Err(_) => return,
        }
    }
}
