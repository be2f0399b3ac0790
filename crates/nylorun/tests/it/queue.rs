//! Messages sent while a turn runs, on the real binary: queued, steered, taken back, over a crash.

use nylorun_client::{Event, Follow, OpenSession, Update};
use serde_json::{Value, json};

use crate::drill;
use crate::raw::{Answer, send};
use crate::server::{Server, Setup};

fn call(server: &Server, method: &str, target: &str, body: Option<&Value>) -> Answer {
    let bearer = format!("Bearer {}", server.key_text("applicationKey"));
    let mut headers = vec![("Nylorun-Protocol", "10"), ("Authorization", bearer.as_str())];
    if body.is_some() {
        headers.push(("Content-Type", "application/json"));
    }
    let body = body.map(Value::to_string);
    send(&server.url, method, target, &headers, body.as_ref().map(String::as_bytes))
}

/// Sends a message with the key `key`; gives the answer's body.
fn say(server: &Server, key: &str, content: &str, when_busy: &str) -> Value {
    let body = json!({
        "requestId": key, "idempotencyKey": key, "type": "message", "content": content, "whenBusy": when_busy,
    });
    let answer = call(server, "POST", "/v1/sessions/s/commands", Some(&body));
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).expect("an answer is JSON")
}

async fn open(server: &Server) {
    drill::prepare(server).await.expect("it can be prepared");
    server.client().open_session("s", &OpenSession::new(drill::AGENT, "me")).await.expect("it can be opened");
}

/// A turn whose first model call takes long enough to be overtaken, and whose second one follows a refused tool.
fn slow(delay_ms: u64) -> String {
    json!([{"delayMs": delay_ms, "tools": [{"name": "nothing"}]}, {"text": "first is done"}]).to_string()
}

/// The session's events up to and with the one that ends its `turns`th turn.
async fn after_turns(server: &Server, turns: usize) -> Vec<Event> {
    let mut events = server.client().session("s").events(Follow::default());
    let (mut seen, mut ended) = (Vec::new(), 0);
    while ended < turns {
        if let Update::Event(event) = events.next().await.expect("the stream goes on").expect("the stream goes on") {
            ended += usize::from(event.ends_turn());
            seen.push(event);
        }
    }
    seen
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

fn queue(server: &Server) -> Value {
    let view = call(server, "GET", "/v1/sessions/s", None);
    let view: Value = serde_json::from_str(&view.body).expect("a view is JSON");
    view["queue"].clone()
}

#[tokio::test]
async fn a_queued_message_begins_the_next_turn_even_if_the_server_dies_meanwhile() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = Setup::new(home.path());
    let mut server = setup.start();
    open(&server).await;
    say(&server, "one", &slow(60_000), "reject");
    let accepted = say(&server, "two", "second", "queue");
    assert_eq!(say(&server, "two", "second", "queue"), accepted, "the key was accepted");
    let shown = queue(&server);
    assert_eq!(shown[0]["id"], accepted["turnId"], "the turn that it will begin");
    assert_eq!((&shown[0]["mode"], &shown[0]["content"]), (&json!("queue"), &json!("second")));
    let busy = json!({"requestId": "r", "idempotencyKey": "three", "type": "message", "content": "third"});
    assert_eq!(call(&server, "POST", "/v1/sessions/s/commands", Some(&busy)).status, 409);

    server.kill();
    let server = setup.start();
    assert_eq!(queue(&server), shown);
    // The first turn still takes a minute, and cancelling it would drop what waits: the message is taken back.
    let target = format!("/v1/sessions/s/queue/{}", accepted["turnId"].as_str().expect("an id"));
    let removed = call(&server, "DELETE", &target, None);
    assert_eq!((removed.status, queue(&server)), (200, Value::Null), "{}", removed.body);
    assert_eq!(call(&server, "DELETE", &target, None).status, 404);
    assert!(server.stop().success());
}

