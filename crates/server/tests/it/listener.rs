//! Clients that take up too much: slow, silent, many, and those that never read.

use std::time::Duration;

use nylorun_server::{Limits, Stage};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::client::{Client, within};
use crate::world::{APPLICATION, World, hasty, manifest_body};

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_come_ends_its_connection() {
    let world = World::with(hasty()).await;
    for start in ["", "GET /health HTTP/1.1\r\nhost: x\r\nx-slow: "] {
        let mut client = world.client().await;
        client.write(start.as_bytes()).await;
        // Whatever is said at the end, the connection ends.
        while !client.line().await.is_empty() {}
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_is_refused() {
    let world = World::with(hasty()).await;
    let bearer = format!("Bearer {APPLICATION}");
    let headers = [
        ("nylorun-protocol", "10"),
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("content-length", "100"),
    ];
    let mut client = world.client().await;
    client.send("PUT", "/v1/agents/a", &headers, Some(b"{")).await;
    assert_eq!(client.answer().await.refusal(), (400, "invalid_request".to_owned()));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunked_body_is_bounded_too() {
    let world = World::start().await;
    let bearer = format!("Bearer {APPLICATION}");
    let headers = [
        ("nylorun-protocol", "10"),
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("transfer-encoding", "chunked"),
    ];
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let mut client = world.client().await;
    client.send("PUT", "/v1/agents/a", &headers, Some(format!("{}0\r\n\r\n", chunk.repeat(100)).as_bytes())).await;
    assert_eq!(client.answer().await.refusal(), (413, "request_rejected".to_owned()));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_kept_and_pipelined_requests_answered_in_order() {
    let world = World::start().await;
    let bearer = format!("Bearer {APPLICATION}");
    let headers = [("nylorun-protocol", "10"), ("authorization", bearer.as_str())];
    let mut client = world.client().await;
    client.send("GET", "/v1/agents", &headers, None).await;
    client.send("GET", "/v1/me", &headers, None).await;
    assert_eq!(client.answer().await.body, r#"{"agents":[]}"#);
    assert_eq!(client.answer().await.text("via"), "application:app");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_limit_wait_for_room() {
    let world = World::with(Limits { connections: 1, ..Limits::default() }).await;
    let mut first = world.client().await;
    first.send("GET", "/health", &[], None).await;
    assert_eq!(first.answer().await.status, 200);
    let mut second = world.client().await;
    second.send("GET", "/health", &[], None).await;
    let early = tokio::time::timeout(Duration::from_millis(200), second.head()).await;
    assert!(early.is_err(), "the second connection was served beside the first");
    drop(first);
    assert_eq!(second.head().await.status, 200);
    drop(second);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_is_disconnected() {
    let world = World::with(Limits { write: Duration::from_millis(300), ..Limits::default() }).await;
    world.open_sessions(&["s"]).await;
    let head = format!(
        "GET /v1/sessions/s/events?deltas=true HTTP/1.1\r\nhost: {}\r\nnylorun-protocol: 10\r\n\
         authorization: Bearer {APPLICATION}\r\n\r\n",
        world.addr
    );
    let mut stream = TcpStream::connect(world.addr).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
    let session = nylorun_domain::id::SessionId::from_trusted("s");
    let mut first = [0; 15];
    within(stream.read_exact(&mut first)).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    // Nothing more is read. Frames fill the socket's buffers, then the server gives the connection up: nobody observes
    // any more, and a delta is not even encoded.
    let big = format!("\"{}\"", "x".repeat(100_000));
    let gone = async {
        loop {
            let mut observed = false;
            world.live.delta(&session, &nylorun_domain::id::InvocationId::from_trusted("i"), || {
                observed = true;
                big.clone()
            });
            if !observed {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    within(gone).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_run_are_finished_when_the_server_closes() {
    let world = World::start().await;
    let bearer = format!("Bearer {APPLICATION}");
    let body = manifest_body("a");
    let length = body.len().to_string();
    let headers = [
        ("nylorun-protocol", "10"),
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("content-length", length.as_str()),
        ("expect", "100-continue"),
    ];
    let mut client = world.client().await;
    client.send("PUT", "/v1/agents/a", &headers, None).await;
    // The server asks for the body: so the request runs.
    assert_eq!(client.head().await.status, 100);
    world.stages.advance(Stage::Closing);
    client.write(body.as_bytes()).await;
    assert_eq!(client.answer().await.status, 200);
    let addr = world.addr;
    world.stop().await;
    assert!(TcpStream::connect(addr).await.is_err());
}

/// What is wrong with the head of a request, and its refusal.
fn unreadable_heads() -> Vec<(String, u16)> {
    let with = |headers: &str| format!("GET /health HTTP/1.1\r\nhost: x\r\n{headers}\r\n");
    vec![
        ("\r\n\r\nnonsense\r\n\r\n".to_owned(), 400),
        ("GET\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), 400),
        ("GET /a b HTTP/1.1\r\n\r\n".to_owned(), 400),
        (with("no colon\r\n"), 400),
        (format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(65_600)), 414),
        (format!("GET /v1/sessions?agentId={} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(1 << 20)), 414),
        (with(&format!("x: {}\r\n", "a".repeat(65_600))), 431),
        (with(&format!("x: {}\r\n", "a".repeat(1 << 20))), 431),
        (with(&"x: a\r\n".repeat(101)), 431),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_requests_are_refused_with_a_body() {
    let world = World::start().await;
    for (raw, status) in unreadable_heads() {
        let shown: String = raw.chars().take(60).collect();
        let mut first = Client::connect(world.addr).await;
        first.write(raw.as_bytes()).await;
        let mut second = Client::connect(world.addr).await;
        second.send("GET", "/health", &[], None).await;
        assert_eq!(second.answer().await.status, 200);
        second.write(raw.as_bytes()).await;
        for client in [&mut first, &mut second] {
            let answer = client.answer().await;
            assert_eq!(answer.refusal(), (status, "invalid_request".to_owned()), "{shown}: {answer:?}");
            assert_eq!(answer.header("content-type"), Some("application/json"), "{shown}");
            assert_eq!(answer.header("connection"), Some("close"), "{shown}");
            assert_eq!(client.line().await, "", "{shown}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_of_almost_the_limit_is_read() {
    let world = World::start().await;
    let target = format!("/health?{}", "a".repeat(40_000));
    let header = "b".repeat(20_000);
    assert_eq!(world.ask("GET", &target, &[("x", &header)], None).await.status, 200);
    world.stop().await;
}
