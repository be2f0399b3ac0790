//! What only PostgreSQL promises: writes that survive lost connections and deadlocks, unknown commits, signs of life of
//! workers, and announcements between processes. All of them are skipped without a server.

use std::time::Duration;

use nylorun_store::db::{Db, DbError, DbOptions, Notice, Notices, Statement, WorkerLockError, WriteError};
use nylorun_store::params;
use tokio_postgres::Client;

use crate::db_support::{TestDb, advance, client, create_probe, insert, postgres, rows};

const END_RUNTIME: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
                           AND application_name = 'nylorun-runtime'";

/// Waits until a query of one truth value says yes.
async fn until(client: &Client, question: &str) {
    let asking = async { while !client.query_one(question, &[]).await.unwrap().get::<_, bool>(0) {} };
    tokio::time::timeout(Duration::from_secs(20), asking).await.expect(question);
}

async fn second(test: &TestDb) -> Db {
    Db::open(&test.url, &DbOptions::default()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_goes_on_after_its_idle_connections_were_lost() {
    let Some(test) = postgres().await else { return };
    create_probe(&test.db).await;
    let operator = client(&test).await;
    let gone = "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() \
                AND application_name = 'nylorun-runtime'";
    for id in ["a", "b", "c"] {
        operator.batch_execute(END_RUNTIME).await.unwrap();
        // Being told to end is not yet the end: a write on a connection that dies under it is another matter.
        until(&operator, gone).await;
        test.db.write(vec![insert(id)]).await.unwrap();
    }
    assert_eq!(rows(&test.db).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_loses_its_connection_before_its_commit_is_tried_again() {
    let Some(test) = postgres().await else { return };
    create_probe(&test.db).await;
    test.db.write(vec![insert("a")]).await.unwrap();
    let operator = client(&test).await;
    operator.batch_execute("BEGIN; UPDATE probe SET body = ''").await.unwrap();

    let write = test.db.write(vec![advance("a", 0), insert("b")]);
    let disturb = async {
        let watcher = client(&test).await;
        let waiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() \
                       AND application_name = 'nylorun-runtime' AND wait_event_type = 'Lock'";
        until(&watcher, waiting).await;
        watcher.batch_execute(END_RUNTIME).await.unwrap();
        until(&watcher, waiting).await;
        operator.batch_execute("ROLLBACK").await.unwrap();
    };
    let (written, ()) = tokio::join!(write, disturb);
    assert_eq!(written, Ok(()));
    assert_eq!(rows(&test.db).await, vec![("a".to_owned(), 1), ("b".to_owned(), 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_deadlock_are_tried_again() {
    let Some(test) = postgres().await else { return };
    create_probe(&test.db).await;
    let operator = client(&test).await;
    let faster = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''5ms''', current_database()); \
                  END $$";
    operator.batch_execute(faster).await.unwrap();
    operator.batch_execute(END_RUNTIME).await.unwrap();
    test.db.write(vec![insert("a"), insert("b")]).await.unwrap();
    let touch = |id: &str| Statement::any("UPDATE probe SET revision = revision + 1 WHERE id = $1", params![id]);
    for _ in 0..40 {
        let (one, other) =
            tokio::join!(test.db.write(vec![touch("a"), touch("b")]), test.db.write(vec![touch("b"), touch("a")]));
        assert_eq!((one, other), (Ok(()), Ok(())));
    }
    assert_eq!(rows(&test.db).await, vec![("a".to_owned(), 80), ("b".to_owned(), 80)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_unknown() {
    let Some(test) = postgres().await else { return };
    create_probe(&test.db).await;
    let operator = client(&test).await;
    let slow_commit = "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS \
                       $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$; \
                       CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON probe DEFERRABLE INITIALLY DEFERRED \
                       FOR EACH ROW EXECUTE FUNCTION wait()";
    operator.batch_execute(slow_commit).await.unwrap();
    let disturb = async {
        let committing = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() \
                          AND query = 'COMMIT' AND wait_event = 'PgSleep'";
        until(&operator, committing).await;
        operator.batch_execute(END_RUNTIME).await.unwrap();
    };
    let (written, ()) = tokio::join!(test.db.write(vec![insert("a")]), disturb);
    assert!(matches!(written, Err(WriteError::Unknown(DbError::Connection(_)))), "{written:?}");
    assert_eq!(test.db.counts().commits, 1, "only the table's creation");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_first_seen_as_null_takes_a_value_later() {
    let Some(test) = postgres().await else { return };
    create_probe(&test.db).await;
    // From NULL alone the server guesses an int4 here.
    let sql = "INSERT INTO probe (id, revision) VALUES ($1, COALESCE($2 + 1, 5))";
    test.db.write(vec![Statement::any(sql, params!["null", None::<i64>])]).await.unwrap();
    test.db.write(vec![Statement::any(sql, params!["big", i64::MAX - 1])]).await.unwrap();
    assert_eq!(rows(&test.db).await, vec![("big".to_owned(), i64::MAX), ("null".to_owned(), 5)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_counts_as_gone_once_its_lock_is_free() {
    let Some(test) = postgres().await else { return };
    let other = second(&test).await;
    assert_eq!(other.is_worker_gone("w1").await, Ok(true));
    let lock = test.db.hold_worker_lock("w1").await.unwrap();
    assert_eq!(other.is_worker_gone("w1").await, Ok(false));
    assert_eq!(test.db.is_worker_gone("w1").await, Ok(false));
    assert_eq!(other.is_worker_gone("w2").await, Ok(true));
    assert!(!*lock.lost().borrow());

    drop(lock);
    let gone = async { while other.is_worker_gone("w1").await == Ok(false) {} };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    drop(other.hold_worker_lock("w1").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_hears_that_its_lock_is_lost() {
    let Some(test) = postgres().await else { return };
    let lock = test.db.hold_worker_lock("w1").await.unwrap();
    let mut lost = lock.lost();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
               AND application_name = 'nylorun-worker'";
    client(&test).await.batch_execute(end).await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), lost.wait_for(|lost| *lost)).await.unwrap().unwrap();
    // The server frees the lock when the backend has ended, a moment after the connection did.
    let gone = async { while test.db.is_worker_gone("w1").await == Ok(false) {} };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    assert_eq!(test.db.is_worker_gone("w1").await, Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_of_one_id_are_refused() {
    let Some(test) = postgres().await else { return };
    let _lock = test.db.hold_worker_lock("w1").await.unwrap();
    let again = second(&test).await.hold_worker_lock("w1").await;
    assert_eq!(again.map(drop), Err(WorkerLockError::Held));
}

/// Everything up to the payload `end`, gaps as `gap`.
async fn heard_until_end(notices: &mut Notices) -> Vec<String> {
    let mut heard = Vec::new();
    let hearing = async {
        loop {
            match notices.next().await {
                Notice::Message { payload, .. } if payload == "end" => return,
                Notice::Message { channel, payload } => heard.push(format!("{channel} {payload}")),
                Notice::Gap => heard.push("gap".to_owned()),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), hearing).await.unwrap();
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn announcements_reach_listeners_of_their_channel_and_coalesce() {
    let Some(test) = postgres().await else { return };
    let other = second(&test).await;
    let mut notices = other.listen(&["events", "control"]).await.unwrap();
    for _ in 0..500 {
        test.db.announce("events", "s1");
    }
    test.db.announce("elsewhere", "s2");
    test.db.announce("events", "\"quoted\" ü");
    test.db.close().await;
    other.announce("control", "end");
    let heard = heard_until_end(&mut notices).await;
    assert!(heard.contains(&"events \"quoted\" ü".to_owned()), "{heard:?}");
    let repeats = heard.iter().filter(|payload| *payload == "events s1").count();
    assert!((1..100).contains(&repeats), "500 announcements, {repeats} notices");
    assert!(heard.iter().all(|notice| notice.starts_with("events ")), "{heard:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_lost_its_connection_hears_of_the_gap_and_goes_on() {
    let Some(test) = postgres().await else { return };
    let mut notices = test.db.listen(&["events"]).await.unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
               AND application_name = 'nylorun-control'";
    client(&test).await.batch_execute(end).await.unwrap();
    let gap = tokio::time::timeout(Duration::from_secs(20), notices.next()).await.unwrap();
    assert_eq!(gap, Notice::Gap);
    test.db.announce("events", "after");
    test.db.announce("events", "end");
    assert_eq!(heard_until_end(&mut notices).await, vec!["events after".to_owned()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_said() {
    let url = "postgres://nobody:secret@127.0.0.1:1/none".parse().unwrap();
    let error = Db::open(&url, &DbOptions::default()).await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("127.0.0.1") && !text.contains("secret"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_waiting_leaves_its_connection_to_the_next() {
    const PID: &str = "SELECT CAST(pg_backend_pid() AS BIGINT)";
    const LONG: &str = "SELECT CAST(1 AS BIGINT) FROM pg_sleep(0.5)";
    let Some(test) = postgres().await else { return };
    let watcher = client(&test).await;
    let pid = || async { test.db.query(PID, vec![]).await.unwrap()[0].int(0).unwrap() };
    let before = pid().await;
    let runs = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' \
                AND query LIKE '%pg_sleep(0%' AND pid <> pg_backend_pid()";
    tokio::select! {
        _ = test.db.query(LONG, vec![]) => panic!("it was to be given up"),
        () = until(&watcher, runs) => {}
    }
    assert_eq!(pid().await, before);
}
