//! The PostgreSQL engine: a pool for writes, a smaller one for reads. Connections are straight to the server: prepared
//! statements and advisory locks do not go through a pooler that shares sessions.

mod connection;
mod execute;
mod listener;
mod pool;
mod publisher;
mod worker_lock;
mod write;

use std::fmt;
use std::sync::Arc;

use tokio_postgres::Config;
use tokio_postgres::types::ToSql;

use super::counts::Counters;
use super::error::{DbError, Fault, OpenError, WriteError};
use super::statement::Statement;
use super::value::{Row, Val};
use super::{DbOptions, Notices, Prepared, WorkerLock, WorkerLockError};
use crate::migrate;
use connection::{Connection, Role, Target};
use pool::{Pool, Reading};
use publisher::Publisher;

/// The pools, and the way to the publisher.
pub(super) struct Postgres {
    config: Config,
    writers: Pool,
    /// Apart, so that neither kind waits behind the other.
    readers: Pool,
    publisher: Publisher,
    counters: Arc<Counters>,
}

impl Postgres {
    /// Migrates the database and makes the pools.
    pub(super) async fn open(config: &Config, options: &DbOptions, counters: Arc<Counters>) -> Result<Self, OpenError> {
        let target = |role| Target::new(config, role);
        let writers = Pool::new(target(Role::Runtime), options.postgres_writers.max(1));
        let readers = Pool::new(target(Role::Reads), options.postgres_readers.max(1));
        // Making a connection takes the server longer than most statements: what comes first waits for none.
        let ((), (), ()) = tokio::try_join!(bring_up(config, options), writers.warm(), readers.warm())?;
        Ok(Self {
            config: config.clone(),
            writers,
            readers,
            publisher: Publisher::start(Pool::new(target(Role::Control), 1)),
            counters,
        })
    }

    pub(super) async fn query(&self, sql: &'static str, params: Vec<Val>) -> Result<Vec<Row>, DbError> {
        match self.query_once(sql, &params).await {
            // An idle connection may have been closed by the server since it was used last; reading again is harmless.
            Err(DbError::Connection(_)) => self.query_once(sql, &params).await,
            answer => answer,
        }
    }

    async fn query_once(&self, sql: &str, params: &[Val]) -> Result<Vec<Row>, DbError> {
        let mut reading = Reading::new(self.readers.get().await?);
        let Some(connection) = reading.connection() else { return Err(DbError::Closed) };
        let answer = query_on(connection, sql, params).await;
        if answer.is_err() {
            reading.close();
        }
        answer
    }

    /// Runs to its end even if the caller stops waiting, as a write on SQLite does.
    pub(super) async fn write(&self, statements: Vec<Statement>) -> Result<(), WriteError> {
        let (pool, counters) = (self.writers.clone(), Arc::clone(&self.counters));
        let task = tokio::spawn(async move {
            let result = write::write(&pool, &statements).await;
            if result.is_ok() {
                counters.transaction();
                counters.committed(statements.len());
            }
            result
        });
        task.await.unwrap_or(Err(WriteError::Db(DbError::Closed)))
    }

    pub(super) async fn prepare(&self, sql: &str) -> Result<Prepared, DbError> {
        let pooled = self.readers.get().await?;
        let prepared = pooled.connection.client().prepare(sql).await;
        let statement = prepared.map_err(|error| execute::failure(sql, &error))?;
        pooled.give_back();
        execute::columns(&statement)?;
        if let Some(kind) = statement.params().iter().find(|kind| !execute::is_plain(kind)) {
            return Err(DbError::Statement {
                sql: sql.into(),
                code: "parameter".into(),
                message: format!("a parameter is inferred as {kind}, which is not a plain type").into(),
                fault: Fault::ForGood,
            });
        }
        Ok(Prepared { params: statement.params().len() })
    }

    /// Takes the worker's lock on a connection of its own.
    pub(super) async fn hold_worker_lock(&self, worker: &str) -> Result<WorkerLock, WorkerLockError> {
        worker_lock::hold(&Target::new(&self.config, Role::Worker), worker).await
    }

    /// Whether nobody holds the worker's lock.
    pub(super) async fn is_worker_gone(&self, worker: &str) -> Result<bool, DbError> {
        let rows = self.query(worker_lock::IS_FREE, vec![Val::Int(worker_lock::key(worker))]).await?;
        Ok(rows.first().map(|row| row.int(0)).transpose()? == Some(1))
    }

    pub(super) fn announce(&self, channel: &'static str, payload: &str) {
        self.publisher.announce(channel, payload);
    }

    pub(super) async fn listen(&self, channels: &[&'static str]) -> Result<Notices, DbError> {
        listener::listen(Target::new(&self.config, Role::Control), channels).await
    }

    pub(super) async fn close(&self) {
        self.publisher.flush().await;
        self.writers.close().await;
        self.readers.close().await;
    }
}

/// Brings the schema up, on a connection that is closed afterwards.
async fn bring_up(config: &Config, options: &DbOptions) -> Result<(), OpenError> {
    let shown = || super::DatabaseUrl::Postgres(Box::new(config.clone())).to_string();
    let connection = Connection::open(&Target::new(config, Role::Runtime)).await;
    let connection = connection.map_err(|source| OpenError::Open { target: shown(), source })?;
    migrate::postgres(connection.client(), options.older).await
}

async fn query_on(connection: &mut Connection, sql: &str, params: &[Val]) -> Result<Vec<Row>, DbError> {
    let statement = connection.prepare(sql, params).await?;
    let columns = execute::columns(&statement)?;
    let params: Vec<_> = params.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
    let found = connection.client().query(&statement, &params).await;
    let found = found.map_err(|error| execute::failure(sql, &error))?;
    found.iter().map(|row| execute::row(&columns, row)).collect()
}

impl fmt::Debug for Postgres {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Postgres")
    }
}
