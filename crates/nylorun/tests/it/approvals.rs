//! Turns that wait for a person, on the real binary: over restarts, with several questions, and with yields in between.

use nylorun_client::{
    Approval, Client, Command, CommandKind, Content, Error, Event, Follow, OpenSession, SessionStatus, SessionView,
    Update,
};
use serde_json::{Value, json};

use crate::drill;
use crate::server::{Server, Setup};

/// Saves an agent with `deploy`, whose calls a person approves, and opens a session.
async fn open(server: &Server, id: &str) {
    drill::prepare(server).await.expect("it can be prepared");
    let deploy = json!({
        "name": "deploy",
        "inputSchema": {"type": "object"},
        "http": {"url": "http://127.0.0.1:9/deploy"},
        "approval": "always",
    });
    let files =
        json!({"name": "files", "type": "streamable-http", "url": "http://127.0.0.1:9/mcp", "approval": "always"});
    let manifest = json!({
        "manifestSchemaVersion": 6,
        "id": "careful",
        "capabilities": [{"id": "c", "type": "agent", "tools": [deploy], "mcpServers": {"files": files}}],
    });
    server.client().save_agent("careful", &manifest, "1").await.expect("the manifest is valid");
    server.client().open_session(id, &OpenSession::new("careful", "me")).await.expect("it can be opened");
}

fn asks(tools: &[&str]) -> String {
    let calls: Vec<Value> = tools.iter().map(|name| json!({"name": name, "input": {"n": 1}})).collect();
    json!([{"tools": calls}, {"text": "last"}]).to_string()
}

async fn say(client: &Client, id: &str, kind: CommandKind) -> Result<nylorun_client::Accepted, Error> {
    client.session(id).command(&Command::new(kind).expect("a key can be made")).await
}

async fn message(client: &Client, id: &str, text: String) {
    say(client, id, CommandKind::Message(Content::Text(text))).await.expect("the session is free");
}

async fn approve(client: &Client, id: &str, interaction: &str, approval: Approval) -> Result<(), Error> {
    let kind = CommandKind::Approve { interaction_id: interaction.to_owned(), approval };
    say(client, id, kind).await.map(|_| ())
}

/// Follows the session until an event is wanted.
async fn until(client: &Client, id: &str, wanted: impl Fn(&Event) -> bool) -> Event {
    let mut events = client.session(id).events(Follow::default());
    loop {
        if let Update::Event(event) = events.next().await.expect("the stream goes on").expect("the stream goes on")
            && wanted(&event)
        {
            return event;
        }
    }
}

async fn view(client: &Client, id: &str) -> SessionView {
    client.session(id).view().await.expect("it is there")
}

fn questions(waits: &Value) -> Vec<String> {
    let waits = waits.as_array().expect("something is asked");
    waits.iter().map(|wait| wait["interaction"]["id"].as_str().expect("a question has an id").to_owned()).collect()
}

async fn kinds(client: &Client, id: &str) -> Vec<String> {
    let items = client.session(id).history(None, None).await.expect("it has a history").items;
    items.into_iter().map(|event| event.kind).collect()
}

#[tokio::test]
async fn a_turn_waits_for_its_approval_over_a_restart() {
    waits_over_a_restart("in-process").await;
}

#[tokio::test]
async fn a_turn_over_frames_waits_for_its_approval_over_a_restart() {
    waits_over_a_restart("json").await;
}

