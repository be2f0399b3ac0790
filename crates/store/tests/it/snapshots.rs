//! Snapshots of long transcripts: whose they are, which one stays, and when they go.

use std::sync::Arc;

use nylorun_domain::id::{SessionId, TenantId};
use nylorun_domain::json::Json;
use nylorun_domain::time::Millis;
use nylorun_domain::transcript::{Entry, Input};
use nylorun_store::db::{Db, DbOptions, Statement};
use nylorun_store::{NewTenant, Snapshot, Store};
use nylorun_wire::transcript::{entries_from_lines, entries_to_lines};

use crate::db_support::{TestDb, each};

/// A session that was opened at 1 and whose history begins at 4.
const SESSION: &str = "INSERT INTO sessions (id, agent_id, owner_user_id, definition_hash, manifest_hash, \
     implementation_version, identity_hash, vault_ids, credential_selections, created_at, last_event_at, status, \
     segment, history_from, epoch, head, rev) \
     VALUES ('s', 'a', 'u', 'd', 'm', '1', 'i', '[]', '[]', 1, 1, 'idle', 0, 4, 0, 9, 0)";

async fn store(test: &TestDb) -> Store {
    test.db.write(vec![Statement::any(SESSION, vec![])]).await.unwrap();
    let db = Arc::new(Db::open(&test.url, &DbOptions::default()).await.unwrap());
    let tenant = NewTenant { id: TenantId::from_trusted("tn_1"), name: "t".into(), created_at: Millis(0) };
    Store::open(db, &tenant).await.unwrap()
}

fn s() -> SessionId {
    SessionId::from_trusted("s")
}

fn entries(text: &str) -> Vec<Entry> {
    vec![Entry::Input(Input::Content(text.into())), Entry::Final { output: Json::string("\u{0}\n") }]
}

async fn put(store: &Store, opened_at: i64, upto: i64, text: &str) {
    let snapshot = Snapshot { upto, entries: entries_to_lines(entries(text).iter()).into() };
    store.snapshot_put(&s(), Millis(opened_at), snapshot).await.unwrap();
}

/// The snapshot that reaches to this place: its end and its entries.
async fn get(store: &Store, from: i64) -> Option<(i64, Vec<Entry>)> {
    let found = store.snapshot_get(&s(), from).await.unwrap()?;
    Some((found.upto, entries_from_lines(&found.entries).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_of_the_session_that_is_there_stays() {
    for test in each().await {
        let store = store(&test).await;
        assert_eq!(get(&store, 0).await, None);
        put(&store, 2, 5, "of a session that had the id before").await;
        assert_eq!(get(&store, 0).await, None);
        put(&store, 1, 5, "five").await;
        put(&store, 1, 7, "seven").await;
        put(&store, 1, 6, "too late").await;
        assert_eq!(get(&store, 7).await, Some((7, entries("seven"))));
        assert_eq!(get(&store, 8).await, None, "the history begins after it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_too_large_is_not_kept() {
    for test in each().await {
        let store = store(&test).await;
        put(&store, 1, 5, "five").await;
        put(&store, 1, 6, &"x".repeat(8 << 20)).await;
        assert_eq!(get(&store, 0).await, Some((5, entries("five"))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_with_the_session_and_with_what_retention_removes() {
    for test in each().await {
        let store = store(&test).await;
        put(&store, 1, 3, "before the history begins").await;
        let event = "INSERT INTO events (session_id, seq, type, visibility, body, committed_at) \
                     VALUES ('s', 0, 'turn.completed', 'public', '{}', 1)";
        test.db.write(vec![Statement::any(event, vec![])]).await.unwrap();
        let aged = store.session_opened_before(Millis(10), None, 10).await.unwrap().remove(0);
        store.event_expire(&aged, Millis(10)).await.unwrap();
        assert_eq!(get(&store, 0).await, None);
        put(&store, 1, 7, "seven").await;
        let session = store.session_get(&s()).await.unwrap().unwrap();
        store.session_delete(&session).await.unwrap();
        assert_eq!(get(&store, 0).await, None);
    }
}
