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
/// What a connection is for. The server shows the name in `pg_stat_activity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Writes, and what has no role of its own.
    Runtime,
    /// Reads.
    Reads,
    /// Notifications.
    Control,
    /// The lock of a worker.
    Worker,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Runtime => "nylorun-runtime",
            Self::Reads => "nylorun-reads",
            Self::Control => "nylorun-control",
            Self::Worker => "nylorun-worker",
        }
    }

    /// A transaction of ours never waits for its client, so one that is idle for long is a lost one.
    fn session(self) -> &'static str {
        match self {
            Self::Runtime => {
                "SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '60s'; \
                 SET default_transaction_isolation = 'read committed'"
            }
            // A listener says nothing for as long as there is nothing to hear.
            Self::Control => "SET statement_timeout = '60s'; SET idle_session_timeout = 0",
            Self::Reads => {
                "SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '60s'; \
                 SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = on"
            }
            // The server must find out soon, too, that this process is gone.
            Self::Worker => {
                "SET lock_timeout = '5s'; SET idle_session_timeout = 0; SET tcp_keepalives_idle = 5; \
                 SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3"
            }
        }
    }
}

/// Where to connect and as what.
#[derive(Clone)]
pub(super) struct Target {
    config: Config,
    role: Role,
}

impl Target {
    /// What the URL says, completed with the role's name and with finding out early that a server is gone.
    pub(super) fn new(config: &Config, role: Role) -> Self {
        let mut config = config.clone();
        config.application_name(role.name());
        config.keepalives_idle(Duration::from_secs(5));
        config.keepalives_interval(Duration::from_secs(2));
        config.keepalives_retries(3);
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_secs(30));
        }
        Self { config, role }
    }

    /// Connects within the time-out. The caller runs the driver; the session has its settings once
    /// [`Target::begin_session`] has run on it.
    pub(super) async fn connect(&self) -> Result<(Client, Driver), DbError> {
        match tokio::time::timeout(CONNECT_TIMEOUT, self.config.connect(NoTls)).await {
            Ok(Ok(pair)) => Ok(pair),
            Ok(Err(error)) => Err(execute::connection_failure(&error)),
            Err(_) => Err(DbError::Connection("the server did not answer in time".into())),
        }
    }

    /// Gives the session the settings of its role.
    pub(super) async fn begin_session(&self, client: &Client) -> Result<(), DbError> {
        let settings = self.role.session();
        client.batch_execute(settings).await.map_err(|error| execute::failure(settings, &error))
    }
}

/// The driver's half of a connection.
pub(super) type Driver = tokio_postgres::Connection<tokio_postgres::Socket, tokio_postgres::tls::NoTlsStream>;

/// A connection that statements can be sent on, several at once.
pub(super) struct Connection {
    client: Client,
    statements: HashMap<String, Statement>,
}

impl Connection {
    /// Connects and prepares the session.
    pub(super) async fn open(target: &Target) -> Result<Self, DbError> {
        let (client, driver) = target.connect().await?;
        // It ends with the client, or when the server closes: the next use of the client then fails.
        tokio::spawn(async move { drop(driver.await) });
        target.begin_session(&client).await?;
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
