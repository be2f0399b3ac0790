//! Databases for tests: a SQLite file always, and a fresh PostgreSQL database where the environment names a server.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use nylorun_store::db::{DatabaseUrl, Db, DbOptions, Dialect, Guard, Row, Statement};
use nylorun_store::params;
use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls};

/// A database that goes away with the value.
pub(crate) struct TestDb {
    pub(crate) db: Db,
    pub(crate) url: DatabaseUrl,
    place: Place,
}

/// What goes away with a database.
enum Place {
    Folder { _folder: TempDir },
    Server(Box<PostgresDatabase>),
}

/// The guard of these tests.
pub(crate) const REVISION: Guard = Guard("revision");

/// A SQLite database in a temporary folder.
pub(crate) async fn sqlite() -> TestDb {
    let folder = tempfile::tempdir().unwrap();
    let url = DatabaseUrl::Sqlite(folder.path().join("test.db"));
    let db = Db::open(&url, &DbOptions::default()).await.unwrap();
    TestDb { db, url, place: Place::Folder { _folder: folder } }
}

/// A new database on the test server; `None`, and a line that says so, when no server is named.
pub(crate) async fn postgres() -> Option<TestDb> {
    let place = PostgresDatabase::create().await?;
    let url = place.url();
    let db = Db::open(&url, &DbOptions::default()).await.unwrap();
    Some(TestDb { db, url, place: Place::Server(Box::new(place)) })
}

/// One database of each engine that this run has.
pub(crate) async fn each() -> Vec<TestDb> {
    let mut all = vec![sqlite().await];
    all.extend(postgres().await);
    all
}

/// An empty PostgreSQL database, dropped with the value.
pub(crate) struct PostgresDatabase {
    server: Config,
    name: String,
}

impl PostgresDatabase {
    pub(crate) async fn create() -> Option<Self> {
        static SAY: Once = Once::new();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let Ok(server) = std::env::var("NYLORUN_TEST_POSTGRES_URL") else {
            SAY.call_once(|| eprintln!("PostgreSQL is skipped: NYLORUN_TEST_POSTGRES_URL is not set"));
            return None;
        };
        let server: Config = server.parse().unwrap();
        let name = format!("test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        batch(&server, &format!("CREATE DATABASE {name}")).await;
        Some(Self { server, name })
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = self.server.clone();
        config.dbname(&self.name);
        config
    }

    pub(crate) fn url(&self) -> DatabaseUrl {
        DatabaseUrl::Postgres(Box::new(self.config()))
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        let (server, sql) = (self.server.clone(), format!("DROP DATABASE {} WITH (FORCE)", self.name));
        // A thread of its own, since this may run inside of a runtime.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(batch(&server, &sql));
        });
        let _ = dropping.join();
    }
}

/// A connection of an operator, beside the store's own.
pub(crate) async fn client(test: &TestDb) -> Client {
    let Place::Server(database) = &test.place else { panic!("not a server") };
    let (client, driver) = database.config().connect(NoTls).await.unwrap();
    tokio::spawn(driver);
    client
}

/// Runs SQL on this connection.
pub(crate) async fn batch_on(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

/// Runs SQL on a connection of its own.
pub(crate) async fn batch(config: &Config, sql: &str) {
    let (client, driver) = config.connect(NoTls).await.unwrap();
    let driver = tokio::spawn(driver);
    client.batch_execute(sql).await.unwrap();
    drop(client);
    driver.await.unwrap().unwrap();
}

/// The table that these tests use, so that they do not depend on the product's own.
pub(crate) async fn create_probe(db: &Db) {
    let sql = match db.dialect() {
        Dialect::Sqlite => "CREATE TABLE probe (id TEXT NOT NULL PRIMARY KEY, revision BIGINT NOT NULL, body BLOB)",
        Dialect::Postgres => "CREATE TABLE probe (id TEXT NOT NULL PRIMARY KEY, revision BIGINT NOT NULL, body BYTEA)",
    };
    db.write(vec![Statement::any(sql, vec![])]).await.unwrap();
}

/// A new row at revision 0.
pub(crate) fn insert(id: &str) -> Statement {
    Statement::any("INSERT INTO probe (id, revision) VALUES ($1, $2)", params![id, 0i64])
}

/// One revision further, if the row is still at `revision`.
pub(crate) fn advance(id: &str, revision: i64) -> Statement {
    let sql = "UPDATE probe SET revision = revision + 1 WHERE id = $1 AND revision = $2";
    Statement::one(sql, params![id, revision], REVISION)
}

/// All rows as `(id, revision)`, by id.
pub(crate) async fn rows(db: &Db) -> Vec<(String, i64)> {
    let pair = |row: &Row| (row.text(0).unwrap().to_owned(), row.int(1).unwrap());
    db.query("SELECT id, revision FROM probe ORDER BY id", vec![]).await.unwrap().iter().map(pair).collect()
}
