//! Requests to tools' endpoints, and what their answers come to.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use nylorun_domain::json::Json;
use nylorun_gates::outbound::{Lookup, Outbound, PrivateTargets};
use nylorun_ports::abort::Abort;
use nylorun_ports::http_tools::{HttpToolAnswer, HttpToolCall, HttpTools};
use nylorun_testkit::provider::{Piece, ProviderStub, Reply};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::tool_support::{answer, call, call_of, completed, failure, gate_through};

async fn stub(reply: Reply) -> ProviderStub {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(reply);
    stub
}

/// What a reply comes to.
async fn answer_to(reply: Reply) -> HttpToolAnswer {
    let stub = stub(reply).await;
    answer(call(&stub.base_url())).await
}

#[tokio::test]
async fn a_request_is_what_the_manifest_says_and_carries_its_key() {
    let stub = stub(Reply::json(200, &json!({"id": 7}))).await;
    let url = format!("{}/orders?kind=a%20b", stub.base_url());
    let input = "{\"to\":\"\\ud800\", \"n\":1.0}";
    let call = HttpToolCall {
        input: Json::from_trusted(input),
        ..call_of(json!({"http": {"url": url, "method": "PATCH", "timeoutMs": 5000}}))
    };
    assert_eq!(answer(call).await, completed("{\"id\":7}"));
    let request = &stub.requests()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("PATCH", "/v1/orders"));
    assert_eq!(request.body, Bytes::from(input));
    let headers = [
        ("content-type", "application/json"),
        ("nylorun-session-id", "session-1"),
        ("nylorun-turn-id", "turn-1"),
        ("nylorun-agent-id", "agent-1"),
        ("idempotency-key", "e1"),
    ];
    for (name, value) in headers {
        assert_eq!(request.header(name), value, "{name}");
    }
    assert!(request.header("user-agent").starts_with("nylorun/"));
}

