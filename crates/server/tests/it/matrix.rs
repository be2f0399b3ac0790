//! Who may call what, from the route table: every role, alone and for a subject, on every route.

use nylorun_domain::caller::Audience;
use nylorun_server::route::{ROUTES, Route, Scope, Verb};

use crate::world::{APPLICATION, MANAGEMENT, STUDIO, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum As {
    Application,
    Management,
    Studio,
    /// An application key for a subject with every scope.
    Subject,
}

/// The refusal that the specification wants (api 1.5, 2, 3), or none.
fn refusal(route: &Route, caller: As) -> Option<&'static str> {
    match (route.audience, caller) {
        (Audience::Runtime | Audience::RuntimeByKey | Audience::RuntimeAlone, As::Management) => {
            Some("key_role_mismatch")
        }
        (Audience::Management, As::Application | As::Subject) => Some("key_role_mismatch"),
        (Audience::RuntimeAlone, As::Subject) => Some("scope_required"),
        (
            Audience::Runtime | Audience::RuntimeByKey | Audience::RuntimeAlone | Audience::Everyone,
            As::Application | As::Studio,
        )
        | (Audience::Management, As::Management | As::Studio)
        | (Audience::Everyone, As::Management | As::Subject)
        | (Audience::Runtime | Audience::RuntimeByKey, As::Subject)
        | (Audience::Anyone, _) => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_caller_on_every_route() {
    let world = World::start().await;
    for route in ROUTES {
        let target = route.path.replace("{tool}", "read").replace(['{', '}'], "");
        for caller in [As::Application, As::Management, As::Studio, As::Subject] {
            let key = match caller {
                As::Application | As::Subject => APPLICATION,
                As::Management => MANAGEMENT,
                As::Studio => STUDIO,
            };
            let bearer = format!("Bearer {key}");
            let mut headers = vec![("nylorun-protocol", "10"), ("authorization", bearer.as_str())];
            let scopes = Scope::ALL.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ");
            if caller == As::Subject {
                headers.extend([("nylorun-subject", "ann"), ("nylorun-scopes", scopes.as_str())]);
            }
            let answer = world.ask(route.method.as_str(), &target, &headers, None).await;
            let expected = refusal(route, caller);
            // An answer to HEAD has no body that could name a code.
            let code = match (answer.status, route.method) {
                (403, Verb::Head) => expected.map(str::to_owned),
                (403, _) => Some(answer.text("code")),
                _ => None,
            };
            assert_eq!(code.as_deref(), expected, "{caller:?} {} {}: {}", route.name, target, answer.body);
            assert_ne!(answer.status, 401, "{caller:?} {}", route.name);
        }
    }
    world.stop().await;
}

/// The callers and scopes of the specification's tables, written down a second time: the table must say the same.
#[test]
fn the_table_is_that_of_the_specification() {
    let a = "agents:read agents:write";
    let expected = [
        ("GET", "/v1/agents", Audience::Runtime, a),
        ("PUT", "/v1/agents/{agentId}", Audience::Runtime, "agents:write"),
        ("PUT", "/v1/files/{file}", Audience::RuntimeAlone, ""),
        ("HEAD", "/v1/files/{file}", Audience::RuntimeAlone, ""),
        ("GET", "/v1/sessions", Audience::Runtime, "sessions:own"),
        ("PUT", "/v1/sessions/{id}", Audience::Runtime, "sessions:own"),
        ("GET", "/v1/sessions/{id}", Audience::Runtime, "sessions:own"),
        ("GET", "/v1/sessions/{id}/manifest", Audience::RuntimeByKey, a),
        ("POST", "/v1/sessions/{id}/commands", Audience::Runtime, "sessions:own"),
        ("DELETE", "/v1/sessions/{id}/queue/{messageId}", Audience::Runtime, "sessions:own"),
        ("GET", "/v1/sessions/{id}/events", Audience::Runtime, "sessions:own"),
        ("GET", "/v1/sessions/{id}/items", Audience::Runtime, "sessions:own"),
        ("GET", "/v1/sessions/{id}/usage", Audience::RuntimeAlone, ""),
        ("GET", "/v1/sessions/{id}/calls/model", Audience::RuntimeAlone, ""),
        ("POST", "/v1/sessions/{id}/sandbox/{tool}", Audience::RuntimeAlone, ""),
        ("POST", "/v1/sessions/{id}/effects/{effectId}/settle", Audience::RuntimeAlone, ""),
        ("GET", "/v1/me", Audience::Everyone, "agents:read agents:write sessions:own sandboxes:write"),
        ("GET", "/v1/access/jwks", Audience::Anyone, ""),
        ("GET", "/v1/tenant", Audience::Management, ""),
        ("PUT", "/v1/tenant/config/seed", Audience::Management, ""),
        ("POST", "/v1/tenant/reset", Audience::Management, ""),
        ("GET", "/v1/tenant/keys", Audience::Management, ""),
        ("PUT", "/v1/tenant/keys/{keyId}", Audience::Management, ""),
        ("DELETE", "/v1/tenant/keys/{keyId}", Audience::Management, ""),
        ("GET", "/v1/tenant/models", Audience::Management, ""),
        ("GET", "/v1/tenant/providers", Audience::Management, ""),
        ("GET", "/v1/tenant/model", Audience::Management, ""),
        ("PUT", "/v1/tenant/model", Audience::Management, ""),
        ("PUT", "/v1/tenant/model/selection", Audience::Management, ""),
        ("GET", "/v1/tenant/usage", Audience::Management, ""),
        ("GET", "/v1/tenant/budgets", Audience::Management, ""),
        ("PUT", "/v1/tenant/budgets", Audience::Management, ""),
        ("GET", "/v1/tenant/calls/model", Audience::Management, ""),
        ("GET", "/v1/tenant/sandbox", Audience::Management, ""),
        ("PUT", "/v1/tenant/sandbox", Audience::Management, ""),
        // Beyond the specification.
        ("GET", "/v1/tenant/retention", Audience::Management, ""),
        ("PUT", "/v1/tenant/retention", Audience::Management, ""),
    ];
    let declared: Vec<_> = ROUTES
        .iter()
        .map(|route| {
            let scopes = route.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ");
            (route.method.as_str(), route.path, route.audience, scopes)
        })
        .collect();
    let expected: Vec<_> =
        expected.into_iter().map(|(method, path, who, scopes)| (method, path, who, scopes.to_owned())).collect();
    assert_eq!(declared, expected);
    assert!(ROUTES.iter().all(|route| route.method != Verb::Post
        || route.path.starts_with("/v1/sessions/")
        || route.path == "/v1/tenant/reset"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_for_scopes_names_the_routes_scopes() {
    let world = World::start().await;
    let bearer = format!("Bearer {APPLICATION}");
    let headers = [
        ("nylorun-protocol", "10"),
        ("authorization", bearer.as_str()),
        ("nylorun-subject", "ann"),
        ("nylorun-scopes", "vaults:own"),
    ];
    let answer = world.ask("GET", "/v1/agents", &headers, None).await;
    assert_eq!(answer.status, 403);
    let details = answer.json().get("details").map(|details| details.to_json().as_str().to_owned());
    assert_eq!(details.as_deref(), Some(r#"{"scopes":["agents:read","agents:write"]}"#));
    let answer = world.ask("POST", "/v1/sessions/s/sandbox/read", &headers, None).await;
    let details = answer.json().get("details").map(|details| details.to_json().as_str().to_owned());
    assert_eq!((answer.status, details.as_deref()), (403, Some(r#"{"scopes":[]}"#)));
    world.stop().await;
}
