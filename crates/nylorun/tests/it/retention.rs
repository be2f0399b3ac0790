//! Retention through the real binary: idle sessions go whole, old events go and the conversation goes on, and a turn
//! that waits keeps its session.

use nylorun_client::{Client, Command, Event, Follow, OpenSession, Retention, SessionStatus, Update};
use serde_json::{Value, json};

use crate::cli::{nylorun, ok};
use crate::database;
use crate::drill;
use crate::server::{Server, Setup};

async fn open(client: &Client, id: &str) {
    client.open_session(id, &OpenSession::new(drill::AGENT, "ann")).await.expect("it can be opened");
}

/// Sends a message and waits for an event of this kind.
async fn say(client: &Client, id: &str, text: &str, until: &str) -> Event {
    let session = client.session(id);
    let message = Command::text(text).expect("a key can be made");
    let accepted = session.command(&message).await.expect("it is free");
    let mut events = session.events(Follow { after: accepted.cursor, ..Follow::default() });
    loop {
        let update = events.next().await.expect("the stream goes on").expect("the stream goes on");
        if let Update::Event(event) = update
            && event.kind == until
        {
            return event;
        }
    }
}

async fn kinds(client: &Client, id: &str) -> Vec<String> {
    let items = client.session(id).history(None, None).await.expect("it has a history").items;
    items.into_iter().map(|event| event.kind).collect()
}

async fn keep(server: &Server, sessions: Option<&str>, events: Option<&str>) {
    let retention = Retention { sessions: sessions.map(str::to_owned), events: events.map(str::to_owned) };
    assert_eq!(server.tenant().set_retention(&retention).await.expect("it is valid"), retention);
}

fn tokens(answer: &Event) -> i64 {
    answer.payload["usage"]["inputTokens"].as_i64().expect("usage is reported")
}

#[tokio::test]
async fn old_events_go_and_the_conversation_goes_on() {
    for database in database::each("nylorun_retention_events").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let server = setup.start();
        drill::prepare(&server).await.expect("it can be prepared");
        let client = server.client();
        open(&client, "s").await;
        let first = say(&client, "s", "hello", "message.assistant").await;
        say(&client, "s", "hello", "turn.completed").await;
        keep(&server, None, Some("1ms")).await;
        while !kinds(&client, "s").await.is_empty() {
            tokio::task::yield_now().await;
        }
        keep(&server, None, None).await;
        assert!(server.stop().success());
        // The model is shown the whole conversation, also by a process that folds it from the record.
        let server = setup.start();
        let third = say(&server.client(), "s", "hello", "message.assistant").await;
        // Four messages and answers more, of five characters each.
        assert_eq!(tokens(&third) - tokens(&first), 5);
        assert!(server.stop().success());
    }
}

#[tokio::test]
async fn idle_sessions_go_and_a_paused_turn_keeps_its_own() {
    for database in database::each("nylorun_retention_sessions").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = database.setup(Setup::new(home.path())).start();
        drill::prepare(&server).await.expect("it can be prepared");
        let client = server.client();
        for id in ["idle", "paused"] {
            open(&client, id).await;
        }
        say(&client, "idle", "hello", "turn.completed").await;
        let asks: Value = json!([{"tools": [{"name": "deploy", "input": {}}]}]);
        say(&client, "paused", &asks.to_string(), "turn.paused").await;
        keep(&server, Some("1ms"), Some("1ms")).await;
        let mut events = client.session("idle").events(Follow::default());
        // The stream of a session that goes ends; the client asks again, and is told that it is gone.
        while let Some(Ok(_)) = events.next().await {}
        assert!(client.session("idle").view().await.is_err());
        let paused = client.session("paused").view().await.expect("it stays");
        assert_eq!(paused.status, SessionStatus::Paused);
        assert_eq!(kinds(&client, "paused").await, ["command.message", "message.assistant", "turn.paused"]);
        assert!(server.stop().success());
    }
}

#[test]
fn the_command_line_shows_and_sets_it() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    let run = |args: &[&str]| nylorun(home.path(), args);
    assert_eq!(ok(&run(&["retention", "show"])), "idle sessions  for ever\nevents         for ever\n");
    let set = ok(&run(&["retention", "set", "--sessions", "90d", "--events", "48h"]));
    assert_eq!(set, "idle sessions  90d\nevents         2d\n");
    assert_eq!(ok(&run(&["retention", "set", "--events", "off"])), "idle sessions  90d\nevents         for ever\n");
    let wrong = run(&["retention", "set", "--sessions", "soon"]);
    assert_eq!(wrong.status.code(), Some(2));
    let told = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(told.contains("'soon' for '--sessions") && told.contains("such as 90d; or off"), "{told}");
    assert_eq!(run(&["retention", "set"]).status.code(), Some(2));
    assert!(server.stop().success());
}
