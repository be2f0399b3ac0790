//! Crossings of gates: begun once, by who holds the turn.

use std::sync::Arc;

use nylorun_domain::change::{EffectChange, SessionChange};
use nylorun_domain::id::{EffectId, SessionId, TenantId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::time::Millis;
use nylorun_domain::tool::ToolOutcome;
use nylorun_store::db::{Db, DbOptions, Statement};
use nylorun_store::{CrossingRow, NewTenant, Store, TURN_NOT_HELD, WriteError};

use crate::db_support::{TestDb, each};

/// A session that stands at epoch 3 of its turn `t`.
const SESSION: &str = "INSERT INTO sessions (id, agent_id, owner_user_id, definition_hash, manifest_hash, \
     implementation_version, identity_hash, vault_ids, credential_selections, created_at, status, active_turn_id, \
     segment, history_from, epoch, head, rev) \
     VALUES ('s', 'a', 'u', 'd', 'm', '1', 'i', '[]', '[]', 0, 'running', 't', 0, 0, 3, 0, 0)";
const END_TURN: &str = "UPDATE sessions SET active_turn_id = NULL WHERE id = 's'";

async fn store(test: &TestDb) -> Store {
    test.db.write(vec![Statement::any(SESSION, vec![])]).await.unwrap();
    let db = Arc::new(Db::open(&test.url, &DbOptions::default()).await.unwrap());
    let tenant = NewTenant { id: TenantId::from_trusted("tn_1"), name: "t".into(), created_at: Millis(0) };
    Store::open(db, &tenant).await.unwrap()
}

fn key(id: &str) -> EffectId {
    EffectId::from_trusted(id)
}

async fn begin(store: &Store, id: &str, turn: &str, epoch: i64) -> Result<(), WriteError> {
    let (session, turn) = (SessionId::from_trusted("s"), TurnId::from_trusted(turn));
    store.crossing_begin(&key(id), "hash", (&session, &turn, epoch), Millis(1_000)).await
}

fn row(answer: Option<ToolOutcome>) -> CrossingRow {
    CrossingRow { request_hash: "hash".into(), answer }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crossing_is_begun_once_and_its_first_answer_stays() {
    for test in each().await {
        let store = store(&test).await;
        assert_eq!(store.crossing_get(&key("e")).await, Ok(None));
        assert_eq!(begin(&store, "e", "t", 3).await, Ok(()));
        assert_eq!(store.crossing_get(&key("e")).await, Ok(Some(row(None))));
        assert!(matches!(begin(&store, "e", "t", 3).await, Err(WriteError::Duplicate { .. })));
        let answer = ToolOutcome::Completed { output: Json::from_trusted("{\"a\": \"\\u0000\\ud800\"}") };
        store.crossing_settle(&key("e"), &answer, Millis(2_000)).await.unwrap();
        let other = ToolOutcome::failed("http.status", "no");
        store.crossing_settle(&key("e"), &other, Millis(3_000)).await.unwrap();
        assert_eq!(store.crossing_get(&key("e")).await, Ok(Some(row(Some(answer)))));
        assert!(matches!(begin(&store, "e", "t", 3).await, Err(WriteError::Duplicate { .. })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_holds_the_turn_begins_a_crossing() {
    for test in each().await {
        let store = store(&test).await;
        for (turn, epoch) in [("t", 2), ("t", 4), ("other", 3)] {
            assert_eq!(begin(&store, "e", turn, epoch).await, Err(WriteError::Guard(TURN_NOT_HELD)));
        }
        test.db.write(vec![Statement::any(END_TURN, vec![])]).await.unwrap();
        assert_eq!(begin(&store, "e", "t", 3).await, Err(WriteError::Guard(TURN_NOT_HELD)));
        assert_eq!(store.crossing_get(&key("e")).await, Ok(None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_intent_takes_its_crossing_along() {
    for test in each().await {
        let store = store(&test).await;
        begin(&store, "e", "t", 3).await.unwrap();
        begin(&store, "kept", "t", 3).await.unwrap();
        let session = store.session_get(&SessionId::from_trusted("s")).await.unwrap().unwrap();
        let mut change = SessionChange::of(&session);
        change.effects.push(EffectChange::Forget { id: key("e") });
        store.session_commit(&change).await.unwrap();
        assert_eq!(store.crossing_get(&key("e")).await, Ok(None));
        assert_eq!(store.crossing_get(&key("kept")).await, Ok(Some(row(None))));
        assert_eq!(begin(&store, "e", "t", 3).await, Ok(()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_crossings_go_when_their_turn_is_over() {
    for test in each().await {
        let store = store(&test).await;
        begin(&store, "e", "t", 3).await.unwrap();
        let remains = async |before: i64| {
            store.crossing_prune(Millis(before)).await.unwrap();
            store.crossing_get(&key("e")).await.unwrap().is_some()
        };
        // However old it is, a call of an active turn may be asked for again.
        assert!(remains(1_000_000).await);
        test.db.write(vec![Statement::any(END_TURN, vec![])]).await.unwrap();
        assert!(remains(1_000).await);
        assert!(!remains(1_001).await);
    }
}
