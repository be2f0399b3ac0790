//! The PostgreSQL engine: a pool for writes, a smaller one for reads. Connections are straight to the server: prepared
//! statements and advisory locks do not go through a pooler that shares sessions.

mod connection;
mod execute;
mod pool;
mod write;

use std::sync::Arc;

use tokio_postgres::Config;

use super::Prepared;
use super::counts::Counters;
use super::error::{DbError, OpenError, WriteError};
use super::statement::Statement;
use super::value::{Row, Val};
use crate::migrate;
use connection::Connection;
use pool::Pool;

/// Connections that write.
const WRITERS: u32 = 10;
/// Connections that read, apart so that neither kind waits behind the other.
const READERS: u32 = 4;

/// The two pools.
pub(super) struct Postgres {
    writers: Pool,
    readers: Pool,
    counters: Arc<Counters>,
}

impl Postgres {
    /// Migrates the database and makes the pools.
    pub(super) async fn open(config: &Config, target: String, counters: Arc<Counters>) -> Result<Self, OpenError> {
        let config = connection::complete(config);
        let first = Connection::open(&config).await.map_err(|source| OpenError::Open { target, source })?;
        migrate::postgres(first.client()).await?;
        Ok(Self { writers: Pool::new(config.clone(), WRITERS), readers: Pool::new(config, READERS), counters })
    }

    pub(super) async fn query(&self, sql: &'static str, params: Vec<Val>) -> Result<Vec<Row>, DbError> {
        match self.query_once(sql, &params).await {
            // An idle connection may have been closed by the server since it was used last; reading again is harmless.
            Err(DbError::Connection(_)) => self.query_once(sql, &params).await,
            answer => answer,
        }
    }

    async fn query_once(&self, sql: &str, params: &[Val]) -> Result<Vec<Row>, DbError> {
        let mut pooled = self.readers.get().await?;
        let statement = pooled.connection.prepare(sql, params).await?;
        let columns = execute::columns(&statement)?;
        let params = params.iter().map(|value| value as &(dyn tokio_postgres::types::ToSql + Sync));
        let params: Vec<_> = params.collect();
        let found = pooled.connection.client().query(&statement, &params).await;
        // Whatever failed, a new connection is the simplest way to be sure of its state.
        let found = found.map_err(|error| execute::failure(sql, &error))?;
        pooled.give_back();
        found.iter().map(|row| execute::row(&columns, row)).collect()
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
        if let Some(kind) = statement.params().iter().find(|kind| !<Val as tokio_postgres::types::ToSql>::accepts(kind))
        {
            return Err(DbError::Statement {
                sql: sql.into(),
                code: "parameter".into(),
                message: format!("a parameter is inferred as {kind}, which is not a plain type").into(),
            });
        }
        Ok(Prepared { params: statement.params().len() })
    }

    pub(super) async fn close(&self) {
        self.writers.close().await;
        self.readers.close().await;
    }
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Postgres")
    }
}
