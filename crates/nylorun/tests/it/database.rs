//! The databases that a test runs on: SQLite always, PostgreSQL where one is given.

use crate::server::Setup;

/// One of the two.
#[derive(Clone, Debug)]
pub(crate) enum Database {
    /// The file in the home directory.
    Sqlite,
    /// A database of its own on the server that the tests were given.
    Postgres(String),
}

impl Database {
    pub(crate) fn setup(&self, setup: Setup) -> Setup {
        match self {
            Self::Sqlite => setup,
            Self::Postgres(url) => setup.with("NYLORUN_DATABASE_URL", url),
        }
    }
}

/// Both, as far as they are given.
pub(crate) async fn each(name: &str) -> Vec<Database> {
    let mut databases = vec![Database::Sqlite];
    databases.extend(postgres(name).await);
    databases
}

/// A fresh database on PostgreSQL, or `None` where no server is given.
pub(crate) async fn postgres(name: &str) -> Option<Database> {
    let Some(url) = std::env::var("NYLORUN_TEST_POSTGRES_URL").ok().filter(|url| !url.is_empty()) else {
        eprintln!("skipped on PostgreSQL: NYLORUN_TEST_POSTGRES_URL is not set (scripts/postgres starts a server)");
        return None;
    };
    let (client, connection) =
        tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("the tests' PostgreSQL answers");
    tokio::spawn(connection);
    let name = format!("{name}_{}", std::process::id());
    client.batch_execute(&format!("DROP DATABASE IF EXISTS {name}")).await.expect("an old database can be dropped");
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database can be made");
    let (server, _) = url.rsplit_once('/').expect("the URL names a database");
    Some(Database::Postgres(format!("{server}/{name}")))
}
