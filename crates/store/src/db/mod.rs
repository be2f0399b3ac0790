//! The database layer: two engines that execute data, not closures. A write is a list of statements that becomes one
//! transaction with its preconditions inside; a read is one statement. What the statements say is above this layer.
//!
//! SQL is one text for both engines wherever they agree: `$n` placeholders, TEXT, BIGINT and BLOB (BYTEA) only.

mod counts;
mod crash;
mod error;
mod home_lock;
mod notice;
mod postgres;
mod sqlite;
mod statement;
mod url;
mod value;
mod worker_lock;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use counts::Counters;
use crash::CrashPoint;
use postgres::Postgres;
use sqlite::Sqlite;

pub use counts::Counts;
pub use error::{DbError, Fault, OpenError, WriteError};
pub use home_lock::{HomeLock, HomeLockError, LockHolder};
pub use notice::{Notice, Notices};
pub(crate) use sqlite::failure as sqlite_failure;
pub use statement::{Expect, Guard, Statement};
pub(crate) use url::chain;
pub use url::{DatabaseUrl, DatabaseUrlError};
pub use value::{Row, Val};
pub use worker_lock::{WorkerLock, WorkerLockError};

/// What an operator may tune; the defaults are the shipped values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbOptions {
    /// SQLite: threads that read, at least 1.
    pub readers: usize,
    /// SQLite: how long to wait for another process that holds the file.
    pub busy_timeout: Duration,
    /// PostgreSQL: connections that write at the same time, at most.
    pub postgres_writers: u32,
    /// PostgreSQL: connections that read at the same time, at most.
    pub postgres_readers: u32,
    /// What becomes of a database that an older build made.
    pub older: OlderSchema,
}

/// What opening does to a database that an older build made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OlderSchema {
    /// It is brought to this build's schema.
    Migrate,
    /// It is left as it is and not opened: for a look at what may be an older build's database still.
    Refuse,
}

impl Default for DbOptions {
    fn default() -> Self {
        Self {
            readers: 2,
            busy_timeout: Duration::from_secs(5),
            postgres_writers: 10,
            postgres_readers: 4,
            older: OlderSchema::Migrate,
        }
    }
}

/// Which SQL an engine speaks, for the few statements that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// What preparing a statement tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// How many parameters it takes.
    pub(crate) params: usize,
}

/// An open database.
#[derive(Debug)]
pub struct Db {
    engine: Engine,
    counters: Arc<Counters>,
    crash: CrashPoint,
    /// SQLite: the worker of this process, the only one that can be alive.
    own_worker: Mutex<Option<String>>,
    /// SQLite: the sending side of locks that are never lost.
    never_lost: watch::Sender<bool>,
    /// Whether the last write found that the database takes none.
    takes_no_writes: AtomicBool,
}

#[derive(Debug)]
enum Engine {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Db {
    /// Opens the database and, unless the options say otherwise, migrates it to this build's schema, under a lock that
    /// other processes respect.
    pub async fn open(target: &DatabaseUrl, options: &DbOptions) -> Result<Self, OpenError> {
        let counters = Arc::new(Counters::default());
        let crash = CrashPoint::from_env()?;
        let engine = match target {
            DatabaseUrl::Sqlite(path) => Engine::Sqlite(Sqlite::open(path, options, Arc::clone(&counters)).await?),
            DatabaseUrl::Postgres(config) => {
                Engine::Postgres(Box::new(Postgres::open(config, options, Arc::clone(&counters)).await?))
            }
        };
        Ok(Self {
            engine,
            counters,
            crash,
            own_worker: Mutex::default(),
            never_lost: watch::Sender::new(false),
            takes_no_writes: AtomicBool::new(false),
        })
    }

    /// Which SQL this database speaks.
    pub fn dialect(&self) -> Dialect {
        match self.engine {
            Engine::Sqlite(_) => Dialect::Sqlite,
            Engine::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Runs one SELECT. It sees every write that was answered before it was called. Not counted.
    pub async fn query(&self, sql: &'static str, params: Vec<Val>) -> Result<Vec<Row>, DbError> {
        statement::check_params(&params)?;
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.query(sql, params).await,
            Engine::Postgres(postgres) => postgres.query(sql, params).await,
        }
    }

    /// Applies the statements in their order as one transaction. An answer of `Ok` means that it is on disk.
    ///
    /// The first statement that fails decides the error. A write that was begun runs to its end even if the caller
    /// stops waiting for it. An empty list does nothing and is not counted.
    pub async fn write(&self, statements: Vec<Statement>) -> Result<(), WriteError> {
        if statements.is_empty() {
            return Ok(());
        }
        for statement in &statements {
            statement::check_params(&statement.params)?;
        }
        let number = self.counters.begin_write();
        self.crash.before(number);
        let result = match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.write(statements).await,
            Engine::Postgres(postgres) => postgres.write(statements).await,
        };
        match &result {
            Ok(()) => {
                self.takes_no_writes.store(false, Ordering::Relaxed);
                self.crash.after(number);
            }
            Err(error) if error.fault() == Some(Fault::NoWrites) => self.takes_no_writes.store(true, Ordering::Relaxed),
            Err(_) => {}
        }
        result
    }

