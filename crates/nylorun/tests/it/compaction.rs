//! Compaction on the real binary: what it shows, and that a restart reads what it left.

use nylorun_client::{Command, CommandKind, Content, Event, Follow, OpenSession, Update};
use serde_json::{Value, json};

use crate::drill;
use crate::server::{Server, Setup};

/// Sends a message and gives the events of its turn.
async fn turn(server: &Server, text: String) -> Vec<Event> {
    let session = server.client().session("s");
    let command = Command::new(CommandKind::Message(Content::Text(text))).expect("a key can be made");
    let accepted = session.command(&command).await.expect("the session is free");
    let mut events = session.events(Follow { after: accepted.cursor, ..Follow::default() });
    let mut seen = Vec::new();
    loop {
        if let Update::Event(event) = events.next().await.expect("the stream goes on").expect("the stream goes on") {
            let is_last = event.ends_turn();
            seen.push(event);
            if is_last {
                return seen;
            }
        }
    }
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

fn input_tokens(events: &[Event]) -> i64 {
    let answer = events.iter().rfind(|event| event.kind == "message.assistant").expect("it was answered");
    answer.payload["usage"]["inputTokens"].as_i64().expect("usage is reported")
}

#[tokio::test]
async fn a_long_conversation_is_compacted_and_a_restart_reads_the_summary() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = Setup::new(home.path());
    let server = setup.start();
    drill::prepare(&server).await.expect("it can be prepared");
    server.client().open_session("s", &OpenSession::new(drill::AGENT, "me")).await.expect("it can be opened");
    let long = "x".repeat(3_000);
    for _ in 0..2 {
        turn(&server, json!([{"text": long}]).to_string()).await;
    }
    let before = input_tokens(&turn(&server, json!([{"text": "small", "window": 2_000}]).to_string()).await);
    let script: Value = json!([{"text": "not yet"}]);
    let events = turn(&server, script.to_string()).await;
    assert_eq!(kinds(&events), ["context.compacted", "message.assistant", "turn.completed"]);
    let compacted = &events[0].payload;
    assert_eq!(compacted["trigger"], "threshold");
    assert!(compacted["tokensBefore"].as_i64() > compacted["tokensAfter"].as_i64(), "{compacted}");
    assert_eq!(events[1].payload["text"], "not yet");
    let after = input_tokens(&events);
    assert!(after < before / 2, "{before} and {after}");
    assert!(server.stop().success());

    let server = setup.start();
    let next = input_tokens(&turn(&server, script.to_string()).await);
    assert!((after..after + 40).contains(&next), "{after} and {next}");
    assert!(server.stop().success());
}

#[tokio::test]
async fn an_overflow_is_compacted_and_the_call_made_again() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    server.client().open_session("s", &OpenSession::new(drill::AGENT, "me")).await.expect("it can be opened");
    turn(&server, json!([{"text": "x".repeat(1_250), "window": 2_000}]).to_string()).await;
    let script = json!([{"fail": "context_overflow"}, {"text": "it fits"}]).to_string();
    let events = turn(&server, script).await;
    assert_eq!(kinds(&events), ["model.failed", "context.compacted", "message.assistant", "turn.completed"]);
    assert_eq!(events[1].payload["trigger"], "overflow");
    assert_eq!(events[2].payload["text"], "it fits");
    assert!(server.stop().success());
}
