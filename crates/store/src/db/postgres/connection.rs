//! One connection to PostgreSQL with its prepared statements.

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::execute;
use crate::db::error::DbError;
use crate::db::statement;
use crate::db::value::Val;

/// How long a connection may take to be made, and a caller may wait for one of a pool.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Distinct texts kept prepared; only multi-row inserts make new ones at run time, so this is rarely reached.
const STATEMENT_CACHE: usize = 512;
/// Settings of every session. A transaction of ours never waits for its client, so a long idle one is a lost one.
const SESSION: &str = "SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '60s'; \
                       SET default_transaction_isolation = 'read committed'";

/// A connection that statements can be sent on, several at once.
pub(super) struct Connection {
    client: Client,
    statements: HashMap<String, Statement>,
}

impl Connection {
    /// Connects and prepares the session.
    pub(super) async fn open(config: &Config) -> Result<Self, DbError> {
        let (client, driver) = connect(config).await?;
        // It ends with the client, or when the server closes: the next use of the client then fails.
        tokio::spawn(async move { drop(driver.await) });
        client.batch_execute(SESSION).await.map_err(|error| execute::failure(SESSION, &error))?;
        Ok(Self { client, statements: HashMap::new() })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// A prepared statement whose parameters have exactly the types of these values.
    ///
    /// Types are declared from the values, since the server's own guess differs at times (`$1 > 0` would make an int4).
    /// For NULL the server has to guess; a later value that does not fit the guess prepares the statement again.
    pub(super) async fn prepare(&mut self, sql: &str, params: &[Val]) -> Result<Statement, DbError> {
        if let Some(known) = self.statements.get(sql)
            && known.params().len() == params.len()
            && known.params().iter().zip(params).all(|(kind, value)| execute::fits(value, kind))
        {
            return Ok(known.clone());
        }
        let wanted = statement::placeholders(sql);
        if wanted != params.len() {
            return Err(DbError::Parameters { sql: sql.into(), wanted, given: params.len() });
        }
        let types: Vec<Type> = params.iter().map(execute::declared).collect();
        let prepared = self.client.prepare_typed(sql, &types).await.map_err(|error| execute::failure(sql, &error))?;
        if self.statements.len() >= STATEMENT_CACHE {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), prepared.clone());
        Ok(prepared)
    }
}

/// The driver's half of a connection.
pub(super) type Driver = tokio_postgres::Connection<tokio_postgres::Socket, tokio_postgres::tls::NoTlsStream>;

/// Connects within the time-out. The caller runs the driver.
pub(super) async fn connect(config: &Config) -> Result<(Client, Driver), DbError> {
    match tokio::time::timeout(CONNECT_TIMEOUT, config.connect(NoTls)).await {
        Ok(Ok(pair)) => Ok(pair),
        Ok(Err(error)) => Err(execute::connection_failure(&error)),
        Err(_) => Err(DbError::Connection("the server did not answer in time".into())),
    }
}

/// What the URL says, completed with this program's name and with finding out early that a server is gone.
pub(super) fn complete(config: &Config) -> Config {
    let mut config = config.clone();
    if config.get_application_name().is_none() {
        config.application_name("nylorun-runtime");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(30));
    }
    config
}
