//! What only SQLite promises: shared syncs, life across a reopening, other processes beside it, and the home's lock.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use nylorun_store::db::{DatabaseUrl, Db, DbError, DbOptions, HomeLock, HomeLockError, WriteError};

use crate::db_support::{REVISION, TestDb, advance, create_probe, insert, rows, sqlite};

fn path(test: &TestDb) -> &std::path::Path {
    match &test.url {
        DatabaseUrl::Sqlite(path) => path,
        DatabaseUrl::Postgres(_) => panic!("not a file"),
    }
}

/// Holds the write lock as another process would, so that writes must wait and form one group.
fn hold_write_lock(test: &TestDb) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(path(test)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

/// Polls once: a write is handed to the writer then.
async fn begin<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_writes_share_a_sync_and_fail_alone() {
    let test = sqlite().await;
    create_probe(&test.db).await;
    test.db.write(vec![insert("a"), insert("b"), insert("c")]).await.unwrap();
    let before = test.db.counts();

    let other = hold_write_lock(&test);
    // The first opens a group of its own and waits for the lock; the others wait behind it and form the next.
    let writes = vec![
        vec![advance("a", 0)],
        vec![advance("a", 1)],
        vec![insert("x"), advance("b", 7)],
        vec![insert("a")],
        vec![insert("y"), advance("c", 0)],
    ];
    let mut waiting: Vec<_> = writes.into_iter().map(|write| Box::pin(test.db.write(write))).collect();
    for write in &mut waiting {
        assert!(begin(write).await.is_pending());
    }
    other.execute_batch("ROLLBACK").unwrap();
    let mut results = Vec::new();
    for write in waiting {
        results.push(write.await);
    }

    assert_eq!(results[..3], [Ok(()), Ok(()), Err(WriteError::Guard(REVISION))]);
    assert!(matches!(results[3], Err(WriteError::Duplicate { .. })));
    assert_eq!(results[4], Ok(()));
    let expected = [("a", 2), ("b", 0), ("c", 1), ("y", 0)];
    assert_eq!(rows(&test.db).await, expected.map(|(id, revision)| (id.to_owned(), revision)));
    let after = test.db.counts();
    assert_eq!((after.commits - before.commits, after.statements - before.statements), (3, 4));
    assert!(after.transactions - before.transactions <= 2, "{after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_there_after_reopening() {
    let test = sqlite().await;
    create_probe(&test.db).await;
    test.db.write(vec![insert("a"), advance("a", 0)]).await.unwrap();
    test.db.close().await;
    let log = path(&test).with_extension("db-wal");
    assert!(!log.exists() || log.metadata().unwrap().len() == 0, "closing folds the log into the file");
    assert_eq!(test.db.write(vec![insert("b")]).await, Err(WriteError::Db(DbError::Closed)));
    assert_eq!(test.db.query("SELECT 1", vec![]).await, Err(DbError::Closed));

    let again = Db::open(&test.url, &DbOptions::default()).await.unwrap();
    assert_eq!(rows(&again).await, vec![("a".to_owned(), 1)]);
}

/// The file as another process would find it after `kill -9`: copied while the database is open.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_survives_a_kill() {
    let test = sqlite().await;
    create_probe(&test.db).await;
    test.db.write(vec![insert("a"), advance("a", 0)]).await.unwrap();
    let copy = tempfile::tempdir().unwrap();
    for name in ["test.db", "test.db-wal"] {
        std::fs::copy(path(&test).with_file_name(name), copy.path().join(name)).unwrap();
    }
    let url = DatabaseUrl::Sqlite(copy.path().join("test.db"));
    let found = Db::open(&url, &DbOptions::default()).await.unwrap();
    assert_eq!(rows(&found).await, vec![("a".to_owned(), 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_opener_writes_beside_the_first() {
    let test = sqlite().await;
    create_probe(&test.db).await;
    let second = Db::open(&test.url, &DbOptions::default()).await.unwrap();
    for number in 0..20 {
        let (first, second) = (format!("first-{number}"), format!("second-{number}"));
        let both = tokio::join!(test.db.write(vec![insert(&first)]), other_write(&second, &test.url));
        assert_eq!(both, (Ok(()), Ok(())));
    }
    assert_eq!(rows(&second).await.len(), 40);
    assert_eq!(rows(&test.db).await, rows(&second).await);
}

async fn other_write(id: &str, url: &DatabaseUrl) -> Result<(), WriteError> {
    let other = Db::open(url, &DbOptions::default()).await.unwrap();
    other.write(vec![insert(id)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_stays_locked_is_busy_and_changes_nothing() {
    let test = sqlite().await;
    create_probe(&test.db).await;
    let options = DbOptions { busy_timeout: Duration::from_millis(20), ..DbOptions::default() };
    let impatient = Db::open(&test.url, &options).await.unwrap();
    let other = hold_write_lock(&test);
    assert_eq!(impatient.write(vec![insert("a")]).await, Err(WriteError::Db(DbError::Busy)));
    drop(other);
    impatient.write(vec![insert("b")]).await.unwrap();
    assert_eq!(rows(&impatient).await, vec![("b".to_owned(), 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_file_is_private_durable_and_can_give_pages_back() {
    use std::os::unix::fs::PermissionsExt;
    let test = sqlite().await;
    assert_eq!(path(&test).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let other = rusqlite::Connection::open(path(&test)).unwrap();
    let pragma = |name: &str| other.query_row(name, [], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
    assert_eq!(pragma("PRAGMA auto_vacuum"), rusqlite::types::Value::Integer(2));
    assert_eq!(pragma("PRAGMA journal_mode"), rusqlite::types::Value::Text("wal".to_owned()));
}

#[test]
fn a_home_has_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let held = HomeLock::acquire(&path).unwrap();
    match HomeLock::acquire(&path) {
        Err(HomeLockError::Held { pid }) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    drop(held);
    HomeLock::acquire(&path).unwrap();
}