#[tokio::test]
async fn what_must_not_be_sent_is_a_failure_without_a_request() {
    let stub = ProviderStub::start().await.unwrap();
    let url = stub.base_url();
    let strict = json!({"http": {"url": url}, "inputSchema": {"type": "object", "required": ["n"],
        "properties": {"n": {"type": "integer"}, "to": {"type": "string"}}}});
    let wrong = HttpToolCall { input: Json::from_trusted(r#"{"n":"1","to":2}"#), ..call_of(strict) };
    let (code, message) = failure(answer(wrong).await);
    assert_eq!(code, "tool.invalid-arguments");
    assert!(message.contains("\nn: ") && message.contains("\nto: "), "{message}");

    let secret = call_of(json!({"http": {"url": url, "credential": "shop"}}));
    let (code, message) = failure(answer(secret).await);
    assert_eq!((code.as_str(), message.contains("\"shop\"")), ("http.credential", true));

    let undeclared = HttpToolCall { tool_name: "refund".into(), ..call(&url) };
    assert_eq!(failure(answer(undeclared).await).0, "http.undeclared");

    let unusable = call_of(json!({"http": {"url": url}, "inputSchema": {"$ref": "file:///etc/passwd"}}));
    assert_eq!(failure(answer(unusable).await).0, "http.failed");
    let unusable = call_of(json!({"http": {"url": url}, "outputSchema": {"type": "nothing"}}));
    assert_eq!(failure(answer(unusable).await).0, "http.failed");
    assert_eq!(stub.count(), 0);
}

#[tokio::test]
async fn answers_of_status_2xx_are_outputs() {
    assert_eq!(answer_to(Reply::json(201, &json!([1]))).await, completed("[1]"));
    assert_eq!(answer_to(Reply::status(200, "plain")).await, completed("\"plain\""));
    assert_eq!(answer_to(Reply::status(204, "")).await, completed("null"));
    let wrong_type = Reply::status(200, "<html>").header("content-type", "application/json");
    assert_eq!(failure(answer_to(wrong_type).await).0, "http.invalid-response");
    let image = Reply::status(200, "").piece(Piece::Bytes(Bytes::from_static(b"\x89PNG\xff")));
    assert_eq!(failure(answer_to(image).await).0, "http.invalid-response");
}

#[tokio::test]
async fn an_answer_must_follow_the_output_schema() {
    let stub = stub(Reply::json(200, &json!({"n": "1"}))).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let call = call_of(json!({"http": {"url": stub.base_url()}, "outputSchema": schema}));
    let (code, message) = failure(answer(call.clone()).await);
    assert_eq!((code.as_str(), message.contains("\nn: ")), ("tool.invalid-output", true), "{message}");
    stub.then(Reply::status(200, "{\"n\":1}"));
    assert_eq!(failure(answer(call).await).0, "http.invalid-response");
}

#[tokio::test]
async fn other_statuses_are_failures_with_the_beginning_of_their_body() {
    for status in [400, 401, 404, 409, 429, 500, 503] {
        let (code, message) = failure(answer_to(Reply::status(status, "no such order")).await);
        assert_eq!(code, "http.status");
        assert_eq!(message, format!("order answered HTTP {status}: no such order"));
    }
    let (_, message) = failure(answer_to(Reply::status(500, &"é".repeat(3_000))).await);
    assert_eq!(message, format!("order answered HTTP 500: {}…", "é".repeat(2_000)));
    let (_, message) = failure(answer_to(Reply::status(502, "ab").piece(Piece::Cut)).await);
    assert!(message.starts_with("order answered HTTP 502"), "{message}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = ProviderStub::start().await.unwrap();
    for status in [301, 302, 303, 307, 308] {
        let reply = Reply::status(status, "").header("location", &elsewhere.base_url());
        let (code, message) = failure(answer_to(reply).await);
        assert_eq!((code.as_str(), message.contains(&status.to_string())), ("http.status", true), "{message}");
    }
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test]
async fn a_slow_endpoint_is_timed_out_before_and_within_its_answer() {
    for reply in [Reply::never(), Reply::status(200, "begun").piece(Piece::Hang)] {
        let stub = stub(reply).await;
        let call = call_of(json!({"http": {"url": stub.base_url(), "timeoutMs": 200}}));
        let (code, message) = failure(answer(call).await);
        assert_eq!((code.as_str(), message.contains("200 ms")), ("http.timeout", true), "{message}");
        assert_eq!(stub.count(), 1);
    }
}

/// A connection is being made until the other side has said hello; that nothing was sent is known.
#[tokio::test]
async fn an_endpoint_that_never_finishes_a_connection_is_unreachable() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let url = format!("https://{}/", silent.local_addr().expect("it listens"));
    let call = call_of(json!({"http": {"url": url, "timeoutMs": 200}}));
    let (code, message) = failure(answer(call).await);
    assert_eq!(code, "http.unreachable", "{message}");
    assert!(message.contains("no connection was made within 200 ms. Nothing was sent."), "{message}");
}

#[tokio::test]
async fn an_answer_is_read_up_to_8_mib() {
    let most = 8 * 1024 * 1024;
    let HttpToolAnswer::Done(outcome) = answer_to(Reply::status(200, &"x".repeat(most))).await else { panic!() };
    assert!(matches!(outcome, nylorun_domain::tool::ToolOutcome::Completed { .. }));
    assert_eq!(failure(answer_to(Reply::status(200, &"x".repeat(most + 1))).await).0, "http.too-large");
}

fn is_lost(answer: &HttpToolAnswer) -> bool {
    matches!(answer, HttpToolAnswer::Lost { message } if message.starts_with("http.lost: "))
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_lost() {
    let cut = answer_to(Reply::status(200, "{\"half\":").piece(Piece::Cut)).await;
    assert!(is_lost(&cut), "{cut:?}");

    // The request is read, and the connection closed without a word.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let closing = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        stream.read(&mut request).await.unwrap()
    });
    let closed = answer(call(&url)).await;
    assert!(is_lost(&closed), "{closed:?}");
    assert!(closing.await.unwrap() > 0);
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(failure(answer(call(&url)).await).0, "http.unreachable");
}

/// A name system that answers with these lists of addresses, one after the other, and counts.
fn lookup(answers: Vec<Vec<&str>>) -> (Lookup, Arc<AtomicUsize>) {
    let parse = |address: &str| SocketAddr::new(address.parse().unwrap(), 0);
    let answers: Vec<Vec<SocketAddr>> =
        answers.iter().rev().map(|list| list.iter().map(|address| parse(address)).collect()).collect();
    let (answers, count) = (Mutex::new(answers), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    let lookup: Lookup = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        let answer = answers.lock().unwrap().pop().unwrap();
        Box::pin(std::future::ready(Ok(answer)))
    });
    (lookup, count)
}

