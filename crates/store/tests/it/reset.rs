//! Removing sessions, and writes that are remembered.

use std::collections::BTreeSet;
use std::sync::Arc;

use nylorun_domain::change::{SessionChange, TenantWrite};
use nylorun_domain::id::{SessionId, TenantId};
use nylorun_domain::json::Json;
use nylorun_domain::time::Millis;
use nylorun_store::db::{Db, DbOptions, Dialect, Statement};
use nylorun_store::{NO_PROVIDER, NewTenant, Removal, STALE_SESSION, Store, WriteError, all_sql};

use crate::db_support::{TestDb, each, sqlite};

/// Stays when its session goes: the ledger. Crossings go all at once afterwards.
const NOT_BY_SESSION: [&str; 2] = ["model_usage", "tool_crossings"];
const TABLES: &str = "SELECT t.name FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c \
     WHERE t.type = 'table' AND c.name = 'session_id' ORDER BY t.name";

/// A session that was opened at this time.
fn session(opened_at: i64) -> Statement {
    let sql = format!(
        "INSERT INTO sessions (id, agent_id, owner_user_id, definition_hash, manifest_hash, implementation_version, \
         identity_hash, vault_ids, credential_selections, created_at, status, segment, history_from, epoch, head, rev) \
         VALUES ('s', 'a', 'u', 'd', 'm', '1', 'i', '[]', '[]', {opened_at}, 'idle', 0, 0, 0, 0, 0)"
    );
    Statement::any(sql, vec![])
}

fn row(sql: &'static str) -> Statement {
    Statement::any(sql, vec![])
}

async fn store(test: &TestDb) -> Store {
    let db = Arc::new(Db::open(&test.url, &DbOptions::default()).await.unwrap());
    let tenant = NewTenant { id: TenantId::from_trusted("tn_1"), name: "t".into(), created_at: Millis(0) };
    Store::open(db, &tenant).await.unwrap()
}

fn id() -> SessionId {
    SessionId::from_trusted("s")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_that_names_sessions_is_emptied_or_left_on_purpose() {
    let rows = sqlite().await.db.query(TABLES, vec![]).await.unwrap();
    let all: BTreeSet<_> = rows.iter().map(|row| row.text(0).unwrap().to_owned()).collect();
    let emptied = all_sql(Dialect::Sqlite)
        .into_iter()
        .filter_map(|sql| Some(sql.strip_prefix("DELETE FROM ")?.strip_suffix(" WHERE session_id = $1")?.to_owned()));
    let known: BTreeSet<_> = emptied.chain(NOT_BY_SESSION.map(str::to_owned)).collect();
    assert_eq!(all.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_whole_and_others_stay() {
    for test in each().await {
        let store = store(&test).await;
        let other = "INSERT INTO events (session_id, seq, type, visibility, body, committed_at) \
             VALUES ('other', 0, 't', 'public', '{}', 0)";
        let own = "INSERT INTO events (session_id, seq, type, visibility, body, committed_at) \
             VALUES ('s', 0, 't', 'public', '{}', 0)";
        let crossing = "INSERT INTO tool_crossings (key, session_id, turn_id, request_hash, started_at) \
             VALUES ('e', 's', 't', 'h', 0)";
        test.db.write(vec![session(1), row(own), row(other), row(crossing)]).await.unwrap();
        let session = store.session_get(&id()).await.unwrap().unwrap();
        for removal in [Removal::Removed, Removal::Kept] {
            assert_eq!(store.session_delete(&session).await, Ok(removal));
            store.crossing_delete_orphans().await.unwrap();
            assert_eq!(store.session_get(&id()).await, Ok(None));
            let count = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM tool_crossings)";
            let rows = test.db.query(count, vec![]).await.unwrap();
            assert_eq!((rows[0].int(0), rows[0].int(1)), (Ok(1), Ok(0)));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_session_that_is_gone_is_not_one_of_the_next_of_its_id() {
    for test in each().await {
        let store = store(&test).await;
        test.db.write(vec![session(1)]).await.unwrap();
        let change = SessionChange::of(&store.session_get(&id()).await.unwrap().unwrap());
        let before = store.session_get(&id()).await.unwrap().unwrap();
        assert_eq!(store.session_delete(&before).await, Ok(Removal::Removed));
        assert_eq!(store.session_commit(&change).await, Err(WriteError::Guard(STALE_SESSION)));
        test.db.write(vec![session(2)]).await.unwrap();
        assert_eq!(store.session_commit(&change).await, Err(WriteError::Guard(STALE_SESSION)));
        assert_eq!(store.session_delete(&before).await, Ok(Removal::Kept), "another one of its id");
        let next = SessionChange::of(&store.session_get(&id()).await.unwrap().unwrap());
        assert!(store.session_commit(&next).await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_remembered_with_what_it_wrote_or_not_at_all() {
    let write = |key: &str| TenantWrite {
        operation: "selectModel".to_owned(),
        idempotency_key: key.to_owned(),
        body_hash: "hash".to_owned(),
        answer: Json::from_trusted("{}"),
        at: Millis(1),
    };
    for test in each().await {
        let store = store(&test).await;
        let refused = store.provider_select("none", "m", None, &write("k")).await;
        assert_eq!(refused, Err(WriteError::Guard(NO_PROVIDER)));
        assert_eq!(store.tenant_write_get("selectModel", "k").await, Ok(None));
        store.fixture_select(&write("k")).await.unwrap();
        assert_eq!(store.tenant_write_get("selectModel", "k").await, Ok(Some(write("k"))));
        assert_eq!(store.tenant_write_get("putModel", "k").await, Ok(None));
        assert!(matches!(store.fixture_select(&write("k")).await, Err(WriteError::Duplicate { .. })));
    }
}
