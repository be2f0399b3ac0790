//! Event streams (api 1.11).

use std::time::Duration;

use nylorun_domain::change::SessionChange;
use nylorun_domain::event::{Payload, Source};
use nylorun_domain::id::{InvocationId, SessionId};
use nylorun_domain::model::{ModelFailure, ModelFailureCode};
use nylorun_server::{Limits, Stage};
use nylorun_turns::stamp;
use nylorun_wire::cursor;

use crate::client::{Answer, Client};
use crate::world::{APPLICATION, MANAGEMENT, World};

async fn follow(world: &World, target: &str, headers: &[(&str, &str)]) -> (Client, Answer) {
    follow_with(world, APPLICATION, target, headers).await
}

async fn follow_with(world: &World, key: &str, target: &str, headers: &[(&str, &str)]) -> (Client, Answer) {
    let bearer = format!("Bearer {key}");
    let mut client = world.client().await;
    let own = [("nylorun-protocol", "10"), ("authorization", bearer.as_str())];
    let headers: Vec<_> = own.into_iter().chain(headers.iter().copied()).collect();
    client.send("GET", target, &headers, None).await;
    let head = client.head().await;
    (client, head)
}

async fn cancel(world: &World, key: &str) {
    let body = format!(r#"{{"requestId":"r","idempotencyKey":"{key}","type":"cancel","reason":"{key}"}}"#);
    let sent = world.call(APPLICATION, "POST", "/v1/sessions/s/commands", Some(&body)).await;
    assert_eq!(sent.status, 200, "{}", sent.body);
}

fn line<'f>(frame: &'f str, field: &str) -> Option<&'f str> {
    frame.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(": "))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_the_record_and_goes_on_live() {
    let world = World::start().await;
    world.open_sessions(&["s"]).await;
    cancel(&world, "before").await;
    let (mut client, head) = follow(&world, "/v1/sessions/s/events", &[]).await;
    assert_eq!(head.status, 200);
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("connection", "keep-alive"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(head.header(name), Some(value));
    }
    let mut pending = String::new();
    let first = client.frame(&mut pending).await.unwrap();
    assert_eq!(line(&first, "id"), Some(cursor::event(&SessionId::from_trusted("s"), 0).as_str()));
    assert_eq!(line(&first, "event"), Some("turn.cancelled"));
    assert!(line(&first, "data").unwrap().contains(r#""reason":"before""#), "{first}");
    cancel(&world, "after").await;
    let second = client.frame(&mut pending).await.unwrap();
    assert!(line(&second, "data").unwrap().contains(r#""reason":"after""#), "{second}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_resumes_after_its_cursor_and_the_query_wins() {
    let world = World::start().await;
    world.open_sessions(&["s"]).await;
    for key in ["0", "1", "2"] {
        cancel(&world, key).await;
    }
    let at = |seq| cursor::event(&SessionId::from_trusted("s"), seq);
    let page = world.call(APPLICATION, "GET", "/v1/sessions/s/items?limit=2", None).await.text("cursor");
    assert!(page.starts_with("h1."));
    for (target, last_event_id, expected) in [
        (format!("/v1/sessions/s/events?cursor={}", at(1)), None, 2),
        ("/v1/sessions/s/events".to_owned(), Some(at(0)), 1),
        (format!("/v1/sessions/s/events?cursor={}", at(1)), Some(at(0)), 2),
        (format!("/v1/sessions/s/events?cursor={page}"), None, 2),
    ] {
        let headers: Vec<_> = last_event_id.iter().map(|id| ("last-event-id", id.as_str())).collect();
        let (mut client, _) = follow(&world, &target, &headers).await;
        let frame = client.frame(&mut String::new()).await.unwrap();
        assert_eq!(line(&frame, "id"), Some(at(expected).as_str()), "{target} {last_event_id:?}");
    }
    world.stop().await;
}

fn piece(world: &World, invocation: &str, text: &str) {
    let invocation = InvocationId::from_trusted(invocation);
    world.live.delta(&SessionId::from_trusted("s"), &invocation, || format!(r#"{{"text":"{text}"}}"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_of_an_answer_that_was_read_from_the_record_are_not_given_after_it() {
    let world = World::start().await;
    world.open_sessions(&["s"]).await;
    let (mut client, _) = follow(&world, "/v1/sessions/s/events?deltas=true", &[]).await;
    let mut pending = String::new();
    cancel(&world, "first").await;
    client.frame(&mut pending).await.unwrap();
    // A model's answer is committed by somebody whose frames do not come through.
    let session = world.store.session_get(&SessionId::from_trusted("s")).await.unwrap().unwrap();
    let mut change = SessionChange::of(&session);
    let failure = ModelFailure {
        code: ModelFailureCode::Timeout,
        message: "m".to_owned(),
        retryable: false,
        usage: None,
        model: None,
    };
    let payload = Payload::ModelFailed { invocation_id: InvocationId::from_trusted("i1"), failure };
    change.event(Source::Loop, None, payload, &stamp());
    world.store.session_commit(&change).await.unwrap();
    world.live.gap(&SessionId::from_trusted("s"));
    piece(&world, "i1", "late");
    piece(&world, "i2", "new");
    assert_eq!(line(&client.frame(&mut pending).await.unwrap(), "event"), Some("model.failed"));
    assert_eq!(client.frame(&mut pending).await.unwrap(), "event: message.delta\ndata: {\"text\":\"new\"}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deltas_come_only_to_those_who_ask() {
    let world = World::start().await;
    world.open_sessions(&["s"]).await;
    let (mut with, _) = follow(&world, "/v1/sessions/s/events?deltas=true", &[]).await;
    let (mut without, _) = follow(&world, "/v1/sessions/s/events", &[]).await;
    let (mut with_pending, mut without_pending) = (String::new(), String::new());
    // What both have seen of the record says that both listen.
    cancel(&world, "first").await;
    with.frame(&mut with_pending).await.unwrap();
    without.frame(&mut without_pending).await.unwrap();
    piece(&world, "i", "a");
    cancel(&world, "second").await;
    assert_eq!(with.frame(&mut with_pending).await.unwrap(), "event: message.delta\ndata: {\"text\":\"a\"}");
    assert!(with.frame(&mut with_pending).await.unwrap().contains("turn.cancelled"));
    assert!(without.frame(&mut without_pending).await.unwrap().contains("turn.cancelled"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_stream_is_kept_alive_with_comments() {
    let limits = Limits { keepalive: Duration::from_millis(50), ..Limits::default() };
    let world = World::with(limits).await;
    world.open_sessions(&["s"]).await;
    let (mut client, _) = follow(&world, "/v1/sessions/s/events", &[]).await;
    for _ in 0..2 {
        assert_eq!(client.chunk().await.as_deref(), Some(": keepalive\n\n"));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_key_that_opened_it_and_no_other_does() {
    let world = World::start().await;
    world.open_sessions(&["s"]).await;
    let put = |name: &'static str| {
        let world = &world;
        async move { world.call(MANAGEMENT, "PUT", &format!("/v1/tenant/keys/{name}"), None).await.text("key") }
    };
    let (removed, rotated, kept) = (put("removed").await, put("rotated").await, put("kept").await);
    let subject = [("nylorun-subject", "ann"), ("nylorun-scopes", "sessions:own")];
    let (mut of_removed, _) = follow_with(&world, &removed, "/v1/sessions/s/events", &[]).await;
    let (mut of_subject, _) = follow_with(&world, &removed, "/v1/sessions/s/events", &subject).await;
    let (mut of_rotated, _) = follow_with(&world, &rotated, "/v1/sessions/s/events", &[]).await;
    let (mut of_kept, _) = follow_with(&world, &kept, "/v1/sessions/s/events", &[]).await;
    assert_eq!(world.call(MANAGEMENT, "DELETE", "/v1/tenant/keys/removed", None).await.status, 200);
    let renewed = put("rotated").await;
    for stream in [&mut of_removed, &mut of_subject, &mut of_rotated] {
        assert_eq!(stream.chunk().await, None);
    }
    let (mut of_renewed, _) = follow_with(&world, &renewed, "/v1/sessions/s/events", &[]).await;
    cancel(&world, "k").await;
    for stream in [&mut of_kept, &mut of_renewed] {
        assert!(stream.frame(&mut String::new()).await.unwrap().contains("turn.cancelled"));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_drains_ends_streams_refuses_commands_and_still_reads() {
    let world = World::start().await;
    world.open_sessions(&["s"]).await;
    let (mut client, _) = follow(&world, "/v1/sessions/s/events", &[]).await;
    world.stages.advance(Stage::Draining);
    assert_eq!(client.chunk().await, None);
    let body = r#"{"requestId":"r","idempotencyKey":"k","type":"cancel"}"#;
    let refused = world.call(APPLICATION, "POST", "/v1/sessions/s/commands", Some(body)).await;
    assert_eq!(refused.refusal(), (503, "request_rejected".to_owned()));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(world.call(APPLICATION, "GET", "/v1/sessions/s/items", None).await.status, 200);
    assert_eq!(world.ask("GET", "/ready", &[], None).await.status, 503);
    world.stop().await;
}
