//! Sessions that share a workspace: one turn at a time has it, however many begin at once, and its owner stays as long
//! as one of them.

use std::sync::Arc;

use nylorun_domain::change::SessionChange;
use nylorun_domain::id::{SessionId, TenantId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::manifest::AgentManifest;
use nylorun_domain::session::Session;
use nylorun_domain::time::Millis;
use nylorun_store::db::{Db, DbOptions, Statement};
use nylorun_store::{NO_WORKSPACE_OWNER, NewTenant, Removal, STALE_SESSION, Store, WORKSPACE_HELD, WriteError};
use tokio::task::JoinSet;

use crate::db_support::{TestDb, each};

const OWNER: &str = "INSERT INTO sessions (id, agent_id, owner_user_id, definition_hash, manifest_hash, \
     implementation_version, identity_hash, vault_ids, credential_selections, created_at, status, segment, \
     history_from, epoch, head, rev) \
     VALUES ('owner', 'a', 'u', 'd', 'm', '1', 'i', '[]', '[]', 1, 'idle', 0, 0, 0, 0, 0)";

async fn store(test: &TestDb) -> Store {
    test.db.write(vec![Statement::any(OWNER, vec![])]).await.unwrap();
    let db = Arc::new(Db::open(&test.url, &DbOptions::default()).await.unwrap());
    let tenant = NewTenant { id: TenantId::from_trusted("tn_1"), name: "t".into(), created_at: Millis(0) };
    Store::open(db, &tenant).await.unwrap()
}

fn manifest() -> AgentManifest {
    let document = r#"{"manifestSchemaVersion":5,"id":"a","capabilities":[{"id":"main","type":"agent"}]}"#;
    AgentManifest::read_pinned(&Json::from_trusted(document)).unwrap()
}

async fn get(store: &Store, id: &str) -> Session {
    store.session_get(&SessionId::from_trusted(id)).await.unwrap().unwrap()
}

/// Opens a session that shares the owner's workspace.
async fn share(store: &Store, id: &str) -> Session {
    let owner = get(store, "owner").await;
    let session = Session {
        id: SessionId::from_trusted(id),
        sandbox_owner: Some(owner.id.clone()),
        rev: 0,
        sharers: 0,
        ..owner.clone()
    };
    store.session_insert(&session, &manifest(), Some(&owner)).await.unwrap();
    session
}

/// A change by which a turn begins in the shared workspace.
fn begins(session: &Session) -> SessionChange {
    let mut change = SessionChange::of(session);
    change.session.active_turn_id = Some(TurnId::from_trusted("t"));
    change.claims_workspace_of = Some(session.workspace_owner().clone());
    change
}

fn ends(session: &Session) -> SessionChange {
    let mut change = SessionChange::of(session);
    change.session.active_turn_id = None;
    change
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_shares_is_read_back_and_its_owner_knows_of_it() {
    for test in each().await {
        let store = store(&test).await;
        let alone = get(&store, "owner").await;
        let sharer = share(&store, "one").await;
        assert_eq!(get(&store, "one").await, sharer);
        assert_eq!(get(&store, "owner").await, Session { sharers: 1, rev: 1, ..alone.clone() });
        // What was decided while it was alone is decided again.
        assert_eq!(store.session_commit(&ends(&alone)).await, Err(WriteError::Guard(STALE_SESSION)));
        share(&store, "two").await;
        let ids = |ids: &[&str]| ids.iter().copied().map(SessionId::from_trusted).collect::<Vec<_>>();
        assert_eq!(store.session_sharers(&alone.id, 9).await.unwrap(), ids(&["one", "two"]));
        assert_eq!(store.session_sharers(&alone.id, 1).await.unwrap(), ids(&["one"]));
        // The owner is counted only where the session is really opened.
        let owner = get(&store, "owner").await;
        let again = store.session_insert(&sharer, &manifest(), Some(&owner)).await;
        assert!(matches!(again, Err(WriteError::Duplicate { .. })), "{again:?}");
        assert_eq!(get(&store, "owner").await, owner);
        let other = Session { created_at: Millis(2), ..owner };
        let late = Session { id: SessionId::from_trusted("late"), ..sharer };
        let refused = store.session_insert(&late, &manifest(), Some(&other)).await;
        assert_eq!(refused, Err(WriteError::Guard(NO_WORKSPACE_OWNER)));
        assert_eq!(store.session_get(&late.id).await, Ok(None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_turns_that_begin_at_once_in_one_workspace_one_does() {
    for test in each().await {
        let store = store(&test).await;
        let mut names = vec!["owner".to_owned()];
        for n in 0..5 {
            names.push(format!("sharer-{n}"));
            share(&store, &names[n + 1]).await;
        }
        for round in 0..20 {
            let mut starts = JoinSet::new();
            for name in &names {
                let (store, change) = (store.clone(), begins(&get(&store, name).await));
                starts.spawn(async move { (store.session_commit(&change).await.map(drop), change.session) });
            }
            let mut begun = Vec::new();
            for (started, session) in starts.join_all().await {
                match started {
                    Ok(()) => begun.push(session),
                    Err(error) => assert_eq!(error, WriteError::Guard(WORKSPACE_HELD)),
                }
            }
            let [holder] = &begun[..] else { panic!("round {round}: {} turns began", begun.len()) };
            for name in &names {
                let session = get(&store, name).await;
                let held_by = store.workspace_holder(&session).await.unwrap();
                assert_eq!(held_by, Some(holder.id.clone()).filter(|id| *id != session.id));
            }
            store.session_commit(&ends(holder)).await.unwrap();
            assert_eq!(store.workspace_holder(&get(&store, "owner").await).await, Ok(None));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_goes_after_those_that_share_its_workspace() {
    for test in each().await {
        let store = store(&test).await;
        for (name, removed_by) in [("one", "reset"), ("two", "retention")] {
            share(&store, name).await;
            let owner = get(&store, "owner").await;
            let aged = store.session_opened_before(Millis(9), None, 9).await.unwrap();
            let aged = |id: &str| aged.iter().find(|session| session.id.as_str() == id).unwrap();
            assert_eq!(store.session_delete(&owner).await, Ok(Removal::Kept), "{removed_by}");
            assert_eq!(store.session_expire(aged("owner"), Millis(9)).await, Ok(Removal::Kept), "{removed_by}");
            let removed = match removed_by {
                "reset" => store.session_delete(&get(&store, name).await).await,
                _ => store.session_expire(aged(name), Millis(9)).await,
            };
            assert_eq!(removed, Ok(Removal::Removed));
            assert_eq!(get(&store, "owner").await.sharers, 0);
        }
        assert_eq!(store.session_delete(&get(&store, "owner").await).await, Ok(Removal::Removed));
    }
}
