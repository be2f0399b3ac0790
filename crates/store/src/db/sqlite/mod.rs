//! The SQLite engine: one thread writes and groups, a few read, all over one file in WAL mode.

mod execute;
mod queue;
mod reader;
mod writer;

use std::fmt;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

use super::counts::Counters;
use super::error::{DbError, OpenError, WriteError};
use super::statement::Statement;
use super::value::{Row, Val};
use super::{DbOptions, OlderSchema, Prepared};
use crate::migrate;
pub(crate) use execute::failure;
use queue::Queue;
use reader::ReadJob;
use writer::WriteJob;

/// Statements kept prepared on each connection; more distinct texts than this push out the oldest.
const STATEMENT_CACHE: usize = 512;

/// The connections' threads and the ways to them.
pub(super) struct Sqlite {
    writer: mpsc::Sender<WriteJob>,
    readers: Arc<Queue<ReadJob>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Sqlite {
    /// Opens or makes the file, migrates it and starts the threads.
    pub(super) async fn open(path: &Path, options: &DbOptions, counters: Arc<Counters>) -> Result<Self, OpenError> {
        let (path, options) = (path.to_owned(), options.clone());
        let opened = tokio::task::spawn_blocking(move || start(&path, &options, counters)).await;
        opened.unwrap_or_else(|_| Err(OpenError::Open { target: "sqlite".to_owned(), source: DbError::Closed }))
    }

    pub(super) async fn query(&self, sql: &'static str, params: Vec<Val>) -> Result<Vec<Row>, DbError> {
        let (reply, answer) = oneshot::channel();
        self.readers.push(ReadJob::Query { sql, params, reply }).map_err(|_| DbError::Closed)?;
        answer.await.unwrap_or(Err(DbError::Closed))
    }

    pub(super) async fn write(&self, statements: Vec<Statement>) -> Result<(), WriteError> {
        let (reply, answer) = oneshot::channel();
        self.writer.send(WriteJob::Write { statements, reply }).map_err(|_| DbError::Closed)?;
        answer.await.unwrap_or(Err(WriteError::Db(DbError::Closed)))
    }

    pub(super) async fn shrink(&self) -> Result<(), DbError> {
        let (reply, answer) = oneshot::channel();
        self.writer.send(WriteJob::Shrink { reply }).map_err(|_| DbError::Closed)?;
        answer.await.unwrap_or(Err(DbError::Closed))
    }

    pub(super) async fn prepare(&self, sql: &str) -> Result<Prepared, DbError> {
        let (reply, answer) = oneshot::channel();
        self.readers.push(ReadJob::Prepare { sql: sql.to_owned(), reply }).map_err(|_| DbError::Closed)?;
        answer.await.unwrap_or(Err(DbError::Closed))
    }

    /// Finishes what was asked before, folds the log into the file and ends the threads.
    pub(super) async fn close(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        self.readers.close();
        // An error says that the writer has ended already.
        let _ = self.writer.send(WriteJob::Close);
        // A thread that panicked has nothing left to finish.
        let _ = tokio::task::spawn_blocking(|| threads.into_iter().for_each(|thread| drop(thread.join()))).await;
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Sqlite")
    }
}

impl Drop for Sqlite {
    /// Lets the readers end when nobody has closed the database; the writer ends with its channel.
    fn drop(&mut self) {
        self.readers.close();
    }
}

fn start(path: &Path, options: &DbOptions, counters: Arc<Counters>) -> Result<Sqlite, OpenError> {
    let failed = |source| OpenError::Open { target: format!("sqlite:{}", path.display()), source };
    if options.older == OlderSchema::Refuse && !path.exists() {
        return Err(OpenError::SchemaOld { found: 0, wanted: migrate::schema_version() });
    }
    let mut connection = open_writer(path, options.busy_timeout).map_err(failed)?;
    migrate::sqlite(&mut connection, options.older)?;
    let readers = (0..options.readers.max(1)).map(|_| open_reader(path, options.busy_timeout));
    let readers = readers.collect::<Result<Vec<_>, _>>().map_err(failed)?;

    let (write_sender, write_jobs) = mpsc::channel();
    let read_jobs = Arc::new(Queue::new());
    let mut threads = Vec::new();
    // The writer ends last, so that its connection is the one that folds the log into the file.
    for reader in readers {
        let jobs = Arc::clone(&read_jobs);
        threads.push(spawn("sqlite-reader", move || reader::run(&reader, &jobs)).map_err(failed)?);
    }
    threads.push(spawn("sqlite-writer", move || writer::run(connection, &write_jobs, &counters)).map_err(failed)?);
    Ok(Sqlite { writer: write_sender, readers: read_jobs, threads: Mutex::new(threads) })
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, DbError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| DbError::Connection(error.to_string().into()))
}

fn open_writer(path: &Path, busy_timeout: Duration) -> Result<Connection, DbError> {
    create_private(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| execute::failure("open", &error))?;
    connection.busy_timeout(busy_timeout).map_err(|error| execute::failure("open", &error))?;
    use_wal(&connection, busy_timeout)?;
    let settings = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; \
                    PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 67108864;";
    connection.execute_batch(settings).map_err(|error| execute::failure(settings, &error))?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    Ok(connection)
}

/// Makes the file a WAL database that can give pages back. SQLite does not wait here for another process that does the
/// same at the same moment, so this does.
fn use_wal(connection: &Connection, busy_timeout: Duration) -> Result<(), DbError> {
    // The order matters: auto_vacuum can only be chosen before the file has its first page.
    let settings = "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;";
    let give_up = Instant::now() + busy_timeout;
    loop {
        match connection.execute_batch(settings).map_err(|error| execute::failure(settings, &error)) {
            Err(DbError::Busy) if Instant::now() < give_up => thread::sleep(Duration::from_millis(5)),
            ended => return ended,
        }
    }
}

fn open_reader(path: &Path, busy_timeout: Duration) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| execute::failure("open", &error))?;
    connection.busy_timeout(busy_timeout).map_err(|error| execute::failure("open", &error))?;
    // A small cache: a page that is not in it comes from the system's, which costs less than making room for it does
    // when a long record is read.
    let settings = "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -1024;";
    connection.execute_batch(settings).map_err(|error| execute::failure(settings, &error))?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    Ok(connection)
}

/// Makes a missing file readable by its owner only; SQLite gives the files beside it the same mode.
fn create_private(path: &Path) -> Result<(), DbError> {
    let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    made.map(drop).map_err(|error| {
        let path = PathBuf::from(path);
        DbError::Connection(format!("{}: {error}", path.display()).into())
    })
}