#[tokio::test]
async fn a_name_that_changes_its_address_leads_nowhere_else() {
    let stub = stub(Reply::status(200, "first")).await;
    let url = stub.base_url().replace("127.0.0.1", "shop.example");
    let answers = vec![
        vec!["127.0.0.1"],
        vec!["169.254.169.254"],
        vec!["127.0.0.1", "fd00:ec2::254"],
        vec!["::ffff:169.254.169.254"],
    ];
    let (lookup, count) = lookup(answers);
    let gate = gate_through(Outbound::new(PrivateTargets::Allow).with_lookup(lookup), &Arc::default());
    let next = |id: &str| HttpToolCall { effect_id: nylorun_domain::id::EffectId::from_trusted(id), ..call(&url) };
    // The address that was checked is the one that is called: nobody asks twice.
    assert_eq!(gate.call(next("1"), Abort::never()).await, completed("\"first\""));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    for id in ["2", "3", "4"] {
        let (code, message) = failure(gate.call(next(id), Abort::never()).await);
        assert_eq!((code.as_str(), message.contains("shop.example")), ("http.refused", true), "{message}");
    }
    assert_eq!((stub.count(), count.load(Ordering::SeqCst)), (1, 4));
}

#[tokio::test]
async fn private_addresses_are_called_only_where_the_host_allows() {
    let stub = ProviderStub::start().await.unwrap();
    let gate = gate_through(Outbound::new(PrivateTargets::Refuse), &Arc::default());
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0x7f.1"] {
        let url = stub.base_url().replace("127.0.0.1", host);
        let (code, message) = failure(gate.call(call(&url), Abort::never()).await);
        assert_eq!(code, "http.refused", "{host}: {message}");
        assert!(message.contains("NYLORUN_ENDPOINT_PRIVATE"), "{message}");
    }
    let gate = gate_through(Outbound::new(PrivateTargets::Allow), &Arc::default());
    for host in ["169.254.169.254", "metadata.google.internal", "[fe80::1]", "[fd00:ec2::254]"] {
        let (code, _) = failure(gate.call(call(&format!("http://{host}/")), Abort::never()).await);
        assert_eq!(code, "http.refused", "{host}");
    }
    assert_eq!(stub.count(), 0);
}

#[tokio::test]
async fn each_call_has_a_connection_of_its_own() {
    // A connection that was kept would be closed by the endpoint just when the second request is on its way.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let mut open = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            tokio::io::AsyncWriteExt::write_all(&mut stream, reply).await.unwrap();
            open.push(stream);
        }
    });
    let gate = gate_through(Outbound::new(PrivateTargets::Allow), &Arc::default());
    for id in ["1", "2"] {
        let call = HttpToolCall { effect_id: nylorun_domain::id::EffectId::from_trusted(id), ..call(&url) };
        let answer = tokio::time::timeout(Duration::from_secs(20), gate.call(call, Abort::never())).await;
        assert_eq!(answer.unwrap(), completed("\"ok\""));
    }
    served.await.unwrap();
}
