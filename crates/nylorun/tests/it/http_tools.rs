//! HTTP tools through the real binary: the record, and what becomes of a call when its process is killed or stopped, or
//! its turn cancelled.

use nylorun_client::{Approval, Client, Command, CommandKind, Event, Follow, SessionStatus, Update};
use serde_json::{Value, json};

use crate::orders::{Orders, begin, order};
use crate::server::{Server, Setup};

/// A home, an endpoint, and a server that knows it.
struct Shop {
    home: tempfile::TempDir,
    orders: Orders,
}

impl Shop {
    async fn new() -> (Self, Server) {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = Setup::new(home.path()).start();
        let shop = Self { home, orders: Orders::open().await };
        shop.orders.prepare(&server).await.expect("it can be prepared");
        (shop, server)
    }

    fn start_again(&self) -> Server {
        Setup::new(self.home.path()).start()
    }
}

/// Waits for an event of this kind and gives the record up to it.
async fn until(client: &Client, id: &str, kind: &str) -> Vec<Event> {
    let mut stream = client.session(id).events(Follow::default());
    let mut events = Vec::new();
    loop {
        let update = stream.next().await.expect("the stream goes on").expect("the stream goes on");
        if let Update::Event(event) = update {
            let is_last = event.kind == kind;
            events.push(event);
            if is_last {
                return events;
            }
        }
    }
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

fn results(events: &[Event]) -> Vec<Value> {
    let completed = events.iter().filter(|event| event.kind == "tool.completed");
    completed.map(|event| json!([event.payload["toolName"], event.payload["output"], event.payload["error"]])).collect()
}

/// A turn with one order, and then an answer.
fn one_order() -> Value {
    json!([{"tools": [order(1)]}, {"text": "Ordered."}])
}

#[tokio::test]
async fn the_record_has_each_call_with_what_it_gave() {
    let (shop, server) = Shop::new().await;
    let script = json!([
        {"tools": [order(1)]},
        {"tools": [{"name": "order", "input": {"n": "two"}}]},
        {"text": "Ordered."},
    ]);
    begin(&server.client(), "s", &script).await.expect("it can begin");
    let events = until(&server.client(), "s", "turn.completed").await;
    let step = ["message.assistant", "tool.completed"];
    let expected = [&["command.message"], &step[..], &step, &["message.assistant", "turn.completed"]].concat();
    assert_eq!(kinds(&events), expected);

    let results = results(&events);
    assert_eq!(results[0], json!(["order", {"ordered": 1}, null]));
    assert_eq!(results[1][2]["code"], json!("tool.invalid-arguments"));
    let message = results[1][2]["message"].as_str().expect("it says why");
    assert!(message.contains("\nn: "), "{message}");
    assert_eq!(shop.orders.seen().values().map(|seen| seen.times).collect::<Vec<_>>(), [1]);
    assert!(server.stop().success());
}

#[tokio::test]
async fn a_call_is_sent_once_it_is_approved_and_never_when_it_is_denied() {
    let (shop, server) = Shop::new().await;
    let client = server.client();
    let pay = |n: i64| json!({"name": "pay", "input": {"n": n}});
    begin(&client, "s", &json!([{"tools": [pay(1), pay(2)]}, {"text": "Paid."}])).await.expect("it can begin");
    let paused = until(&client, "s", "turn.paused").await;
    assert_eq!(shop.orders.stub.count(), 0, "nothing is sent before somebody allows it");
    let asked = &paused.last().expect("it paused").payload["interactions"];
    for (question, approval) in [(0, Approval::Denied), (1, Approval::Approved)] {
        let id = asked[question]["interaction"]["id"].as_str().expect("a question has an id").to_owned();
        let kind = CommandKind::Approve { interaction_id: id, approval };
        let answer = Command::new(kind).expect("a key can be made");
        client.session("s").command(&answer).await.expect("it is asked");
    }
    let events = until(&client, "s", "turn.completed").await;
    let mut results = results(&events);
    results.sort_by_key(|result| result[1].is_null());
    assert_eq!(results[0], json!(["pay", {"ordered": 2}, null]));
    assert_eq!((&results[1][0], &results[1][2]["code"]), (&json!("pay"), &json!("denied")));
    assert_eq!(shop.orders.seen().values().map(|seen| seen.times).collect::<Vec<_>>(), [1]);
    assert!(server.stop().success());
}

#[tokio::test]
async fn a_call_that_was_killed_is_uncertain_and_never_sent_again_by_itself() {
    let (shop, mut server) = Shop::new().await;
    shop.orders.close();
    begin(&server.client(), "s", &one_order()).await.expect("it can begin");
    shop.orders.stub.wait_for(1).await;
    server.kill();
    shop.orders.open_again();

    let server = shop.start_again();
    let events = until(&server.client(), "s", "effect.uncertain").await;
    assert_eq!(kinds(&events), ["command.message", "message.assistant", "effect.uncertain"]);
    let view = server.client().session("s").view().await.expect("it is there");
    assert_eq!((view.status, view.uncertain_effects.len()), (SessionStatus::Uncertain, 1));
    let seen = shop.orders.seen();
    assert_eq!(seen.keys().collect::<Vec<_>>(), [&view.uncertain_effects[0].effect_id]);

    shop.orders.see_to_its_end(&server.client(), "s").await.expect("it can be settled");
    let events = until(&server.client(), "s", "turn.completed").await;
    assert_eq!(results(&events), [json!(["order", {"ordered": 1}, null])]);
    assert_eq!((shop.orders.stub.count(), shop.orders.seen()), (1, seen));
    assert!(server.stop().success());
}

#[tokio::test]
async fn a_stop_lets_a_call_finish() {
    let (shop, server) = Shop::new().await;
    shop.orders.close();
    let client = server.client();
    begin(&client, "s", &one_order()).await.expect("it can begin");
    shop.orders.stub.wait_for(1).await;
    let mut events = client.session("s").events(Follow::default());
    let stopping = tokio::task::spawn_blocking(move || server.stop());
    // Streams end when the stop has begun.
    while !matches!(events.next().await, Some(Ok(Update::Interrupted { .. }) | Err(_)) | None) {}
    shop.orders.open_again();
    assert!(stopping.await.expect("the stop does not panic").success());

    let server = shop.start_again();
    let events = until(&server.client(), "s", "turn.completed").await;
    let expected = ["command.message", "message.assistant", "tool.completed", "message.assistant", "turn.completed"];
    assert_eq!(kinds(&events), expected);
    assert_eq!((results(&events), shop.orders.stub.count()), (vec![json!(["order", {"ordered": 1}, null])], 1));
    assert!(server.stop().success());
}

#[tokio::test]
async fn a_cancel_ends_a_call_and_frees_the_session() {
    let (shop, server) = Shop::new().await;
    shop.orders.close();
    begin(&server.client(), "s", &one_order()).await.expect("it can begin");
    shop.orders.stub.wait_for(1).await;
    let session = server.client().session("s");
    session.command(&Command::cancel().expect("a key can be made")).await.expect("a cancel is always taken");
    let view = session.view().await.expect("it is there");
    assert_eq!((view.status, view.uncertain_effects.len()), (SessionStatus::Cancelled, 1));
    session.command(&Command::text("hello").expect("a key can be made")).await.expect("the session is free");
    let events = until(&server.client(), "s", "turn.completed").await;
    let expected = [
        "command.message",
        "message.assistant",
        "effect.uncertain",
        "turn.cancelled",
        "command.message",
        "message.assistant",
        "turn.completed",
    ];
    assert_eq!((kinds(&events), shop.orders.stub.count()), (expected.to_vec(), 1));
    // Nothing waits for the call, although its endpoint still holds it.
    assert!(server.stop().success());
}
