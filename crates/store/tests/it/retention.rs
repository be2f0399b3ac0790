//! Removing what is too old: what goes, what the model's history needs, and what is in use.

use std::sync::Arc;

use nylorun_domain::id::TenantId;
use nylorun_domain::time::Millis;
use nylorun_store::db::{Db, DbOptions, Statement};
use nylorun_store::{AgedSession, NewTenant, Removal, Store};

use crate::db_support::{TestDb, each};

async fn store(test: &TestDb) -> Store {
    let db = Arc::new(Db::open(&test.url, &DbOptions::default()).await.unwrap());
    let tenant = NewTenant { id: TenantId::from_trusted("tn_1"), name: "t".into(), created_at: Millis(0) };
    Store::open(db, &tenant).await.unwrap()
}

/// A session that was opened and last used at these times, with an active turn or without.
fn session(id: &str, opened_at: i64, used_at: i64, turn: Option<&str>) -> Statement {
    let turn = turn.map_or("NULL".to_owned(), |turn| format!("'{turn}'"));
    let sql = format!(
        "INSERT INTO sessions (id, agent_id, owner_user_id, definition_hash, manifest_hash, implementation_version, \
         identity_hash, vault_ids, credential_selections, created_at, last_event_at, status, active_turn_id, \
         last_turn_id, segment, history_from, epoch, head, rev) VALUES ('{id}', 'a', 'u', 'd', 'm', '1', 'i', '[]', \
         '[]', {opened_at}, {used_at}, 'idle', {turn}, 'last', 0, 2, 0, 0, 0)"
    );
    Statement::any(sql, vec![])
}

fn event(session: &str, seq: i64, kind: &str, at: i64) -> Statement {
    let sql = format!(
        "INSERT INTO events (session_id, seq, type, visibility, body, committed_at) \
         VALUES ('{session}', {seq}, '{kind}', 'public', '{{}}', {at})"
    );
    Statement::any(sql, vec![])
}

fn effect(session: &str, id: &str, turn: &str, status: &str) -> Statement {
    let sql = format!(
        "INSERT INTO effects (session_id, id, turn_id, segment, kind, invocation_id, request_hash, status) \
         VALUES ('{session}', '{id}', '{turn}', 0, 'model', 'i', 'h', '{status}')"
    );
    Statement::any(sql, vec![])
}

async fn numbers(test: &TestDb, sql: &'static str) -> Vec<i64> {
    test.db.query(sql, vec![]).await.unwrap().iter().map(|row| row.int(0).unwrap()).collect()
}

fn aged<'a>(page: &'a [AgedSession], id: &str) -> &'a AgedSession {
    page.iter().find(|session| session.id.as_str() == id).unwrap()
}

