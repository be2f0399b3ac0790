//! Databases for tests: a SQLite file always, and a fresh PostgreSQL database where the environment names a server.

use nylorun_store::db::{DatabaseUrl, Db, DbOptions, Dialect, Guard, Row, Statement};
use nylorun_store::params;
use tempfile::TempDir;

/// A database that goes away with the value.
pub(crate) struct TestDb {
    pub(crate) db: Db,
    pub(crate) url: DatabaseUrl,
    _folder: TempDir,
}

/// The guard of these tests.
pub(crate) const REVISION: Guard = Guard("revision");

/// A SQLite database in a temporary folder.
pub(crate) async fn sqlite() -> TestDb {
    let folder = tempfile::tempdir().unwrap();
    let url = DatabaseUrl::Sqlite(folder.path().join("test.db"));
    let db = Db::open(&url, &DbOptions::default()).await.unwrap();
    TestDb { db, url, _folder: folder }
}

/// One database of each engine that this run has.
pub(crate) async fn each() -> Vec<TestDb> {
    vec![sqlite().await]
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
