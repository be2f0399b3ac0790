//! Opening databases of other builds, and two processes that open a new one at once.

use nylorun_store::db::{DatabaseUrl, Db, DbOptions, OlderSchema, OpenError, Statement};
use nylorun_store::params;

use crate::db_support::{PostgresDatabase, each};

const RECORD: &str = "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)";

async fn reopen(url: &DatabaseUrl) -> Result<Db, OpenError> {
    Db::open(url, &DbOptions::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_database_is_refused_and_left_alone() {
    for test in each().await {
        let versions = "SELECT version FROM schema_migrations ORDER BY version";
        let known = test.db.query(versions, vec![]).await.unwrap().last().unwrap().int(0).unwrap();
        test.db.write(vec![Statement::any(RECORD, params![known + 1, "later", "00"])]).await.unwrap();
        let before = test.db.query(versions, vec![]).await.unwrap();
        let refused = reopen(&test.url).await.unwrap_err();
        assert_eq!(refused, OpenError::SchemaTooNew { found: known + 1, known });
        assert_eq!(test.db.query(versions, vec![]).await.unwrap(), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_migration_is_refused() {
    for test in each().await {
        let change = "UPDATE schema_migrations SET checksum = $1 WHERE version = $2";
        test.db.write(vec![Statement::any(change, params!["00", 1i64])]).await.unwrap();
        let refused = reopen(&test.url).await.unwrap_err();
        assert_eq!(refused, OpenError::ChecksumChanged { version: 1, name: "foundation" });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_database_opens_again() {
    for test in each().await {
        let again = reopen(&test.url).await.unwrap();
        assert_eq!(
            again.query("SELECT version FROM schema_migrations WHERE version = 1", vec![]).await.unwrap().len(),
            1
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_can_be_left_as_it_is() {
    let options = DbOptions { older: OlderSchema::Refuse, ..DbOptions::default() };
    for test in each().await {
        Db::open(&test.url, &options).await.unwrap();
        let wanted = nylorun_store::schema_version();
        for (sql, found) in [
            ("DELETE FROM schema_migrations WHERE version = (SELECT MAX(version) FROM schema_migrations)", wanted - 1),
            ("DROP TABLE schema_migrations", 0),
        ] {
            test.db.write(vec![Statement::any(sql, vec![])]).await.unwrap();
            let refused = Db::open(&test.url, &options).await.unwrap_err();
            assert_eq!(refused, OpenError::SchemaOld { found, wanted });
        }
    }
    // A file that is not there is not made.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.db");
    let refused = Db::open(&DatabaseUrl::Sqlite(path.clone()), &options).await.unwrap_err();
    assert_eq!(refused, OpenError::SchemaOld { found: 0, wanted: nylorun_store::schema_version() });
    assert!(!path.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn openers_of_a_new_file_migrate_it_once() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..10 {
        open_at_once(&DatabaseUrl::Sqlite(folder.path().join(format!("{round}.db")))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openers_of_a_new_database_migrate_it_once() {
    for _ in 0..3 {
        let Some(database) = PostgresDatabase::create().await else { return };
        open_at_once(&database.url()).await;
    }
}

async fn open_at_once(url: &DatabaseUrl) {
    let openers = (0..4).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { reopen(&url).await })
    });
    for opener in openers.collect::<Vec<_>>() {
        opener.await.unwrap().unwrap();
    }
}
