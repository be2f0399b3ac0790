//! Sessions that share a sandbox, through the real binary: one turn at a time has it, what dies frees it, and it goes
//! with the last of them.

use std::path::Path;
use std::time::Duration;

use nylorun_client::{
    ActiveWork, Client, Command, Environment, Error, Event, Follow, InlineEnvironment, OpenSession, Refusal,
    ResetScope, Retention, SessionStatus, SessionView, Settle, Settlement, Update,
};
use serde_json::{Value, json};

use crate::database;
use crate::direct_calls::until_told;
use crate::drill;
use crate::raw::try_send;
use crate::server::{Server, Setup};

const HANG: &str = "echo > started; sleep 600";

/// Opens `owner` with a sandbox, `sharer` with the same, and `third` with that of `sharer`.
async fn open_three(client: &Client) -> [SessionView; 3] {
    let own = Environment::Inline(InlineEnvironment::default());
    [
        open(client, "owner", own).await,
        open(client, "sharer", Environment::OfSession("owner".into())).await,
        open(client, "third", Environment::OfSession("sharer".into())).await,
    ]
}

async fn open(client: &Client, id: &str, environment: Environment) -> SessionView {
    let open = OpenSession { environment: Some(environment), ..OpenSession::new(drill::AGENT, "ann") };
    client.open_session(id, &open).await.expect("it can be opened")
}

fn script(command: &str) -> String {
    json!([{"tools": [{"name": "bash", "input": {"command": command}}]}, {"text": "Done."}]).to_string()
}

async fn send(client: &Client, id: &str, text: impl Into<String>) -> Result<(), Error> {
    client.session(id).command(&Command::text(text).expect("a key can be made")).await.map(drop)
}

async fn begin(client: &Client, id: &str, text: impl Into<String>) {
    send(client, id, text).await.expect("nobody has the sandbox");
}

/// Follows the session up to its first event of this kind.
async fn until(client: &Client, id: &str, kind: &str) -> Vec<Event> {
    let mut events = client.session(id).events(Follow::default());
    let mut seen = Vec::new();
    loop {
        if let Update::Event(event) = events.next().await.expect("the stream goes on").expect("the stream goes on") {
            seen.push(event);
            if seen.last().is_some_and(|event| event.kind == kind) {
                return seen;
            }
        }
    }
}

/// Runs a command by a turn of a session without turns so far; gives what it printed.
async fn bash(client: &Client, id: &str, command: &str) -> Value {
    begin(client, id, script(command)).await;
    let events = until(client, id, "turn.completed").await;
    events.iter().find(|event| event.kind == "tool.completed").expect("it ran").payload["output"]["stdout"].clone()
}

/// The refusal of a message while another session has the sandbox.
async fn refused(client: &Client, id: &str) -> Refusal {
    let error = send(client, id, "hi").await.expect_err("the sandbox is held");
    error.refusal().expect("it is a refusal").clone()
}

async fn history(client: &Client, id: &str) -> Vec<Event> {
    client.session(id).history(None, None).await.expect("it has a history").items
}

/// What a call of `bash` by the application gives.
fn tool(server: &Server, id: &str, command: &str) -> (u16, Value) {
    try_tool(&server.url, &server.key_text("applicationKey"), id, command).expect("it answers")
}

/// The same; `None` when the server went away.
fn try_tool(url: &str, key: &str, id: &str, command: &str) -> Option<(u16, Value)> {
    let bearer = format!("Bearer {key}");
    let headers = [("Nylorun-Protocol", "10"), ("Authorization", &bearer), ("Content-Type", "application/json")];
    let body = json!({ "command": command }).to_string();
    let target = format!("/v1/sessions/{id}/sandbox/bash");
    let answer = try_send(url, "POST", &target, &headers, Some(body.as_bytes()))?;
    Some((answer.status, serde_json::from_str(&answer.body).expect("it answers JSON")))
}

