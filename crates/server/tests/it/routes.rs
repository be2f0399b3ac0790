//! Answers of the routes, held to the schemas that the documents publish.

use nylorun_domain::json::Value;
use nylorun_server::route::{AnswerKind, ROUTES};

use crate::world::{APPLICATION, MANAGEMENT, STUDIO, World, json, manifest_body};

const MESSAGE: &str =
    r#"{"requestId":"r1","idempotencyKey":"k1","type":"message","data":{ "x" : 1.50, "lone":"\ud800" }}"#;

#[tokio::test(flavor = "multi_thread")]
async fn answers_follow_their_published_schemas() {
    let world = World::start().await;
    world.open_sessions(&["s"]).await;
    let seed = r#"{"requestId":"r","fixtureModel":true}"#;
    let cancel = r#"{"requestId":"r2","idempotencyKey":"k2","type":"cancel"}"#;
    let budgets = r#"{"budgets":[{"scope":"turn","limitUsd":0.5},{"scope":"tenant","period":"day","limitTokens":1}]}"#;
    let agent = manifest_body("other");
    let reset = r#"{"requestId":"r","scope":"all","activeWork":"drain"}"#;
    let open = r#"{"requestId":"r","agentId":"helper","ownerUserId":"ann","info":{"a":1},"sandbox":false}"#;
    let sandbox = r#"{"requestId":"r","default":{"resources":{"cpus":1}},"limits":{"ttl":"1d"},"placement":{}}"#;
    for (name, key, target, body) in [
        ("seedTenant", MANAGEMENT, "/v1/tenant/config/seed", Some(seed)),
        ("saveAgent", APPLICATION, "/v1/agents/other", Some(agent.as_str())),
        ("listAgents", APPLICATION, "/v1/agents", None),
        ("openSession", APPLICATION, "/v1/sessions/a%2Fb", Some(open)),
        ("sendCommand", APPLICATION, "/v1/sessions/s/commands", Some(MESSAGE)),
        ("sendCommand", APPLICATION, "/v1/sessions/s/commands", Some(cancel)),
        ("listSessions", STUDIO, "/v1/sessions?agentId=helper", None),
        ("listSessions", STUDIO, "/v1/sessions?uncertain=true", None),
        ("listSessions", STUDIO, "/v1/sessions?limit=1&agentId=helper", None),
        ("listSessions", STUDIO, "/v1/sessions?limit=1&uncertain=true", None),
        ("getSession", STUDIO, "/v1/sessions/a%2Fb", None),
        ("getSessionManifest", APPLICATION, "/v1/sessions/s/manifest", None),
        ("readSession", APPLICATION, "/v1/sessions/s/items", None),
        ("readSession", APPLICATION, "/v1/sessions/s/items?limit=1", None),
        ("getSessionUsage", APPLICATION, "/v1/sessions/s/usage?turnId=t", None),
        ("listSessionModelCalls", APPLICATION, "/v1/sessions/s/calls/model?limit=1", None),
        ("getTenantUsage", MANAGEMENT, "/v1/tenant/usage?scope=agent&id=helper&period=day", None),
        ("putBudgets", MANAGEMENT, "/v1/tenant/budgets", Some(budgets)),
        ("listBudgets", STUDIO, "/v1/tenant/budgets", None),
        ("exportModelCalls", MANAGEMENT, "/v1/tenant/calls/model?limit=1000", None),
        ("callSandboxTool", APPLICATION, "/v1/sessions/s/sandbox/read", Some(r#"{"requestId":"r","path":"x"}"#)),
        ("callSandboxTool", APPLICATION, "/v1/sessions/s/sandbox/read", None),
        ("whoAmI", MANAGEMENT, "/v1/me", None),
        ("getTenant", MANAGEMENT, "/v1/tenant", None),
        ("listKeys", MANAGEMENT, "/v1/tenant/keys", None),
        ("putKey", MANAGEMENT, "/v1/tenant/keys/ci", None),
        ("deleteKey", MANAGEMENT, "/v1/tenant/keys/ci", None),
        ("listModels", MANAGEMENT, "/v1/tenant/models", None),
        ("listProviders", MANAGEMENT, "/v1/tenant/providers", None),
        ("getModel", STUDIO, "/v1/tenant/model", None),
        ("putSandboxSettings", MANAGEMENT, "/v1/tenant/sandbox", Some(sandbox)),
        ("getSandboxSettings", STUDIO, "/v1/tenant/sandbox", None),
        ("resetTenant", MANAGEMENT, "/v1/tenant/reset", Some(reset)),
    ] {
        let route = ROUTES.iter().find(|route| route.name == name).expect("a route");
        let answer = world.call(key, route.method.as_str(), target, body).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
        match route.answer {
            AnswerKind::Json(schema) | AnswerKind::Stored(schema) => {
                assert_eq!(schema.check(&answer.json()), Ok(()), "{name}: {}", answer.body)
            }
            AnswerKind::Empty | AnswerKind::Events(_) => unreachable!("followed elsewhere"),
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn content_comes_back_as_it_was_written_and_a_repeated_key_gets_the_same_answer() {
    let world = World::start().await;
    world.open_sessions(&["s"]).await;
    let first = world.call(APPLICATION, "POST", "/v1/sessions/s/commands", Some(MESSAGE)).await;
    let again = MESSAGE.replace("r1", "r9");
    let second = world.call(APPLICATION, "POST", "/v1/sessions/s/commands", Some(&again)).await;
    assert_eq!((first.status, &first.body), (second.status, &second.body));
    assert_eq!(second.text("requestId"), "r1");
    let other = MESSAGE.replace("1.50", "2");
    let conflict = world.call(APPLICATION, "POST", "/v1/sessions/s/commands", Some(&other)).await;
    assert_eq!(conflict.refusal(), (409, "request_rejected".to_owned()));
    assert!(conflict.text("message").starts_with("Idempotency key"), "{}", conflict.body);
    assert_eq!(conflict.text("requestId"), "r1");
    let items = world.call(APPLICATION, "GET", "/v1/sessions/s/items", None).await;
    assert!(items.body.contains(r#""data":{ "x" : 1.50, "lone":"\ud800" }"#), "{}", items.body);
    assert_eq!(items.text("cursor"), first.text("cursor"));
    let busy = world.call(APPLICATION, "POST", "/v1/sessions/s/commands", Some(&MESSAGE.replace("k1", "k2"))).await;
    assert_eq!((busy.status, busy.text("activeTurnId")), (409, first.text("turnId")));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_on_where_they_ended_and_are_bound_to_what_was_asked() {
    let world = World::start().await;
    world.open_sessions(&["s", "t"]).await;
    let cancel = |key: &str| format!(r#"{{"requestId":"r","idempotencyKey":"{key}","type":"cancel"}}"#);
    for key in ["1", "2", "3"] {
        let sent = world.call(APPLICATION, "POST", "/v1/sessions/s/commands", Some(&cancel(key))).await;
        assert_eq!((sent.status, sent.json().get("turnId")), (200, Some(&json("null"))), "{}", sent.body);
    }
    let empty = world.call(APPLICATION, "GET", "/v1/sessions/t/items", None).await;
    assert_eq!(empty.body, r#"{"items":[],"cursor":null}"#);
    let mut cursor = String::new();
    let mut seqs = Vec::new();
    for page in 0..3 {
        let from = if cursor.is_empty() { String::new() } else { format!("&cursor={cursor}") };
        let answer = world.call(APPLICATION, "GET", &format!("/v1/sessions/s/items?limit=1{from}"), None).await;
        let value = answer.json();
        let items = value.get("items").and_then(|items| items.as_array().map(<[_]>::to_vec)).unwrap_or_default();
        seqs.extend(items.iter().filter_map(|item| item.get("seq")?.as_i64()));
        assert_eq!(value.get("tail"), Some(&json(if page == 2 { "true" } else { "false" })), "{}", answer.body);
        cursor = answer.text("cursor");
    }
    assert_eq!(seqs, [0, 1, 2]);
    for (target, code) in [
        (format!("/v1/sessions/s/items?limit=1&agent=x&cursor={cursor}"), "cursor_mismatch"),
        (format!("/v1/sessions/t/items?limit=1&cursor={cursor}"), "cursor_mismatch"),
        (format!("/v1/sessions/t/items?cursor={cursor}"), "request_rejected"),
    ] {
        let answer = world.call(APPLICATION, "GET", &target, None).await;
        assert_eq!(
            (answer.status, answer.text("code"), answer.text("message")),
            (400, code.to_owned(), "Invalid cursor".to_owned())
        );
    }
    let rest = world.call(APPLICATION, "GET", &format!("/v1/sessions/s/items?cursor={cursor}"), None).await;
    assert!(rest.body.starts_with(r#"{"items":[],"cursor":""#), "{}", rest.body);
    world.stop().await;
}

/// A page of sessions: its ids and the cursor of the next one.
async fn session_page(world: &World, headers: &[(&str, &str)], query: &str) -> (Vec<String>, Option<String>) {
    let bearer = format!("Bearer {APPLICATION}");
    let own = [("nylorun-protocol", "10"), ("authorization", bearer.as_str())];
    let headers: Vec<_> = own.into_iter().chain(headers.iter().copied()).collect();
    let answer = world.ask("GET", &format!("/v1/sessions?{query}"), &headers, None).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let value = answer.json();
    let sessions = value.get("sessions").and_then(|sessions| sessions.as_array().map(<[_]>::to_vec)).expect("sessions");
    let text = |value: Option<&nylorun_domain::json::Value>| value.and_then(|value| value.as_str()).map(str::to_owned);
    let ids = sessions.iter().map(|session| text(session.get("id")).expect("an id"));
    (ids.collect(), text(value.get("nextCursor")))
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_come_in_pages_newest_first() {
    let world = World::start().await;
    world.open_sessions(&["a", "b", "c", "d", "e"]).await;
    let cancel = r#"{"requestId":"r","idempotencyKey":"k","type":"cancel"}"#;
    for id in ["b", "d"] {
        world.call(APPLICATION, "POST", &format!("/v1/sessions/{id}/commands"), Some(cancel)).await;
    }
    let whole = world.call(APPLICATION, "GET", "/v1/sessions", None).await;
    // Without limit, what belongs to pages is ignored, and the answer is what it always was.
    let ignoring = world.call(APPLICATION, "GET", "/v1/sessions?cursor=x&status=y&ownerUserId=z&more=1", None).await;
    assert_eq!(ignoring.body, whole.body);
    assert!(!whole.body.contains("nextCursor") && !whole.body.contains("createdAt"), "{}", whole.body);
    let order: Vec<_> = whole.json().get("sessions").and_then(|all| all.as_array().map(<[_]>::to_vec)).unwrap();
    let order: Vec<_> = order.iter().map(|one| one.get("id").unwrap().as_str().unwrap().to_owned()).collect();
    for filter in ["", "&agentId=helper", "&ownerUserId=ann", "&agentId=helper&ownerUserId=ann"] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        for size in [2, 2, 1] {
            let (ids, next) = session_page(&world, &[], &format!("limit=2{filter}{cursor}")).await;
            assert_eq!((ids.len(), next.is_some()), (size, size == 2), "{filter}");
            seen.extend(ids);
            cursor = format!("&cursor={}", next.unwrap_or_default());
        }
        assert_eq!(seen, order, "{filter}");
    }
    let (ids, next) = session_page(&world, &[], "limit=200&status=cancelled").await;
    assert_eq!((ids, next), (order.iter().filter(|id| ["b", "d"].contains(&id.as_str())).cloned().collect(), None));
    for nothing in ["status=running", "agentId=other", "ownerUserId=bob", "sandboxId=team/x", "uncertain=true"] {
        assert_eq!(session_page(&world, &[], &format!("limit=5&{nothing}")).await, (vec![], None), "{nothing}");
    }
    assert_eq!(session_page(&world, &[], "limit=5&uncertain=false").await, (order.clone(), None));
    let uncertain = world.call(APPLICATION, "GET", "/v1/sessions?uncertain=true&agentId=helper", None).await;
    assert_eq!(uncertain.body, r#"{"sessions":[]}"#);
    let ann = [("nylorun-subject", "ann"), ("nylorun-scopes", "sessions:own")];
    assert_eq!(session_page(&world, &ann, "limit=5&agentId=helper").await, (order, None));
    let bob = [("nylorun-subject", "bob"), ("nylorun-scopes", "sessions:own")];
    assert_eq!(session_page(&world, &bob, "limit=5").await, (vec![], None));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_says_more_of_a_session_and_its_cursor_is_bound_to_the_filters() {
    let world = World::start().await;
    world.open_sessions(&["a", "b"]).await;
    let page = world.call(APPLICATION, "GET", "/v1/sessions?limit=1", None).await.json();
    let session = &page.get("sessions").and_then(|all| all.as_array().map(<[_]>::to_vec)).unwrap()[0];
    let names: Vec<_> = session.as_object().unwrap().iter().map(|(name, _)| name.as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "id",
            "agentId",
            "ownerUserId",
            "status",
            "activeTurnId",
            "lastTurnId",
            "sandboxId",
            "createdAt",
            "lastEventAt"
        ]
    );
    let created_at = session.get("createdAt").unwrap().as_str().unwrap();
    assert!(created_at.starts_with("20") && created_at.ends_with('Z'), "{created_at}");
    let cursor = page.get("nextCursor").unwrap().as_str().unwrap();
    for other in ["agentId=helper", "status=idle", "ownerUserId=ann", "uncertain=true"] {
        let target = format!("/v1/sessions?limit=1&cursor={cursor}&{other}");
        let answer = world.call(APPLICATION, "GET", &target, None).await;
        assert_eq!(answer.refusal(), (400, "cursor_mismatch".to_owned()), "{other}");
    }
    let misspelt = world.call(APPLICATION, "GET", "/v1/sessions?limit=1&state=idle", None).await;
    let known = "limit, cursor, agentId, status, sandboxId, ownerUserId, uncertain";
    let message = format!("\\\"state\\\" is no parameter of this list; it has {known}");
    assert_eq!(
        misspelt.body,
        format!(
            r#"{{"status":"rejected","code":"query_invalid","message":"{message}","details":{{"path":["state"]}}}}"#
        )
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_urls_cannot_carry_name_nothing() {
    let world = World::start().await;
    world.open_sessions(&[]).await;
    let open = r#"{"requestId":"r","agentId":"helper","ownerUserId":"ann"}"#;
    for id in [".", ".."] {
        for (target, body) in
            [(format!("/v1/sessions/{id}"), open.to_owned()), (format!("/v1/agents/{id}"), manifest_body(id))]
        {
            let answer = world.call(APPLICATION, "PUT", &target, Some(&body)).await;
            assert_eq!(answer.refusal(), (400, "request_rejected".to_owned()), "{target}");
            assert!(answer.text("message").contains("choose another id"), "{}", answer.body);
        }
        let missing = world.call(APPLICATION, "GET", &format!("/v1/sessions/{id}"), None).await;
        assert_eq!(missing.status, 404);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_are_told_who_they_are() {
    let world = World::start().await;
    let me = world.call(APPLICATION, "GET", "/v1/me", None).await;
    let all = r#"["agents:read","agents:write","sessions:own","sandboxes:write"]"#;
    assert_eq!(me.body, format!(r#"{{"scopes":{all},"agents":"*","via":"application:app"}}"#));
    let admin = world.call(MANAGEMENT, "GET", "/v1/me", None).await;
    assert_eq!(admin.body, r#"{"scopes":[],"agents":"*","via":"management:admin"}"#);
    let studio = world.call(STUDIO, "GET", "/v1/me", None).await;
    assert_eq!(studio.text("via"), "application:studio");
    let bearer = format!("Bearer {APPLICATION}");
    let headers = [
        ("nylorun-protocol", "4"),
        ("authorization", bearer.as_str()),
        ("nylorun-subject", "ann@example.com"),
        ("nylorun-scopes", "sessions:own vaults:own"),
    ];
    let subject = world.ask("GET", "/v1/me", &headers, None).await;
    assert_eq!(subject.body, r#"{"subject":"ann@example.com","scopes":["sessions:own"],"agents":"*","via":"subject"}"#);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_refused_by_name_and_stop_at_once() {
    let world = World::start().await;
    let absent = world.call(MANAGEMENT, "DELETE", "/v1/tenant/keys/none", None).await;
    assert_eq!(
        (absent.status, absent.text("code"), absent.text("message")),
        (404, "request_rejected".into(), "No key none".into())
    );
    for (name, code) in [
        ("Bad", "invalid_request"),
        ("studio", "request_rejected"),
        ("bootstrap", "request_rejected"),
        ("admin", "request_rejected"),
    ] {
        let answer = world.call(MANAGEMENT, "PUT", &format!("/v1/tenant/keys/{name}"), None).await;
        assert_eq!(answer.refusal(), (400, code.to_owned()), "{name}");
    }
    let made = world.call(MANAGEMENT, "PUT", "/v1/tenant/keys/ci", None).await;
    let first = made.text("key");
    assert_eq!(world.call(&first, "GET", "/v1/me", None).await.text("via"), "application:ci");
    let rotated = world.call(MANAGEMENT, "PUT", "/v1/tenant/keys/ci", None).await;
    assert_eq!(rotated.json().get("rotated"), Some(&json("true")));
    assert_eq!(world.call(&first, "GET", "/v1/me", None).await.refusal(), (401, "credential_invalid".to_owned()));
    assert_eq!(world.call(&rotated.text("key"), "GET", "/v1/me", None).await.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_inside_are_never_told() {
    let world = World::start().await;
    world.open_sessions(&["s"]).await;
    let body = r#"{"path":"panic"}"#;
    let answer = world.call(APPLICATION, "POST", "/v1/sessions/s/sandbox/read", Some(body)).await;
    assert_eq!(answer.body, r#"{"status":"rejected","code":"internal_error","message":"Internal error"}"#);
    assert_eq!(answer.status, 500);
    assert_eq!(world.call(APPLICATION, "GET", "/v1/agents", None).await.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_the_application_that_was_lost_is_answered_and_recorded() {
    let world = World::start().await;
    world.open_sessions(&["s"]).await;
    for (tool, body) in [("bash", r#"{"command":"the workspace dies"}"#), ("read", r#"{"path":"a"}"#)] {
        let answer = world.call(APPLICATION, "POST", &format!("/v1/sessions/s/sandbox/{tool}"), Some(body)).await;
        let lost = r#"{"kind":"failed","code":"sandbox.uncertain","message":"the workspace ended before it answered"}"#;
        let read = r#"{"kind":"completed","output":{"path":"a"}}"#;
        assert_eq!((answer.status, answer.body.as_str()), (200, if tool == "bash" { lost } else { read }));
    }
    let items = world.call(APPLICATION, "GET", "/v1/sessions/s/items", None).await.json();
    let [event] = items.get("items").and_then(Value::as_array).expect("a list") else { panic!("one event") };
    assert_eq!(event.get("type").and_then(Value::as_str), Some("sandbox.exec"));
    let payload = event.get("payload").expect("it has a payload").to_json();
    let told = concat!(
        r#"{"tool":"bash","command":"the workspace dies","outcome":"uncertain","#,
        r#""code":"sandbox.uncertain","durationMs":"#
    );
    assert!(payload.as_str().starts_with(told), "{}", payload.as_str());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_says_how_it_is() {
    let world = World::start().await;
    for method in ["GET", "POST", "DELETE"] {
        let health = world.ask(method, "/health", &[], None).await;
        assert_eq!(
            (health.status, health.text("service"), health.text("hostId")),
            (200, "nylorun-runtime".into(), "host_0123456789abcdefghjkmnpqrs".into())
        );
        let ready = world.ask(method, "/ready", &[], None).await;
        assert_eq!(
            (ready.status, ready.body.as_str()),
            (
                200,
                concat!(
                    r#"{"status":"ready","service":"nylorun-runtime","#,
                    r#""checks":{"listener":true,"tenant":true,"database":true}}"#
                )
            )
        );
    }
    assert_eq!(world.ask("POST", "/health", &[("content-type", "text/plain")], Some("x")).await.status, 415);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fixture_model_is_selected_like_another() {
    let world = World::start().await;
    let select = async |model: &str, more: &str| {
        let ids = r#""requestId":"r","idempotencyKey":"k","provider":"fixture""#;
        let body = format!(r#"{{{ids},"model":"{model}"{more}}}"#);
        world.call(MANAGEMENT, "PUT", "/v1/tenant/model/selection", Some(&body)).await
    };
    assert_eq!(select("other", "").await.status, 400);
    assert_eq!(select("fixture", r#","baseUrl":"http://h/v1""#).await.status, 400);
    let before = world.call(MANAGEMENT, "GET", "/v1/tenant/model", None).await;
    assert_eq!(before.body, r#"{"configured":false}"#);
    for _ in 0..2 {
        let selected = select("fixture", "").await;
        assert_eq!((selected.status, selected.text("provider").as_str()), (200, "fixture"));
    }
    let status = world.call(MANAGEMENT, "GET", "/v1/tenant", None).await;
    assert!(status.body.contains(r#""model":true"#), "{}", status.body);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_a_start_registers_again_are_not_put_or_removed() {
    let world = World::start().await;
    for id in ["local", "local-management"] {
        for method in ["PUT", "DELETE"] {
            let refused = world.call(MANAGEMENT, method, &format!("/v1/tenant/keys/{id}"), None).await;
            assert_eq!(refused.refusal(), (400, "request_rejected".to_owned()), "{method} {id}: {}", refused.body);
        }
    }
    world.stop().await;
}
