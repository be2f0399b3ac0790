//! Workspace tools that the application calls itself, through deaths of the server.

use std::path::Path;

use nylorun_client::{Client, Environment, Error, Event, Follow, InlineEnvironment, OpenSession, Update};
use serde_json::{Value, json};

use crate::drill::{self, Left};
use crate::raw::{Answer, try_send};
use crate::server::{Server, Setup};

/// Opens a session and has one command leave a mark in its workspace.
pub(crate) async fn scenario(server: &Server, id: &str) -> Result<(), Left> {
    drill::prepare(server).await?;
    open(&server.client(), id).await?;
    let answer = bash(&server.url, &server.key_text("applicationKey"), id, "echo one >> marks").ok_or(Left::Gone)?;
    assert_eq!(answer.status, 200, "{answer:?}");
    Ok(())
}

async fn open(client: &Client, id: &str) -> Result<(), Error> {
    let environment = Some(Environment::Inline(InlineEnvironment::default()));
    client.open_session(id, &OpenSession { environment, ..OpenSession::new(drill::AGENT, "drill") }).await?;
    Ok(())
}

fn bash(url: &str, key: &str, id: &str, command: &str) -> Option<Answer> {
    let bearer = format!("Bearer {key}");
    let headers = [("Nylorun-Protocol", "10"), ("Authorization", &bearer), ("Content-Type", "application/json")];
    let body = json!({ "command": command }).to_string();
    try_send(url, "POST", &format!("/v1/sessions/{id}/sandbox/bash"), &headers, Some(body.as_bytes()))
}

/// Follows the session until its record tells of so many calls.
pub(crate) async fn until_told(client: &Client, id: &str, calls: usize) -> Vec<Event> {
    let mut events = client.session(id).events(Follow::default());
    let mut told = Vec::new();
    while told.len() < calls {
        match events.next().await.expect("the stream goes on").expect("the stream goes on") {
            Update::Event(event) if event.kind == "sandbox.exec" => told.push(event),
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
        }
    }
    told
}

async fn until_the_workspace_is_made(client: &Client, id: &str) {
    let mut events = client.session(id).events(Follow::default());
    loop {
        match events.next().await.expect("the stream goes on").expect("the stream goes on") {
            Update::Event(event) if event.kind == "sandbox.state" && event.payload["state"] == "creating" => return,
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
        }
    }
}

async fn told(client: &Client, id: &str) -> Vec<Event> {
    let events = client.session(id).history(None, None).await.expect("it has a history").items;
    events.into_iter().filter(|event| event.kind == "sandbox.exec").collect()
}

fn start_again(setup: &Setup, mut server: Server) -> Server {
    server.kill();
    setup.start()
}

#[tokio::test]
async fn a_command_that_died_with_the_server_is_in_the_record_once() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = Setup::new(home.path());
    let server = setup.start();
    drill::prepare(&server).await.expect("it can be prepared");
    open(&server.client(), "s").await.expect("it can be opened");
    let (url, key) = (server.url.clone(), server.key_text("applicationKey"));
    let calling = std::thread::spawn(move || bash(&url, &key, "s", "echo one >> marks; sleep 30"));
    // The intent of the command is older than the workspace that it runs in.
    until_the_workspace_is_made(&server.client(), "s").await;
    let server = start_again(&setup, server);
    assert_eq!(calling.join().expect("it does not panic"), None, "nobody was told how it ended");
    let lost = until_told(&server.client(), "s", 1).await.remove(0);
    let Value::Object(mut payload) = lost.payload.clone() else { panic!("{}", lost.text) };
    assert!(payload.remove("durationMs").is_some_and(|took| took.is_u64()), "{}", lost.text);
    let expected = json!({"tool": "bash", "command": "echo one >> marks; sleep 30", "outcome": "uncertain",
        "code": "sandbox.uncertain"});
    assert_eq!((Value::Object(payload), lost.turn_id()), (expected, None));
    assert_eq!(server.tenant().status().await.expect("it answers").counts.uncertain_effects, 0, "nobody waits for it");

    let server = start_again(&setup, server);
    let key = server.key_text("applicationKey");
    let again = bash(&server.url, &key, "s", "echo two >> marks").expect("it answers");
    assert_eq!(again.status, 200, "{again:?}");
    let outcomes: Vec<Value> =
        told(&server.client(), "s").await.iter().map(|event| event.payload["outcome"].clone()).collect();
    assert_eq!(outcomes, ["uncertain", "completed"]);
    let marks = drill::marks(home.path(), "s");
    assert!(marks == ["one", "two"] || marks == ["two"], "nothing ran twice: {marks:?}");
}

/// What must hold when the server died at some step of the scenario, with `open` intents and `told` calls in its store.
pub(crate) fn check(home: &Path, id: &str, open: usize, told: usize) {
    let marks = if home.join("tenant/workspaces").exists() { drill::marks(home, id) } else { Vec::new() };
    assert!(open + told <= 1, "session {id}: {open} calls are open and {told} told, of one");
    assert!(marks.len() <= open + told, "session {id}: {marks:?} is in no record");
}