async fn until_it_hangs(home: &Path) {
    while !home.join("tenant/workspaces").exists() || !drill::workspace(home, "owner").join("started").exists() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn files_are_shared_and_one_turn_at_a_time_has_them() {
    for database in database::each("nylorun_sharing").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = database.setup(Setup::new(home.path())).start();
        drill::prepare(&server).await.expect("it can be prepared");
        let client = server.client();
        let views = open_three(&client).await;
        let owners = views.map(|view| view.other["sandboxOwnerId"].clone());
        assert_eq!(owners, [Value::Null, json!("owner"), json!("owner")]);
        assert_eq!(bash(&client, "sharer", "echo mine > file").await, "");
        assert_eq!(bash(&client, "third", "cat file").await, "mine\n");

        begin(&client, "owner", script(HANG)).await;
        until_it_hangs(home.path()).await;
        let refusal = refused(&client, "sharer").await;
        assert_eq!((refusal.status, refusal.code.as_str()), (409, "sandbox_busy"));
        assert!(refusal.message.contains("session owner"), "{}", refusal.message);
        assert_eq!(refusal.details, Some(json!({"retryAfterSeconds": 5})));
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(5)));
        assert_eq!(refused(&client, "third").await.code, "sandbox_busy");
        let (status, answer) = tool(&server, "third", "cat file");
        assert_eq!((status, &answer["code"]), (409, &json!("sandbox_busy")));
        let (status, answer) = tool(&server, "owner", "cat file");
        assert_eq!((status, &answer["code"]), (409, &json!("request_rejected")), "its own turn");

        client.session("owner").command(&Command::cancel().expect("a key can be made")).await.expect("it runs");
        begin(&client, "third", json!([{"delayMs": 600_000}]).to_string()).await;
        assert!(refused(&client, "owner").await.message.contains("session third"));
        client.session("third").command(&Command::cancel().expect("a key can be made")).await.expect("it runs");
        let (status, answer) = tool(&server, "third", "cat file");
        assert_eq!((status, &answer["output"]["stdout"]), (200, &json!("mine\n")));
        assert!(server.stop().success());
    }
}

#[tokio::test]
async fn what_happens_in_the_sandbox_is_in_the_record_of_its_owner() {
    for harness in ["in-process", "json"] {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = Setup::new(home.path()).with("NYLORUN_HARNESS", harness).start();
        drill::prepare(&server).await.expect("it can be prepared");
        let client = server.client();
        open_three(&client).await;
        bash(&client, "sharer", "echo one").await;
        assert_eq!(tool(&server, "third", "echo two").0, 200);
        let told = history(&client, "owner").await;
        let told: Vec<_> = told
            .iter()
            .map(|event| (event.kind.as_str(), event.turn_id(), &event.payload["state"], &event.payload["command"]))
            .collect();
        let null = &Value::Null;
        assert_eq!(
            told,
            [
                ("sandbox.state", None, &json!("creating"), null),
                ("sandbox.state", None, &json!("running"), null),
                ("sandbox.exec", None, null, &json!("echo one")),
                ("sandbox.exec", None, null, &json!("echo two")),
            ],
            "{harness}"
        );
        let kinds = history(&client, "sharer").await.into_iter().map(|event| event.kind).collect::<Vec<_>>();
        assert_eq!(
            kinds,
            ["command.message", "message.assistant", "tool.completed", "message.assistant", "turn.completed"]
        );
        assert_eq!(history(&client, "third").await.len(), 0);
        assert!(server.stop().success());
    }
}

