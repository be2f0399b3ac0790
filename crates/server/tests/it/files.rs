//! Definition files over HTTP (api 2.1).

use nylorun_domain::hash::sha256_hex;

use crate::client::Answer;
use crate::world::{APPLICATION, World, hasty};

fn path(bytes: &[u8]) -> String {
    format!("/v1/files/sha256:{}", sha256_hex(bytes))
}

async fn send(world: &World, method: &str, target: &str, more: &[(&str, &str)], body: Option<&[u8]>) -> Answer {
    let bearer = format!("Bearer {APPLICATION}");
    let own = [("nylorun-protocol", "10"), ("authorization", bearer.as_str())];
    let headers: Vec<_> = own.into_iter().chain(more.iter().copied()).collect();
    let mut client = world.client().await;
    client.send(method, target, &headers, body).await;
    client.answer().await
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_any_media_type_are_stored_under_their_hash() {
    let world = World::start().await;
    let bytes = b"\x89PNG\r\n\0";
    let chunked = b"4\r\n\x89PNG\r\n3\r\n\r\n\0\r\n0\r\n\r\n";
    let target = path(bytes);
    assert_eq!(send(&world, "HEAD", &target, &[], None).await.status, 404);
    let stored = send(&world, "PUT", &target, &[("transfer-encoding", "chunked")], Some(chunked)).await;
    assert_eq!((stored.status, stored.text("sha256")), (201, target["/v1/files/".len()..].to_owned()));
    for media_type in ["image/png", "application/json", "text/markdown; charset=utf-8"] {
        let again = send(&world, "PUT", &target, &[("content-type", media_type)], Some(bytes)).await;
        assert_eq!((again.status, again.json().get("size").and_then(|size| size.as_i64())), (200, Some(7)));
    }
    let head = send(&world, "HEAD", &target, &[], None).await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(send(&world, "GET", &target, &[], None).await.text("message"), "Route not found");
    let empty = send(&world, "PUT", &path(b""), &[], None).await;
    assert_eq!(empty.status, 201, "a file may be empty");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_saved_once_its_files_are_there() {
    let world = World::start().await;
    let (text, other) = (b"# Skill", b"more");
    let names = [text.as_slice(), other].map(|bytes| path(bytes)["/v1/files/".len()..].to_owned());
    let files = format!(r#"{{"SKILL.md":"{}","more.md":"{}"}}"#, names[0], names[1]);
    let skill = format!(r#"{{"s":{{"name":"s","description":"d","files":{files}}}}}"#);
    let manifest = format!(
        r#"{{"manifestSchemaVersion":5,"id":"a","capabilities":[{{"id":"c","type":"agent","skills":{skill}}}]}}"#
    );
    let body = format!(r#"{{"requestId":"r","implementationVersion":"1","manifest":{manifest}}}"#);
    assert_eq!(send(&world, "PUT", &path(text), &[], Some(text)).await.status, 201);
    let refused = world.call(APPLICATION, "PUT", "/v1/agents/a", Some(&body)).await;
    assert_eq!(refused.refusal(), (400, "definition_files_missing".to_owned()));
    let details = refused.json().get("details").map(|details| details.to_json().as_str().to_owned());
    assert_eq!(details, Some(format!(r#"{{"missing":["{}"]}}"#, names[1])));
    assert_eq!(send(&world, "PUT", &path(other), &[], Some(other)).await.status, 201);
    assert_eq!(world.call(APPLICATION, "PUT", "/v1/agents/a", Some(&body)).await.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_to_its_end_stores_nothing() {
    let world = World::with(hasty()).await;
    let target = path(b"whole");
    let late = send(&world, "PUT", &target, &[("content-length", "5")], Some(b"who")).await;
    assert_eq!(late.refusal(), (400, "invalid_request".to_owned()));
    assert_eq!(send(&world, "HEAD", &target, &[], None).await.status, 404);
    world.stop().await;
}