fn ids(page: &[AgedSession]) -> Vec<&str> {
    page.iter().map(|session| session.id.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_idle_sessions_go_and_their_workspaces_after_them() {
    for test in each().await {
        let store = store(&test).await;
        let call =
            "INSERT INTO direct_calls (session_id, id, tool, worker, began_at) VALUES ('calls', 'c', 'bash', 'w', 1)";
        let files = "INSERT INTO workspaces (key, session_id, backend, image, state, created_at, updated_at) \
             VALUES ('k', 'idle', 'virtual', '', 'stopped', 1, 2)";
        test.db
            .write(vec![
                session("idle", 1, 10, None),
                session("used", 1, 50, None),
                session("busy", 2, 10, Some("t")),
                session("calls", 3, 10, None),
                session("new", 40, 40, None),
                event("idle", 0, "turn.completed", 10),
                Statement::any(call, vec![]),
                Statement::any(files, vec![]),
            ])
            .await
            .unwrap();
        let page = store.session_opened_before(Millis(20), None, 3).await.unwrap();
        assert_eq!(ids(&page), ["idle", "used", "busy"]);
        assert_eq!(page.iter().map(|session| session.is_active).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(ids(&store.session_opened_before(Millis(20), page.last(), 3).await.unwrap()), ["calls"]);
        let all = store.session_opened_before(Millis(50), None, 9).await.unwrap();
        let mut removed = Vec::new();
        for id in ["idle", "used", "busy", "calls", "new", "idle"] {
            let removal = store.session_expire(aged(&all, id), Millis(20)).await.unwrap();
            removed.push((id, removal == Removal::Removed));
        }
        let expected =
            [("idle", true), ("used", false), ("busy", false), ("calls", false), ("new", false), ("idle", false)];
        assert_eq!(removed, expected);
        assert_eq!(numbers(&test, "SELECT count(*) FROM sessions").await, [4]);
        assert_eq!(numbers(&test, "SELECT count(*) FROM events").await, [0]);
        // By it the files are found, also after a crash.
        assert_eq!(numbers(&test, "SELECT count(*) FROM workspaces").await, [1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_events_go_but_for_those_of_the_models_history() {
    for test in each().await {
        let store = store(&test).await;
        let kinds = ["command.message", "transcript.updated", "turn.failed", "transcript.updated", "turn.completed"];
        let events = (0_i64..).zip(kinds).map(|(seq, kind)| event("s", seq, kind, seq));
        let mut statements = vec![session("s", 0, 9, None), event("s", 5, "command.message", 5)];
        statements.extend(events);
        statements.extend([effect("s", "1", "old", "completed"), effect("s", "2", "old", "uncertain")]);
        statements.push(effect("s", "3", "last", "completed"));
        test.db.write(statements).await.unwrap();
        let page = store.session_opened_before(Millis(5), None, 9).await.unwrap();
        assert_eq!(store.event_expire(&page[0], Millis(5)).await.unwrap(), (Removal::Removed, None));
        // The fold begins at 2: what is before it goes, what it reads stays.
        assert_eq!(numbers(&test, "SELECT seq FROM events ORDER BY seq").await, [2, 3, 5]);
        assert_eq!(numbers(&test, "SELECT CAST(id AS BIGINT) FROM effects ORDER BY id").await, [2, 3]);
        let page = store.session_opened_before(Millis(5), None, 9).await.unwrap();
        assert_eq!(store.event_expire(&page[0], Millis(5)).await.unwrap(), (Removal::Kept, None), "it begins at 5 now");
        let (removal, next) = store.event_expire(&page[0], Millis(6)).await.unwrap();
        // All that was read went: there may be more.
        assert_eq!((removal, next.map(|session| session.retained_from)), (Removal::Removed, Some(6)));
        assert_eq!(numbers(&test, "SELECT seq FROM events ORDER BY seq").await, [2, 3]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_an_active_turn_keeps_its_events() {
    for test in each().await {
        let store = store(&test).await;
        test.db.write(vec![session("s", 0, 0, None), event("s", 0, "turn.completed", 0)]).await.unwrap();
        let page = store.session_opened_before(Millis(5), None, 9).await.unwrap();
        let begins = Statement::any("UPDATE sessions SET active_turn_id = 't'", vec![]);
        test.db.write(vec![begins]).await.unwrap();
        assert_eq!(store.event_expire(&page[0], Millis(5)).await.unwrap(), (Removal::Kept, None));
        assert_eq!(numbers(&test, "SELECT count(*) FROM events").await, [1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn space_goes_back_to_the_file_system_on_sqlite() {
    let test = crate::db_support::sqlite().await;
    const FILL: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) \
         INSERT INTO events (session_id, seq, type, visibility, body, committed_at) \
         SELECT 's', i, 't', 'public', hex(zeroblob(2000)), 0 FROM n";
    test.db.write(vec![Statement::any(FILL, vec![])]).await.unwrap();
    let pages = || numbers(&test, "SELECT page_count FROM pragma_page_count()");
    let full = pages().await[0];
    test.db.write(vec![Statement::any("DELETE FROM events", vec![])]).await.unwrap();
    assert_eq!(pages().await[0], full, "free pages stay in the file");
    test.db.shrink().await.unwrap();
    assert!(pages().await[0] < full / 4, "{} of {full}", pages().await[0]);
}
