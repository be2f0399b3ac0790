//! Following a session through whatever happens to its connection.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use nylorun_client::{Delta, Deltas, Error, Events, Follow, Reconnect, Update};
use serde_json::{Value, json};

use crate::stub::{Seen, Stub, answer, event_stream, health};

const EVENTS: usize = 40;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

fn cursor(seq: usize) -> String {
    format!("c{seq}")
}

fn event(seq: usize) -> Value {
    json!({"schema": "nylorun.event/2", "cursor": cursor(seq), "seq": seq, "turnId": "t1",
        "time": "2026-01-01T00:00:00.000Z",
        "type": "tool.completed", "payload": {"text": "é😀 ".repeat(seq % 7), "n": seq}})
}

fn delta(index: u64) -> Delta {
    Delta {
        session_id: "s".into(),
        turn_id: "t1".into(),
        epoch: 1,
        invocation_id: "i".into(),
        attempt: 1,
        index,
        text: "hé".into(),
        agent: None,
    }
}

fn frame(seq: usize) -> String {
    format!("id: {}\nevent: tool.completed\ndata: {}\n\n", cursor(seq), event(seq))
}

/// All frames after the cursor that the request names, with comments and deltas between them.
fn frames_after(request: &Seen) -> String {
    let next = request.header("last-event-id").map_or(0, |id| id[1..].parse::<usize>().unwrap() + 1);
    let noise = |seq: usize| match seq % 5 {
        0 => ": keepalive\n\n".to_owned(),
        1 => format!("event: message.delta\ndata: {}\n\n", serde_json::to_string(&delta(0)).unwrap()),
        _ => String::new(),
    };
    (next..EVENTS).map(|seq| noise(seq) + &frame(seq)).collect()
}

/// The bytes in pieces of any size, cut off after `keep` of them.
fn in_pieces(bytes: &[u8], keep: usize, dice: &mut Dice) -> Vec<Result<Bytes, std::io::Error>> {
    let mut pieces = Vec::new();
    let mut rest = &bytes[..keep];
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(1 + dice.below(rest.len().min(700)));
        pieces.push(Ok(Bytes::copy_from_slice(piece)));
        rest = after;
    }
    if keep < bytes.len() {
        pieces.push(Err(std::io::Error::other("cut")));
    }
    pieces
}

fn quickly() -> Follow {
    let reconnect =
        Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(1), ..Reconnect::default() };
    Follow { after: None, deltas: Deltas::With, reconnect }
}

/// The payload numbers of the next `count` events, and how often the connection was lost meanwhile.
async fn collect(events: &mut Events, count: usize) -> (Vec<u64>, usize) {
    let (mut numbers, mut interruptions) = (Vec::new(), 0);
    while numbers.len() < count {
        match events.next().await.expect("the stream goes on").expect("no error") {
            Update::Event(event) => numbers.push(event.payload["n"].as_u64().unwrap()),
            Update::Delta(received) => assert_eq!(received, delta(0)),
            Update::Interrupted { .. } => interruptions += 1,
        }
    }
    (numbers, interruptions)
}

#[tokio::test]
async fn each_event_comes_once_and_in_order_wherever_the_connection_is_cut() {
    for seed in 0..60 {
        let dice = Arc::new(Mutex::new(Dice(seed)));
        let stub = Stub::start(move |request: Seen| {
            let dice = Arc::clone(&dice);
            async move {
                if request.line.starts_with("GET /health") {
                    return answer(200, &health());
                }
                let bytes = frames_after(&request).into_bytes();
                let mut dice = dice.lock().unwrap();
                let keep = if dice.below(4) == 0 { bytes.len() } else { dice.below(bytes.len() + 1) };
                let open = stream::pending();
                event_stream(stream::iter(in_pieces(&bytes, keep, &mut dice)).chain(open))
            }
        })
        .await;
        let mut events = stub.client().session("s").events(quickly());
        let (numbers, interruptions) = collect(&mut events, EVENTS).await;
        assert_eq!(numbers, (0..EVENTS as u64).collect::<Vec<_>>(), "seed {seed}");
        let connections = stub.lines().iter().filter(|line| line.ends_with("/events?deltas=true")).count();
        assert_eq!(connections, interruptions + 1, "seed {seed}");
        assert_eq!(events.cursor(), Some("c39"));
    }
}