#[tokio::test]
async fn queued_messages_are_taken_in_their_order() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    open(&server).await;
    say(&server, "one", &slow(300), "reject");
    let second = say(&server, "two", "second", "queue");
    let third = say(&server, "three", "third", "queue");
    let events = after_turns(&server, 3).await;
    let turns: Vec<_> = events.iter().filter(|event| event.kind == "command.message").collect();
    assert_eq!(turns.len(), 3);
    for (event, accepted, content) in [(turns[1], &second, "second"), (turns[2], &third, "third")] {
        assert_eq!(json!(event.turn_id()), accepted["turnId"]);
        assert_eq!(event.payload["content"], content);
    }
    let answers = events.iter().filter(|event| event.kind == "message.assistant");
    let texts: Vec<_> = answers.map(|event| event.payload["text"].clone()).collect();
    assert_eq!(texts[1..], [json!("first is done"), json!("second"), json!("third")]);
    assert_eq!(queue(&server), Value::Null);
    assert!(server.stop().success());
}

#[tokio::test]
async fn a_message_that_steers_is_read_at_the_next_step() {
    steers("in-process").await;
}

#[tokio::test]
async fn a_message_that_steers_over_frames_is_read_at_the_next_step() {
    steers("json").await;
}

async fn steers(harness: &str) {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).with("NYLORUN_HARNESS", harness).start();
    open(&server).await;
    let first = say(&server, "one", &slow(2_000), "reject");
    let steer = say(&server, "two", "rather this", "steer");
    assert_eq!(steer["turnId"], first["turnId"]);
    let events = after_turns(&server, 1).await;
    // Whether the first model call had begun when it came is a matter of moments; it is read before the one after that.
    let at = events.iter().position(|event| event.kind == "message.steered").expect("it was read");
    assert_eq!(events[at].payload["content"], "rather this");
    assert_eq!(kinds(&events[at..]), ["message.steered", "message.assistant", "turn.completed"]);
    // The fixture model echoes the last message.
    assert_eq!(events[at + 1].payload["text"], "rather this");
    assert!(server.stop().success());
}

#[tokio::test]
async fn a_message_that_came_too_late_to_steer_keeps_its_place() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    open(&server).await;
    // Its only model call has begun when it is running: nothing of it reads any more.
    say(&server, "one", &json!([{"delayMs": 2_000, "text": "first is done"}]).to_string(), "reject");
    server.until_running("s").await;
    say(&server, "two", &slow(0), "queue");
    say(&server, "three", "third", "steer");
    let events = after_turns(&server, 3).await;
    let said: Vec<_> = events.iter().filter(|event| event.kind == "command.message").collect();
    assert_eq!((said.len(), &said[2].payload["content"]), (3, &json!("third")));
    assert!(!kinds(&events).contains(&"message.steered"), "{:?}", kinds(&events));
    let texts =
        events.iter().filter(|event| event.kind == "message.assistant").map(|event| event.payload["text"].clone());
    assert_eq!(texts.collect::<Vec<_>>()[2..], [json!("first is done"), json!("third")]);
    assert!(server.stop().success());
}

#[tokio::test]
async fn a_cancel_drops_what_waits() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    open(&server).await;
    say(&server, "one", &slow(60_000), "reject");
    // A message that steers is read by a model call that has not begun.
    server.until_running("s").await;
    say(&server, "two", "second", "queue");
    say(&server, "three", "third", "steer");
    let cancel = json!({"requestId": "r", "idempotencyKey": "c", "type": "cancel"});
    assert_eq!(call(&server, "POST", "/v1/sessions/s/commands", Some(&cancel)).status, 200);
    let events = server.client().session("s").history(None, None).await.expect("it has a history").items;
    let reasons: Vec<_> = events.iter().filter(|event| event.kind == "message.removed").collect();
    assert_eq!(reasons.len(), 2);
    assert!(reasons.iter().all(|event| event.payload["reason"] == "cancelled"));
    let view = server.client().session("s").view().await.expect("it is there");
    assert_eq!((view.status.as_str(), view.active_turn_id, queue(&server)), ("cancelled", None, Value::Null));
    assert!(server.stop().success());
}
