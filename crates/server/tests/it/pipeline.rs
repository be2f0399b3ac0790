//! The order of the pipeline (api 1.1): of two things that are wrong, the earlier one answers.

use crate::client::Answer;
use crate::world::{APPLICATION, World, manifest_body};

/// What may be wrong with a request, in the order in which it must be told.
const WRONGS: [(&str, u16, &str); 7] = [
    ("host", 421, "host_rejected"),
    ("media type", 415, "unsupported_media_type"),
    ("protocol", 426, "protocol_unsupported"),
    ("tenant", 404, "not_found"),
    ("path", 400, "request_rejected"),
    ("credential", 401, "credential_invalid"),
    ("body", 400, "request_rejected"),
];

async fn ask_with(world: &World, wrong: &[&str]) -> Answer {
    let is = |name| wrong.contains(&name);
    let key = if is("credential") { "0".repeat(64) } else { APPLICATION.to_owned() };
    let (host, bearer) = (world.addr.to_string(), format!("Bearer {key}"));
    let headers = [
        ("host", if is("host") { "evil.example" } else { host.as_str() }),
        ("nylorun-protocol", if is("protocol") { "99" } else { "10" }),
        ("nylorun-tenant", if is("tenant") { "tn_other" } else { "" }),
        ("content-type", if is("media type") { "text/plain" } else { "application/json" }),
        ("authorization", bearer.as_str()),
    ];
    let target = if is("path") { "/v1/sessions/%zz/commands" } else { "/v1/sessions/none/commands" };
    let body = if is("body") { "{" } else { r#"{"requestId":"r","idempotencyKey":"k","type":"cancel"}"# };
    world.ask("POST", target, &headers, Some(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_of_two_faults_answers() {
    let world = World::start().await;
    assert_eq!(ask_with(&world, &[]).await.refusal(), (404, "request_rejected".to_owned()));
    for (at, (first, status, code)) in WRONGS.iter().enumerate() {
        for (second, ..) in &WRONGS[at..] {
            let answer = ask_with(&world, &[first, second]).await;
            assert_eq!(answer.refusal(), (*status, (*code).to_owned()), "{first}, {second}: {}", answer.body);
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_compared_trimmed_and_in_lower_case() {
    let world = World::start().await;
    let port = world.addr.port();
    for (host, status) in [
        (format!("LOCALHOST:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        ("localhost".to_owned(), 421),
        (format!("localhost:{}", port.wrapping_add(1)), 421),
        (format!("localhost:{port}.evil.example"), 421),
        (String::new(), 421),
    ] {
        assert_eq!(world.ask("GET", "/health", &[("host", &host)], None).await.status, status, "{host}");
    }
    let twice = [("host", "localhost"), ("host", "localhost")];
    let answer = world.ask("GET", "/health", &twice, None).await;
    assert!([400, 421].contains(&answer.status), "{}", answer.status);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_reach_only_the_api_and_the_resource_metadata() {
    let world = World::start().await;
    let origin = [("origin", "https://example.com"), ("nylorun-protocol", "10")];
    for path in ["/health", "/ready", "/openapi.json", "/openapi/runtime.json", "/", "/v1", "/v2/x"] {
        assert_eq!(
            world.ask("GET", path, &origin, None).await.refusal(),
            (403, "origin_rejected".to_owned()),
            "{path}"
        );
    }
    // Here the origin is refused only once a key is sent: before, the credential is missing.
    assert_eq!(world.ask("GET", "/v1/agents", &origin, None).await.refusal(), (401, "credential_required".to_owned()));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/x"] {
        assert_eq!(world.ask("GET", path, &origin, None).await.refusal(), (404, "not_found".to_owned()));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options_are_answered_for_every_path_without_cors() {
    let world = World::start().await;
    for path in ["/v1/agents", "/nothing", "*"] {
        let answer = world.ask("OPTIONS", path, &[], None).await;
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(answer.header("allow"), Some("GET, POST, PUT, DELETE, OPTIONS"));
        assert!(!answer.headers.keys().any(|name| name.starts_with("access-control")));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_protocol_names_versions_and_features() {
    let world = World::start().await;
    let features = [
        r#""runtime-tenants","admin-status","studio-principal","artifacts","management-api","resource-server""#,
        r#""tenant-fixture-model","subject-headers","trusted-issuers","session-reads","calls-export","message-deltas""#,
    ];
    let protocol = format!(r#"{{"min":4,"max":10,"features":[{}]}}"#, features.join(","));
    let expected = format!(r#"{{"status":"rejected","code":"protocol_unsupported","protocol":{protocol}}}"#);
    // An unknown route is told of the protocol first; only a known one asks for a credential before (decisions, Small
    // print).
    for path in ["/v1/nothing", "/v2", "/", "/v1/agents/"] {
        let answer = world.ask("GET", path, &[], None).await;
        assert_eq!((answer.status, &answer.body), (426, &expected), "{path}");
    }
    assert_eq!(world.ask("GET", "/v1/agents", &[], None).await.status, 401);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn head_and_other_methods_are_unknown_routes() {
    let world = World::start().await;
    for method in ["HEAD", "PATCH", "TRACE", "DELETE", "PURGE"] {
        let answer = world.call(APPLICATION, method, "/v1/agents", None).await;
        assert_eq!(answer.status, 404, "{method}");
        if method != "HEAD" {
            assert_eq!(answer.text("message"), "Route not found");
        }
        assert_eq!(world.call(&"0".repeat(64), method, "/v1/agents", None).await.status, 401, "{method}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_taken_as_it_is_or_not_at_all() {
    let world = World::start().await;
    let bearer = format!("Bearer {APPLICATION}");
    let body = manifest_body("a");
    for (coding, status) in [("identity", 200), ("Identity", 200), ("", 200), ("gzip", 415), ("x-gzip, identity", 415)]
    {
        let headers = [
            ("nylorun-protocol", "10"),
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("content-encoding", coding),
        ];
        let answer = world.ask("PUT", "/v1/agents/a", &headers, Some(&body)).await;
        assert_eq!(answer.status, status, "{coding}: {}", answer.body);
        if status == 415 {
            assert!(answer.text("message").contains("Content-Encoding"), "{}", answer.body);
        }
    }
    // Without a body there is nothing that could be encoded.
    let headers = [("nylorun-protocol", "10"), ("authorization", bearer.as_str()), ("content-encoding", "gzip")];
    assert_eq!(world.ask("GET", "/v1/agents", &headers, None).await.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn challenges_name_what_was_wrong() {
    let world = World::start().await;
    let challenge = |answer: Answer| answer.header("www-authenticate").map(str::to_owned);
    let protocol = ("nylorun-protocol", "10");
    assert_eq!(challenge(world.ask("GET", "/v1/me", &[protocol], None).await).as_deref(), Some("Bearer"));
    let wrong = world.call(&"0".repeat(64), "GET", "/v1/tenant", None).await;
    assert_eq!(challenge(wrong).as_deref(), Some("Bearer error=\"invalid_token\""));
    assert_eq!(challenge(world.call(APPLICATION, "GET", "/v1/tenant", None).await), None);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_say_their_type_and_length() {
    let world = World::start().await;
    let answer = world.call(APPLICATION, "GET", "/v1/agents", None).await;
    assert_eq!(answer.body, r#"{"agents":[]}"#);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("content-length"), Some("13"));
    world.stop().await;
}