#[tokio::test]
async fn a_future_that_is_dropped_loses_nothing() {
    let stub = Stub::start(|request: Seen| async move {
        if request.line.starts_with("GET /health") {
            return answer(200, &health());
        }
        let pieces = in_pieces(frames_after(&request).as_bytes(), frames_after(&request).len(), &mut Dice(7));
        let slowly = stream::iter(pieces).then(|piece| async {
            tokio::task::yield_now().await;
            piece
        });
        event_stream(slowly.chain(stream::pending()))
    })
    .await;
    let mut events = stub.client().session("s").events(quickly());
    let mut numbers = Vec::new();
    while numbers.len() < EVENTS {
        // Polled once and dropped, again and again.
        tokio::select! {
            biased;
            update = events.next() => match update.unwrap().unwrap() {
                Update::Event(event) => numbers.push(event.seq().unwrap()),
                Update::Delta(_) => {}
                Update::Interrupted { cause, .. } => panic!("{cause}"),
            },
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(numbers, (0..EVENTS as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_server_that_is_away_for_a_while_is_waited_for() {
    let tries = Arc::new(AtomicU32::new(0));
    let stub = Stub::start(move |request: Seen| {
        let tries = Arc::clone(&tries);
        async move {
            if request.line.starts_with("GET /health") {
                return answer(200, &health());
            }
            match tries.fetch_add(1, Ordering::SeqCst) {
                0 => answer(503, &json!({"code": "request_rejected", "message": "starting"})),
                1 => answer(429, &json!({"code": "request_rejected", "message": "slower"})),
                2 => closed("token_expired"),
                _ => event_stream(stream::iter([Ok(Bytes::from(frame(0)))]).chain(stream::pending())),
            }
        }
    })
    .await;
    let mut events = stub.client().session("s").events(quickly());
    assert_eq!(collect(&mut events, 1).await, (vec![0], 3));
}

fn closed(reason: &str) -> Response {
    let text = format!("event: nylorun.closed\ndata: {}\n\n", json!({ "reason": reason }));
    event_stream(stream::iter([Ok(Bytes::from(text))]).chain(stream::pending()))
}

#[tokio::test]
async fn after_the_first_close_it_connects_at_once_and_then_with_waits() {
    let stub = Stub::start(|request: Seen| async move {
        if request.line.starts_with("GET /health") { answer(200, &health()) } else { closed("token_expired") }
    })
    .await;
    let mut events = stub.client().session("s").events(quickly());
    let mut waits = Vec::new();
    for _ in 0..3 {
        match events.next().await.unwrap().unwrap() {
            Update::Interrupted { wait, .. } => waits.push(wait),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(waits, [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(1)]);
}

#[tokio::test]
async fn a_refusal_ends_it() {
    let stub = Stub::start(|request: Seen| async move {
        match request.line.as_str() {
            "GET /health" => answer(200, &health()),
            _ => answer(400, &json!({"status": "rejected", "code": "request_rejected", "message": "Invalid cursor"})),
        }
    })
    .await;
    let follow = Follow { after: Some("bad".into()), ..Follow::default() };
    let mut events = stub.client().session("a/b").events(follow);
    match events.next().await {
        Some(Err(Error::Refused(refusal))) => assert_eq!(refusal.message, "Invalid cursor"),
        other => panic!("{other:?}"),
    }
    assert!(events.next().await.is_none());
    let request = &stub.seen()[1];
    assert_eq!(
        (request.line.as_str(), request.header("last-event-id")),
        ("GET /v1/sessions/a%2Fb/events", Some("bad"))
    );
}

#[tokio::test]
async fn an_event_keeps_the_text_that_rust_cannot_hold() {
    let data = r#"{"cursor":"c0","type":"command.message","turnId":null,"payload":{"content":"a\ud800b"}}"#;
    let stub = Stub::start(move |request: Seen| async move {
        if request.line.starts_with("GET /health") {
            return answer(200, &health());
        }
        let text = format!("id: c0\nevent: command.message\ndata: {data}\n\n");
        event_stream(stream::iter([Ok(Bytes::from(text))]).chain(stream::pending()))
    })
    .await;
    let mut events = Box::pin(stub.client().session("s").events(quickly()).into_stream());
    match events.next().await.unwrap().unwrap() {
        Update::Event(event) => {
            assert_eq!((event.payload["content"].as_str(), event.text.as_str()), (Some("a\u{fffd}b"), data));
        }
        other => panic!("{other:?}"),
    }
}

/// Something else may listen by now where the server did.
#[tokio::test]
async fn who_takes_the_connection_and_says_nothing_is_asked_again() {
    let tries = Arc::new(AtomicU32::new(0));
    let stub = Stub::start(move |seen: Seen| {
        let tries = Arc::clone(&tries);
        async move {
            if seen.line == "GET /health" {
                return answer(200, &health());
            }
            if tries.fetch_add(1, Ordering::Relaxed) < 2 {
                std::future::pending::<()>().await;
            }
            event_stream(stream::iter([Ok(Bytes::from(frame(0)))]).chain(stream::pending()))
        }
    })
    .await;
    let millisecond = Duration::from_millis(1);
    let reconnect = Reconnect { first: millisecond, longest: millisecond, answer_within: Duration::from_millis(300) };
    let mut events = stub.client().session("s").events(Follow { reconnect, ..Follow::default() });
    assert_eq!(events.unanswered_for(), None);
    let mut next = async || events.next().await.unwrap().unwrap();
    for _ in 0..2 {
        let Update::Interrupted { cause, .. } = next().await else { panic!("nothing came") };
        assert!(cause.ends_with("it took too long"), "{cause}");
    }
    assert!(events.unanswered_for().is_some());
    loop {
        match events.next().await.unwrap().unwrap() {
            // On a slow machine this try may have been cut off too.
            Update::Interrupted { .. } | Update::Delta(_) => {}
            Update::Event(event) => break assert_eq!(event.cursor, cursor(0)),
        }
    }
    assert_eq!(events.unanswered_for(), None);
}
