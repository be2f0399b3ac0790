//! Requests as they leave, answers as they are understood.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nylorun_client::{
    ActiveWork, Command, Effects, Environment, Error, Key, ModelAuth, ModelChoice, OpenSession, PROTOCOL, ResetScope,
    Seed, SessionFilter, SessionStatus, SetModel, Settle, Settlement, UsageQuery,
};
use serde_json::{Value, json};

use crate::stub::{Seen, Stub, answer, health};

/// A healthy server that gives one answer to everything else.
async fn answering(status: u16, body: Value) -> Stub {
    Stub::start(move |request: Seen| {
        let body = if request.line == "GET /health" { health() } else { body.clone() };
        let status = if request.line == "GET /health" { 200 } else { status };
        async move { answer(status, &body) }
    })
    .await
}

/// The last request without the ids that are random.
fn last(stub: &Stub) -> (String, Option<Value>) {
    let seen = stub.seen().pop().unwrap();
    let mut body = seen.body;
    if let Some(Value::Object(body)) = &mut body {
        for id in ["requestId", "idempotencyKey"] {
            if let Some(value) = body.remove(id) {
                assert_eq!(value.as_str().unwrap().len(), 36);
            }
        }
    }
    (seen.line, body)
}

fn view() -> Value {
    json!({"id": "s", "agentId": "a", "ownerUserId": "o", "manifestHash": "h", "implementationVersion": "1",
        "status": "idle", "activeTurnId": null, "uncertainEffects": []})
}

#[tokio::test]
async fn health_is_read_once_and_requests_carry_key_and_protocol() {
    let stub = answering(200, json!({"agents": []})).await;
    let client = stub.client();
    client.agents().await.unwrap();
    client.clone().agents().await.unwrap();
    assert_eq!(stub.lines(), ["GET /health", "GET /v1/agents", "GET /v1/agents"]);
    let request = &stub.seen()[1];
    assert_eq!(request.header("authorization"), Some("Bearer app-key"));
    assert_eq!(request.header("nylorun-protocol"), Some(PROTOCOL.to_string().as_str()));
    assert_eq!(stub.seen()[0].header("authorization"), None);
}

#[tokio::test]
async fn a_426_has_health_read_again_once() {
    let calls = Arc::new(AtomicU32::new(0));
    let stub = Stub::start(move |request: Seen| {
        let calls = Arc::clone(&calls);
        async move {
            let old = json!({"status": "rejected", "code": "protocol_unsupported", "protocol": {}});
            match request.line.as_str() {
                "GET /health" => answer(200, &health()),
                _ if calls.fetch_add(1, Ordering::SeqCst) == 1 => answer(200, &json!({"agents": []})),
                _ => answer(426, &old),
            }
        }
    })
    .await;
    let client = stub.client();
    assert_eq!(client.agents().await.unwrap(), []);
    let error = client.agents().await.unwrap_err();
    assert_eq!(error.refusal().map(|refusal| refusal.code.as_str()), Some("protocol_unsupported"));
    let lines = stub.lines();
    let expected = ["/health", "/v1/agents", "/health", "/v1/agents", "/v1/agents", "/health", "/v1/agents"];
    assert_eq!(lines, expected.map(|path| format!("GET {path}")));
}

