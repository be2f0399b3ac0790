//! Bad input on every route, made from the route table: the right code, a message with the path, and nothing changed.

use nylorun_domain::id::SessionId;
use nylorun_server::cases::{Case, World as Cases, bad_requests, judge};
use nylorun_wire::cursor;

use crate::client::Client;
use crate::world::{APPLICATION, MANAGEMENT, World};

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_request_is_refused_and_changes_nothing() {
    let world = World::start().await;
    world.open_sessions(&["mine", "other"]).await;
    let message = r#"{"requestId":"r","idempotencyKey":"k","type":"message","content":"hello"}"#;
    let sent = world.call(APPLICATION, "POST", "/v1/sessions/other/commands", Some(message)).await;
    assert_eq!(sent.status, 200, "{}", sent.body);
    let before = everything(&world).await;
    let cases = bad_requests(&Cases {
        application_key: APPLICATION.to_owned(),
        management_key: MANAGEMENT.to_owned(),
        agent_id: "helper".to_owned(),
        session_id: "mine".to_owned(),
        stranger: "bob".to_owned(),
        foreign_cursor: cursor::event(&SessionId::from_trusted("other"), 0),
    });
    assert!(cases.len() > 800, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let answer = send(&world, case).await;
        wrong.extend(judge(case, answer.status, &answer.body).err());
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert_eq!(everything(&world).await, before);
    world.stop().await;
}

async fn send(world: &World, case: &Case) -> crate::client::Answer {
    let headers: Vec<_> = case.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut client = Client::connect(world.addr).await;
    client.send(case.method, &case.target, &headers, case.body.as_deref()).await;
    client.answer().await
}

/// All that can be read of what there is.
async fn everything(world: &World) -> Vec<String> {
    let mut seen = Vec::new();
    for (key, target) in [
        (APPLICATION, "/v1/agents"),
        (APPLICATION, "/v1/sessions"),
        (APPLICATION, "/v1/sessions/mine"),
        (APPLICATION, "/v1/sessions/mine/manifest"),
        (APPLICATION, "/v1/sessions/mine/items"),
        (APPLICATION, "/v1/sessions/other/items"),
        (MANAGEMENT, "/v1/tenant/keys"),
        (MANAGEMENT, "/v1/tenant/model"),
        (MANAGEMENT, "/v1/tenant/providers"),
    ] {
        let answer = world.call(key, "GET", target, None).await;
        assert_eq!(answer.status, 200, "{target}: {}", answer.body);
        seen.push(answer.body);
    }
    seen
}
