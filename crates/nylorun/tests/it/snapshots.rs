//! The history of a long session after a restart, on the real binary.

use std::time::Duration;

use nylorun_client::{Environment, Event, OpenSession};
use nylorun_store::db::Statement;

use crate::database;
use crate::drill;
use crate::raw::send;
use crate::refusals::{open, turn};
use crate::server::{Server, Setup};

/// More edits of the transcript than a fold may read without leaving a snapshot.
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

/// The first turn after a restart folds all of the record and leaves a snapshot; after the next one the old edits are
/// not read any more, and the model is shown the same.
#[tokio::test]
async fn a_long_fold_leaves_a_snapshot_from_which_the_next_goes_on() {
    for database in database::each("snapshots").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let mut server = setup.start();
        drill::prepare(&server).await.expect("it can be prepared");
        let open_session =
            OpenSession { environment: Some(Environment::Without), ..OpenSession::new(drill::AGENT, "me") };
        server.client().open_session("s", &open_session).await.expect("it can be opened");
        for _ in 1..TURNS {
            assert_eq!(turn(&server).await.kind, "turn.completed");
        }
        let last = turn(&server).await;
        let before = shown(&server, &last);
        server.kill();

        let mut server = setup.start();
        let folded = turn(&server).await;
        assert_eq!(folded.kind, "turn.completed", "{}", folded.text);
        let grown = shown(&server, &folded) - before;
        let db = open(&database, home.path()).await;
        let left = async {
            while db.query(include_str!("../sql/snapshot.sql"), vec![]).await.expect("it answers").is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), left).await.expect("a snapshot is left");
        server.kill();

        let forget = Statement::any(include_str!("../sql/forget.sql"), Vec::new());
        db.write(vec![forget]).await.expect("it can be written");
        db.close().await;
        let server = setup.start();
        let next = turn(&server).await;
        assert_eq!(next.kind, "turn.completed", "{}", next.text);
        let after = shown(&server, &next);
        assert!((before + grown..=before + 2 * grown + 1).contains(&after), "{before}, {grown} more, then {after}");
        assert!(server.stop().success());
    }
}