#[tokio::test]
async fn a_turn_that_dies_with_the_server_frees_the_sandbox_when_it_has_ended() {
    for database in database::each("nylorun_sharing_kill").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let mut server = setup.start();
        drill::prepare(&server).await.expect("it can be prepared");
        open_three(&server.client()).await;
        // In a model call: it runs again, and the turn ends by itself.
        begin(&server.client(), "sharer", json!([{"delayMs": 300, "text": "end"}]).to_string()).await;
        server.kill();
        let mut server = setup.start();
        let client = server.client();
        until(&client, "sharer", "turn.completed").await;
        // In a command: nobody knows what it did until somebody says so.
        begin(&client, "third", script(HANG)).await;
        until_it_hangs(home.path()).await;
        server.kill();
        let server = setup.start();
        let client = server.client();
        until(&client, "third", "effect.uncertain").await;
        assert!(refused(&client, "owner").await.message.contains("session third"));
        let effects = client.session("third").view().await.expect("it is there").uncertain_effects;
        let settlement = Settlement::Error("it was killed".into());
        let settle = Settle::new(&effects[0].effect_id, settlement).expect("a key can be made");
        client.session("third").settle(&settle).await.expect("it is uncertain");
        until(&client, "third", "turn.completed").await;
        assert_eq!(bash(&client, "owner", "ls").await, "started\n");
        assert!(server.stop().success());
    }
}

#[tokio::test]
async fn a_command_of_the_application_that_died_with_the_server_is_in_the_record_of_the_owner_once() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = Setup::new(home.path());
    let mut server = setup.start();
    drill::prepare(&server).await.expect("it can be prepared");
    open_three(&server.client()).await;
    let (url, key) = (server.url.clone(), server.key_text("applicationKey"));
    let calling = std::thread::spawn(move || try_tool(&url, &key, "sharer", HANG));
    until_it_hangs(home.path()).await;
    server.kill();
    assert_eq!(calling.join().expect("it does not panic"), None, "nobody was told how it ended");
    let server = setup.start();
    let lost = until_told(&server.client(), "owner", 1).await.remove(0);
    assert_eq!((&lost.payload["outcome"], &lost.payload["command"]), (&json!("uncertain"), &json!(HANG)));
    assert_eq!(history(&server.client(), "sharer").await.len(), 0);
    assert_eq!(bash(&server.client(), "third", "ls").await, "started\n");
    assert!(server.stop().success());
}

/// Lets retention begin anew, as a minute would, until the session is gone.
async fn until_expired(server: &Server, id: &str) {
    let keep = Retention { sessions: Some("1ms".into()), events: None };
    server.tenant().set_retention(&keep).await.expect("it is valid");
    while server.client().session(id).view().await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_sandbox_goes_with_the_last_session_that_uses_it() {
    for database in database::each("nylorun_sharing_end").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = database.setup(Setup::new(home.path())).start();
        drill::prepare(&server).await.expect("it can be prepared");
        let client = server.client();
        open_three(&client).await;
        bash(&client, "owner", "echo mine > file").await;
        let asks = json!([{"tools": [{"name": "deploy", "input": {}}]}]).to_string();
        begin(&client, "sharer", asks).await;
        until(&client, "sharer", "turn.paused").await;
        // One that only shares goes; its owner stays for the one whose turn waits.
        until_expired(&server, "third").await;
        let view = client.session("sharer").view().await.expect("its turn is active");
        assert_eq!(view.status, SessionStatus::Paused);
        client.session("owner").view().await.expect("its sandbox is used");
        assert!(drill::workspace(home.path(), "owner").join("file").exists());
        client.session("sharer").command(&Command::cancel().expect("a key can be made")).await.expect("it waits");
        until_expired(&server, "sharer").await;
        until_expired(&server, "owner").await;
        while drill::workspace(home.path(), "owner").exists() {
            tokio::task::yield_now().await;
        }

        server.tenant().set_retention(&Retention { sessions: None, events: None }).await.expect("it is valid");
        open_three(&client).await;
        assert_eq!(bash(&client, "third", "echo > other; ls").await, "other\n");
        server.tenant().reset(ResetScope::Sessions, ActiveWork::Drain).await.expect("nothing runs");
        for id in ["owner", "sharer", "third"] {
            client.session(id).view().await.expect_err("it is gone");
        }
        assert!(!drill::workspace(home.path(), "owner").exists());
        assert!(server.stop().success());
    }
}