    /// Whether the database took the last write, or failed to for another reason than that it takes none: that its disk
    /// is full, say.
    pub fn takes_writes(&self) -> bool {
        !self.takes_no_writes.load(Ordering::Relaxed)
    }

    /// Gives some of the space of what was removed back to the file system: 2,000 pages a call. PostgreSQL does so by
    /// itself (autovacuum).
    pub async fn shrink(&self) -> Result<(), DbError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.shrink().await,
            Engine::Postgres(_) => Ok(()),
        }
    }

    /// What was written since the database was opened.
    pub fn counts(&self) -> Counts {
        self.counters.snapshot()
    }

    /// Prepares each statement without running it and gives those that this engine refuses, with the reason.
    /// Parameters must have a type that the engine finds by itself, results must be of the plain types.
    pub async fn prepare_all<S: AsRef<str>>(&self, statements: &[S]) -> Vec<(String, DbError)> {
        let mut refused = Vec::new();
        for sql in statements.iter().map(AsRef::as_ref) {
            let prepared = match &self.engine {
                Engine::Sqlite(sqlite) => sqlite.prepare(sql).await,
                Engine::Postgres(postgres) => postgres.prepare(sql).await,
            };
            match prepared {
                Ok(Prepared { params }) if params == statement::placeholders(sql) => {}
                Ok(Prepared { params: given }) => {
                    let wanted = statement::placeholders(sql);
                    refused.push((sql.to_owned(), DbError::Parameters { sql: sql.into(), wanted, given }));
                }
                Err(error) => refused.push((sql.to_owned(), error)),
            }
        }
        refused
    }

    /// Marks this process as the living owner of `worker`, until the answer is dropped. Taken before the worker takes
    /// any session. On SQLite the process must hold the [`HomeLock`] of the database.
    pub async fn hold_worker_lock(&self, worker: &str) -> Result<WorkerLock, WorkerLockError> {
        match &self.engine {
            Engine::Sqlite(_) => {
                *self.own_worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker.to_owned());
                Ok(WorkerLock::new(self.never_lost.subscribe(), None))
            }
            Engine::Postgres(postgres) => postgres.hold_worker_lock(worker).await,
        }
    }

    /// Whether the worker is certainly gone. Not certain, and so `false`, while its connection has not been found lost.
    /// On SQLite every worker but this process's own is gone, since this process holds the home directory.
    pub async fn is_worker_gone(&self, worker: &str) -> Result<bool, DbError> {
        match &self.engine {
            Engine::Sqlite(_) => {
                let own = self.own_worker.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(own.as_deref() != Some(worker))
            }
            Engine::Postgres(postgres) => postgres.is_worker_gone(worker).await,
        }
    }

    /// Tells the listeners of all processes on this database about something that was committed. Does not wait;
    /// payloads of at most 7,999 bytes are sent soon, each text once a batch. A hint: it may be lost with a connection,
    /// and then listeners get [`Notice::Gap`]. On SQLite there are no other processes, and nothing is done.
    pub fn announce(&self, channel: &'static str, payload: &str) {
        match &self.engine {
            Engine::Sqlite(_) => {}
            Engine::Postgres(postgres) => postgres.announce(channel, payload),
        }
    }

    /// Listens to these channels from now on, across lost connections. On SQLite nothing is ever heard.
    pub async fn listen(&self, channels: &[&'static str]) -> Result<Notices, DbError> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(Notices::silent()),
            Engine::Postgres(postgres) => postgres.listen(channels).await,
        }
    }

    /// Finishes what was asked before and closes the database; whatever is asked after it fails with
    /// [`DbError::Closed`].
    pub async fn close(&self) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            Engine::Postgres(postgres) => postgres.close().await,
        }
    }
}