#[tokio::test]
async fn a_server_without_a_required_feature_is_refused_before_anything_is_sent() {
    let stub = Stub::start(|_| async {
        let mut body = health();
        body["protocol"]["features"] = json!(["artifacts"]);
        answer(200, &body)
    })
    .await;
    match stub.client().agents().await.unwrap_err() {
        Error::Incompatible { url, reason } => {
            assert_eq!(
                (url, reason.as_str()),
                (stub.url.clone(), "it lacks studio-principal, management-api, resource-server")
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(stub.lines(), ["GET /health"]);
}

#[tokio::test]
async fn saving_an_agent_gives_every_problem() {
    let problems = json!([{"code": "custom", "path": ["manifest", "id"], "message": "differs from the path"}]);
    let stub =
        answering(400, json!({"status": "rejected", "code": "request_rejected", "message": problems.to_string()}))
            .await;
    let error = stub.client().save_agent("a", &json!({"id": "b"}), "dev").await.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(refusal.status, 400);
    assert_eq!(refusal.problems()[0].path_text(), "manifest.id");
    let expected = json!({"manifest": {"id": "b"}, "implementationVersion": "dev"});
    assert_eq!(last(&stub), ("PUT /v1/agents/a".into(), Some(expected)));
}

#[tokio::test]
async fn a_session_is_opened_listed_and_commanded() {
    let stub = answering(200, view()).await;
    let open = OpenSession { environment: Some(Environment::Without), ..OpenSession::new("a", "o") };
    let opened = stub.client().open_session("team/1", &open).await.unwrap();
    assert_eq!((opened.id.as_str(), opened.status), ("s", SessionStatus::Idle));
    let expected = json!({"agentId": "a", "ownerUserId": "o", "sandbox": false});
    assert_eq!(last(&stub), ("PUT /v1/sessions/team%2F1".into(), Some(expected)));

    let stub = answering(200, json!({"status": "accepted", "turnId": "t", "cursor": "c", "requestId": "r"})).await;
    let accepted = stub.client().session("s").command(&Command::text("hi").unwrap()).await.unwrap();
    assert_eq!((accepted.turn_id.as_deref(), accepted.cursor.as_deref()), (Some("t"), Some("c")));
    assert_eq!(last(&stub), ("POST /v1/sessions/s/commands".into(), Some(json!({"content": "hi", "type": "message"}))));

    let settle = Settle::new("e/1", Settlement::Retry).unwrap();
    stub.client().session("s").settle(&settle).await.unwrap();
    assert_eq!(
        last(&stub),
        ("POST /v1/sessions/s/effects/e%2F1/settle".into(), Some(json!({"outcome": {"retry": true}})))
    );
}

#[tokio::test]
async fn a_message_that_waits_is_taken_back() {
    let stub = answering(200, json!({"id": "m/1", "deleted": true})).await;
    stub.client().session("s").remove_queued("m/1").await.unwrap();
    assert_eq!(last(&stub), ("DELETE /v1/sessions/s/queue/m%2F1".into(), None));
}

#[tokio::test]
async fn history_keeps_each_event_as_it_came() {
    let stub = Stub::start(|request: Seen| async move {
        if request.line == "GET /health" {
            return answer(200, &health());
        }
        let body = r#"{"items":[{"type":"x","cursor":"c1","payload":{"a":"\ud800"}}],"cursor":"h1.a","tail":true}"#;
        axum::response::Response::builder().body(axum::body::Body::from(body)).unwrap()
    })
    .await;
    let page = stub.client().session("s").history(Some("h1.0"), Some(10)).await.unwrap();
    assert_eq!((page.cursor.as_deref(), page.tail), (Some("h1.a"), Some(true)));
    assert_eq!(page.items[0].text, r#"{"type":"x","cursor":"c1","payload":{"a":"\ud800"}}"#);
    assert_eq!(page.items[0].payload, json!({"a": "\u{fffd}"}));
    assert_eq!(last(&stub).0, "GET /v1/sessions/s/items?cursor=h1.0&limit=10");
}

#[tokio::test]
async fn the_tenants_model_is_set_with_its_key() {
    let stub =
        answering(200, json!({"configured": true, "provider": "custom", "model": "m", "authType": "api_key"})).await;
    let choice =
        ModelChoice { provider: "custom".into(), model: "m".into(), base_url: Some("http://127.0.0.1:1/v1".into()) };
    let auth = ModelAuth::ApiKey("secret".into());
    let set = SetModel { choice: choice.clone(), settings: None, auth };
    assert_eq!(stub.tenant().set_model(&set).await.unwrap().model.as_deref(), Some("m"));
    let body = json!({"provider": "custom", "model": "m", "baseUrl": "http://127.0.0.1:1/v1"});
    let mut with_auth = body.clone();
    with_auth["auth"] = json!({"type": "api_key", "key": "secret"});
    assert_eq!(last(&stub), ("PUT /v1/tenant/model".into(), Some(with_auth)));
    assert!(!format!("{set:?}").contains("secret"));

    stub.tenant().select_model(&choice).await.unwrap();
    assert_eq!(last(&stub), ("PUT /v1/tenant/model/selection".into(), Some(body)));
    assert_eq!(stub.seen().pop().unwrap().header("authorization"), Some("Bearer management-key"));
}

#[tokio::test]
async fn a_reset_names_what_it_removes_and_what_becomes_of_work() {
    let stub = answering(200, json!({"ok": true})).await;
    stub.tenant().reset(ResetScope::Sessions, ActiveWork::Drain).await.unwrap();
    let body = json!({"scope": "sessions", "activeWork": "drain"});
    assert_eq!(last(&stub), ("POST /v1/tenant/reset".into(), Some(body)));
    stub.tenant().reset(ResetScope::All, ActiveWork::Cancel).await.unwrap();
    assert_eq!(last(&stub).1, Some(json!({"scope": "all", "activeWork": "cancel"})));
}

#[tokio::test]
async fn the_fixture_model_is_a_seed() {
    let stub = answering(200, json!({"applied": ["model.fixture"], "kept": []})).await;
    assert_eq!(stub.tenant().seed(&Seed::FixtureModel).await.unwrap().applied, ["model.fixture"]);
    assert_eq!(last(&stub), ("PUT /v1/tenant/config/seed".into(), Some(json!({"fixtureModel": true}))));
}

#[tokio::test]
async fn redirects_and_pages_are_errors() {
    let moved = Stub::start(|request: Seen| async move {
        match request.line.as_str() {
            "GET /health" => answer(200, &health()),
            _ => axum::response::Response::builder()
                .status(302)
                .header("location", "/health")
                .body(axum::body::Body::empty())
                .unwrap(),
        }
    })
    .await;
    assert_eq!(moved.client().agents().await.unwrap_err().refusal().map(|refusal| refusal.status), Some(302));
    let page = answering(200, json!("hello")).await;
    assert!(matches!(page.client().agents().await, Err(Error::Malformed { .. })));
}

#[tokio::test]
async fn nothing_listening_is_unreachable() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let client = nylorun_client::Client::new(&url, Key::new("k").unwrap()).unwrap();
    match client.agents().await.unwrap_err() {
        Error::Unreachable { url: asked, cause } => {
            assert_eq!(asked, format!("{url}/health"));
            assert!(cause.contains("refused"), "{cause}");
        }
        other => panic!("{other:?}"),
    }
}

fn some_sessions() -> Value {
    let session = |id: &str, agent: &str, status: &str, owner: &str| {
        let mut session = json!({"id": id, "agentId": agent, "status": status, "activeTurnId": null});
        session["ownerUserId"] = json!(owner);
        session
    };
    json!({"sessions": [
        session("1", "a b", "paused", "o"),
        session("2", "a b", "idle", "o"),
        session("3", "a b", "paused", "p"),
        session("4", "c", "paused", "o"),
        session("5", "a b", "paused", "o"),
    ]})
}

fn second_page_of_one() -> SessionFilter {
    SessionFilter {
        limit: 1,
        cursor: Some("c+/=".into()),
        agent_id: Some("a b".into()),
        status: Some(SessionStatus::Paused),
        owner_user_id: Some("o".into()),
        effects: Effects::Any,
    }
}

#[tokio::test]
async fn sessions_come_in_pages() {
    let mut body = some_sessions();
    body["sessions"].as_array_mut().unwrap().truncate(1);
    body["nextCursor"] = json!("n");
    let stub = answering(200, body).await;
    let page = stub.client().sessions(&second_page_of_one()).await.unwrap();
    assert_eq!((page.sessions.len(), page.next_cursor.as_deref()), (1, Some("n")));
    let query = "limit=1&cursor=c%2B%2F%3D&agentId=a+b&status=paused&ownerUserId=o";
    assert_eq!(last(&stub).0, format!("GET /v1/sessions?{query}"));
}

#[tokio::test]
async fn sessions_are_filtered_here_where_the_server_has_no_pages() {
    let stub = answering(200, some_sessions()).await;
    let page = stub.client().sessions(&second_page_of_one()).await.unwrap();
    let ids: Vec<&str> = page.sessions.iter().map(|session| session.id.as_str()).collect();
    assert_eq!((ids, page.next_cursor), (vec!["1", "5"], None));
}

#[tokio::test]
async fn sessions_with_unknown_outcomes_are_asked_for() {
    let stub = answering(200, some_sessions()).await;
    stub.client().sessions(&SessionFilter { effects: Effects::Uncertain, ..second_page_of_one() }).await.unwrap();
    let query = "limit=1&cursor=c%2B%2F%3D&agentId=a+b&status=paused&ownerUserId=o&uncertain=true";
    assert_eq!(last(&stub).0, format!("GET /v1/sessions?{query}"));
}

#[tokio::test]
async fn usage_and_calls_are_asked_for_with_their_filters() {
    let stub =
        answering(200, json!({"calls": [], "nextCursor": null, "next": "n", "caughtUp": true, "asOf": "t"})).await;
    let session = stub.client().session("s/1");
    session.model_calls(Some("t 1"), Some("c"), Some(7)).await.unwrap();
    assert_eq!(last(&stub).0, "GET /v1/sessions/s%2F1/calls/model?turnId=t+1&cursor=c&limit=7");
    let page = stub.tenant().export_model_calls(Some("a"), None).await.unwrap();
    assert_eq!((page.next.as_str(), page.caught_up), ("n", true));
    assert_eq!(last(&stub).0, "GET /v1/tenant/calls/model?after=a");

    let spent =
        json!({"scope": "agent", "id": "a", "period": "day", "since": "t", "calls": 1, "tokens": 2, "costUsd": 0.5});
    let stub = answering(200, spent.clone()).await;
    let query = UsageQuery { scope: Some("agent".into()), id: Some("a".into()), period: Some("day".into()) };
    let usage = stub.tenant().usage(&query).await.unwrap();
    assert_eq!(serde_json::to_value(&usage).unwrap(), spent);
    assert_eq!(last(&stub).0, "GET /v1/tenant/usage?scope=agent&id=a&period=day");
}

#[tokio::test]
async fn budgets_are_put_as_they_are_read() {
    let budgets =
        json!([{"scope": "agent", "id": "a", "period": "day", "limitUsd": 0.5}, {"scope": "turn", "limitTokens": 9}]);
    let stub = answering(200, json!({"budgets": budgets})).await;
    let read = stub.tenant().budgets().await.unwrap();
    assert_eq!(last(&stub).0, "GET /v1/tenant/budgets");
    assert_eq!(stub.tenant().set_budgets(&read).await.unwrap(), read);
    assert_eq!(last(&stub), ("PUT /v1/tenant/budgets".to_owned(), Some(json!({"budgets": budgets}))));
}

#[tokio::test]
async fn sandbox_settings_are_replaced() {
    let stub = answering(200, json!({"preference": "auto", "config": {"default": "none"}, "cluster": null})).await;
    let read = stub.tenant().sandbox().await.unwrap();
    assert_eq!((last(&stub).0.as_str(), read.backend), ("GET /v1/tenant/sandbox", None));
    let config = json!({"default": "virtual"});
    let put = stub.tenant().set_sandbox(config.as_object().unwrap()).await.unwrap();
    assert_eq!(last(&stub), ("PUT /v1/tenant/sandbox".to_owned(), Some(config)));
    assert_eq!(put.config["default"], "none");
}
