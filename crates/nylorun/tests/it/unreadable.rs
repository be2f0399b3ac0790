//! Stored rows that this build cannot read, on the real binary: a turn fails of them once, or is looked at ever less.

use nylorun_client::{Event, Follow, OpenSession, Update};
use nylorun_store::db::Statement;
use serde_json::json;

use crate::database::{self, Database};
use crate::drill;
use crate::raw::{Answer, send};
use crate::refusals::{open, turn};
use crate::server::{Server, Setup};

/// What somebody does to the rows of session `s`, with another tool.
async fn change(database: &Database, setup: &Setup, sql: &'static str) {
    let db = open(database, &setup.home).await;
    db.write(vec![Statement::any(sql, Vec::new())]).await.expect("an operator may do so");
    db.close().await;
}

async fn next_end(server: &Server) -> Event {
    let session = server.client().session("s");
    let mut events = session.events(Follow::default());
    loop {
        match events.next().await.expect("the stream goes on").expect("the stream goes on") {
            Update::Event(event) if event.ends_turn() => return event,
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
        }
    }
}

fn assert_unreadable(failed: &Event) {
    assert_eq!(failed.kind, "turn.failed", "{}", failed.text);
    let error = &failed.payload["error"];
    assert_eq!(error["code"], "internal", "{}", failed.text);
    let message = error["message"].as_str().expect("it says why");
    assert!(message.starts_with("what is stored for this turn cannot be read"), "{message}");
}

fn view(server: &Server) -> Answer {
    let bearer = format!("Bearer {}", server.key_text("applicationKey"));
    let headers = [("Nylorun-Protocol", "10"), ("Authorization", bearer.as_str())];
    send(&server.url, "GET", "/v1/sessions/s", &headers, None)
}

#[tokio::test]
async fn a_turn_whose_record_cannot_be_read_fails_and_the_next_one_can_when_it_is_mended() {
    for database in database::each("unreadable_record").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let server = setup.start();
        drill::prepare(&server).await.expect("it can be prepared");
        server.client().open_session("s", &OpenSession::new(drill::AGENT, "me")).await.expect("it can be opened");
        assert_eq!(turn(&server).await.kind, "turn.completed");
        // What a server knows of the turns that it ran itself, it does not read.
        assert!(server.stop().success());
        change(&database, &setup, include_str!("../sql/break_record.sql")).await;
        let server = setup.start();
        assert_unreadable(&turn(&server).await);
        change(&database, &setup, include_str!("../sql/mend_record.sql")).await;
        assert_eq!(turn(&server).await.kind, "turn.completed", "{database:?}");
        assert!(server.stop().success());
    }
}

#[tokio::test]
async fn a_turn_whose_journal_cannot_be_read_fails() {
    for database in database::each("unreadable_journal").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let mut server = setup.start();
        drill::prepare(&server).await.expect("it can be prepared");
        let slow = json!([{"delayMs": 600_000, "text": "never"}]).to_string();
        drill::begin(&server.client(), "s", &slow).await.expect("it can begin");
        server.until_running("s").await;
        server.kill();
        change(&database, &setup, include_str!("../sql/break_journal.sql")).await;
        let server = setup.start();
        assert_unreadable(&next_end(&server).await);
        assert!(setup.log().contains("an effect cannot be read"), "{}", setup.log());
        assert_eq!(turn(&server).await.kind, "turn.completed", "{database:?}");
        assert!(server.stop().success());
    }
}

/// Nothing can be decided on such a row, so nothing is written. Its turn waits for whoever mends it.
#[tokio::test]
async fn a_session_that_cannot_be_read_is_an_internal_error_until_it_is_mended() {
    for database in database::each("unreadable_session").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let mut server = setup.start();
        drill::prepare(&server).await.expect("it can be prepared");
        let slow = json!([{"delayMs": 2_000, "text": "done"}]).to_string();
        drill::begin(&server.client(), "s", &slow).await.expect("it can begin");
        server.until_running("s").await;
        server.kill();
        change(&database, &setup, include_str!("../sql/break_session.sql")).await;
        let server = setup.start();
        let told = r#"{"status":"rejected","code":"internal_error","message":"Internal error"}"#;
        assert_eq!(view(&server), Answer { status: 500, body: told.to_owned() });
        let looks = |log: &str| log.matches("a session cannot be advanced by this build").count();
        while looks(&setup.log()) < 2 {
            tokio::task::yield_now().await;
        }
        assert!(!setup.log().contains("an advance could not reach the store"), "{}", setup.log());
        change(&database, &setup, include_str!("../sql/mend_session.sql")).await;
        assert_eq!(next_end(&server).await.kind, "turn.completed", "{database:?}");
        assert!(server.stop().success());
    }
}
