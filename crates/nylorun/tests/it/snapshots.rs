//! The history of a long session after a restart, on the real binary.

use std::time::Duration;

use nylorun_client::{Environment, Event, OpenSession};
use nylorun_store::Db;
use nylorun_store::db::Statement;

use crate::database;
use crate::drill;
use crate::raw::send;
use crate::refusals::{open, turn};
use crate::server::{Server, Setup};

/// More edits of the transcript than a session may have without a snapshot.
const TURNS: usize = 515;

/// How many tokens the model was shown in the turn that this event ended.
fn shown(server: &Server, end: &Event) -> u64 {
    let turn = end.turn_id().expect("it ended a turn");
    let bearer = format!("Bearer {}", server.key_text("applicationKey"));
    let headers = [("Nylorun-Protocol", "10"), ("Authorization", bearer.as_str())];
    let answer = send(&server.url, "GET", &format!("/v1/sessions/s/usage?turnId={turn}"), &headers, None);
    let usage: serde_json::Value = serde_json::from_str(&answer.body).expect("it is JSON");
    usage["inputTokens"].as_u64().unwrap_or_else(|| panic!("{}", answer.body))
}

/// Waits until the session has a snapshot.
async fn until_left(db: &Db) {
    let left = async {
        while db.query(include_str!("../sql/snapshot.sql"), vec![]).await.expect("it answers").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), left).await.expect("a snapshot is left");
}

/// What a snapshot holds is not read again after a restart, and the model is shown the same.
async fn goes_on_from_it(setup: &Setup, db: &Db, last: u64, grown: u64) {
    db.write(vec![Statement::any(include_str!("../sql/forget.sql"), Vec::new())]).await.expect("it can be written");
    let server = setup.start();
    let next = turn(&server).await;
    assert_eq!(next.kind, "turn.completed", "{}", next.text);
    let after = shown(&server, &next);
    // Tokens are counted by the length of what is shown: every turn adds the same, but for rounding.
    assert!(after.abs_diff(last + grown) <= 1, "{last}, {grown} more, then {after}");
    assert!(server.stop().success());
}

/// A server whose session has had many turns, with what the model was shown in the last one.
async fn talked(setup: &Setup) -> (Server, u64) {
    let server = setup.start();
    drill::prepare(&server).await.expect("it can be prepared");
    let open_session = OpenSession { environment: Some(Environment::Without), ..OpenSession::new(drill::AGENT, "me") };
    server.client().open_session("s", &open_session).await.expect("it can be opened");
    for _ in 1..TURNS {
        assert_eq!(turn(&server).await.kind, "turn.completed");
    }
    let last = turn(&server).await;
    let shown = shown(&server, &last);
    (server, shown)
}

#[tokio::test]
async fn a_session_that_is_talked_to_leaves_a_snapshot_as_it_grows() {
    for database in database::each("snapshots_grown").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let (mut server, before) = talked(&setup).await;
        let db = open(&database, home.path()).await;
        until_left(&db).await;
        let grown = turn(&server).await;
        let last = shown(&server, &grown);
        server.kill();
        goes_on_from_it(&setup, &db, last, last - before).await;
        db.close().await;
    }
}

#[tokio::test]
async fn a_long_fold_leaves_a_snapshot_from_which_the_next_goes_on() {
    for database in database::each("snapshots").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let (mut server, before) = talked(&setup).await;
        let db = open(&database, home.path()).await;
        until_left(&db).await;
        server.kill();
        db.write(vec![Statement::any(include_str!("../sql/no_snapshot.sql"), Vec::new())]).await.expect("it is there");

        let mut server = setup.start();
        let folded = turn(&server).await;
        assert_eq!(folded.kind, "turn.completed", "{}", folded.text);
        let last = shown(&server, &folded);
        until_left(&db).await;
        server.kill();
        goes_on_from_it(&setup, &db, last, last - before).await;
        db.close().await;
    }
}