async fn waits_over_a_restart(harness: &str) {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = Setup::new(home.path()).with("NYLORUN_HARNESS", harness);
    let mut server = setup.start();
    open(&server, "s").await;
    message(&server.client(), "s", asks(&["deploy"])).await;
    let paused = until(&server.client(), "s", |event| event.kind == "turn.paused").await;
    let asked = &paused.payload["interactions"][0];
    assert_eq!((asked["toolName"].clone(), asked["status"].clone()), (json!("deploy"), json!("pending")));
    assert_eq!(asked["interaction"]["kind"], "approval");
    let before = view(&server.client(), "s").await;
    assert_eq!((before.status.clone(), before.waits.clone()), (SessionStatus::Paused, Some(json!([asked]))));

    server.kill();
    let server = setup.start();
    let client = server.client();
    assert_eq!(view(&client, "s").await, before);
    let id = &questions(&before.waits.expect("it is asked"))[0];
    let refused = approve(&client, "s", "someone:0:interaction:else", Approval::Approved).await;
    let Err(Error::Refused(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!((refused.status, refused.code.as_str()), (409, "request_rejected"));
    assert!(refused.message.contains("unknown interaction"), "{}", refused.message);
    let kind = CommandKind::Approve { interaction_id: id.clone(), approval: Approval::Approved };
    let command = Command::new(kind).expect("a key can be made");
    let accepted = client.session("s").command(&command).await.expect("it is open");
    assert_eq!(client.session("s").command(&command).await.expect("a repetition"), accepted);
    until(&client, "s", |event| event.kind == "turn.completed").await;
    let expected = [
        "command.message",
        "message.assistant",
        "turn.paused",
        "command.approve",
        "tool.completed",
        "message.assistant",
        "turn.completed",
    ];
    assert_eq!(kinds(&client, "s").await, expected);
    let after = view(&client, "s").await;
    assert_eq!((after.status, after.waits), (SessionStatus::Completed, None));
    let late = approve(&client, "s", id, Approval::Approved).await;
    assert!(matches!(late, Err(Error::Refused(refused)) if refused.message.contains("not awaiting a response")));
    assert!(server.stop().success());
}

#[tokio::test]
async fn several_questions_are_answered_in_any_order_without_waiting() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    open(&server, "s").await;
    let client = server.client();
    message(&client, "s", asks(&["deploy", "nothing", "files__put"])).await;
    let paused = until(&client, "s", |event| event.kind == "turn.paused").await;
    let ids = questions(&paused.payload["interactions"]);
    assert_eq!(ids.len(), 2);
    for (id, approval) in [(&ids[1], Approval::Denied), (&ids[0], Approval::Approved)] {
        approve(&client, "s", id, approval).await.expect("it is open, whatever the turn does meanwhile");
    }
    until(&client, "s", |event| event.kind == "turn.completed").await;
    let items = client.session("s").history(None, None).await.expect("it has a history").items;
    let completed = items.iter().filter(|event| event.kind == "tool.completed");
    let mut codes: Vec<_> =
        completed.map(|event| (event.payload["toolName"].clone(), event.payload["error"]["code"].clone())).collect();
    codes.sort_by_key(|(tool, _)| tool.to_string());
    let expected = [("deploy", "http.unreachable"), ("files__put", "denied"), ("nothing", "tool.unknown")]
        .map(|(tool, code)| (json!(tool), json!(code)));
    assert_eq!(codes, expected);
    assert!(server.stop().success());
}

#[tokio::test]
async fn a_cancelled_pause_leaves_no_trace_in_the_models_history() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    open(&server, "s").await;
    let client = server.client();
    message(&client, "s", "hello".to_owned()).await;
    let first = until(&client, "s", |event| event.kind == "message.assistant").await;
    until(&client, "s", |event| event.kind == "turn.completed").await;
    message(&client, "s", asks(&["deploy"])).await;
    until(&client, "s", |event| event.kind == "turn.paused").await;
    say(&client, "s", CommandKind::Cancel { reason: None }).await.expect("it can be cancelled");
    let cancelled = view(&client, "s").await;
    assert_eq!((cancelled.status, cancelled.waits), (SessionStatus::Cancelled, None));
    message(&client, "s", "hello".to_owned()).await;
    let turn = view(&client, "s").await;
    drop(turn);
    let items = loop {
        let items = client.session("s").history(None, None).await.expect("it has a history").items;
        if items.last().is_some_and(|event| event.kind == "turn.completed") && items.len() > 6 {
            break items;
        }
        until(&client, "s", |event| event.kind == "turn.completed").await;
    };
    let last = items.iter().rfind(|event| event.kind == "message.assistant").expect("it was answered");
    // The same message after the same history, and one turn of it: as many tokens as two messages and one answer have.
    let tokens = |event: &Event| event.payload["usage"]["inputTokens"].as_i64().expect("usage is reported");
    assert!(tokens(last) - tokens(&first) <= 6, "{} and {}", tokens(&first), tokens(last));
    assert!(server.stop().success());
}

#[tokio::test]
async fn a_turn_that_yields_at_every_step_says_the_same_as_one_that_does_not() {
    let mut records = Vec::new();
    for steps in ["50", "1"] {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = Setup::new(home.path()).with("NYLORUN_YIELD_STEPS", steps).start();
        drill::prepare(&server).await.expect("it can be prepared");
        drill::begin(&server.client(), "s", &drill::script(0)).await.expect("it can begin");
        drill::see_to_its_end(&server.client(), home.path(), "s").await.expect("nothing disturbs it");
        // The next turn reads what the segments left.
        message(&server.client(), "s", "again".to_owned()).await;
        let items = loop {
            let items = server.client().session("s").history(None, None).await.expect("it has a history").items;
            if items.iter().filter(|event| event.kind == "turn.completed").count() == 3 {
                break items;
            }
            tokio::task::yield_now().await;
        };
        records.push(drill::Record::of(&items));
        assert!(server.stop().success());
    }
    assert_eq!(records[0], records[1]);
}
