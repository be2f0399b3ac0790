//! The OpenAPI 3.2 documents, made from the route table (api 7.3).

use nylorun_domain::caller::Scope;
use nylorun_domain::json::Value;
use nylorun_wire::schema::{FILE_HASH, ID, KEY_ID, Need, Schema, answers};

use crate::route::{AnswerKind, Audience, BodyKind, Pages, QueryParam, ROUTES, Refusal, Route};

/// `/openapi/runtime.json`
pub fn runtime_document() -> Value {
    let routes = || ROUTES.iter().filter(|route| route.audience != Audience::Management);
    let mut document = document("Nylorun Runtime API", routes);
    let groups = [("Agents", vec!["agents"]), ("Sessions", vec!["sessions"]), ("Service", vec!["service"])];
    let groups = groups
        .into_iter()
        .map(|(name, tags)| Value::object([("name", Value::from(name)), ("tags", names(tags.into_iter()))]));
    document.push(("x-tagGroups", Value::Array(groups.collect())));
    Value::object(document)
}

/// `/openapi/management.json`
pub fn management_document() -> Value {
    let belongs = |route: &&Route| matches!(route.audience, Audience::Management | Audience::Everyone);
    Value::object(document("Nylorun Management API", || ROUTES.iter().filter(belongs)))
}

type Members = Vec<(&'static str, Value)>;

fn document<I: Iterator<Item = &'static Route>>(title: &str, routes: impl Fn() -> I) -> Members {
    let info = [("title", Value::from(title)), ("version", Value::from(env!("CARGO_PKG_VERSION")))];
    let server = Value::object([
        ("url", Value::from("{origin}")),
        ("variables", Value::object([("origin", Value::object([("default", Value::from("http://localhost:8787"))]))])),
    ]);
    let mut paths: Vec<&'static str> = routes().map(|route| route.path).collect();
    paths.sort_unstable();
    paths.dedup();
    let paths = paths.into_iter().map(|path| {
        let operations = routes().filter(|route| route.path == path);
        let operations = operations.map(|route| (route.method.as_str().to_ascii_lowercase(), operation(route)));
        (path, Value::object(operations))
    });
    vec![
        ("openapi", Value::from("3.2.0")),
        ("info", Value::object(info)),
        ("servers", Value::Array(vec![server])),
        ("paths", Value::object(paths)),
        ("components", components()),
    ]
}

fn components() -> Value {
    let bearer = |description: &str| {
        Value::object([
            ("type", Value::from("http")),
            ("scheme", Value::from("bearer")),
            ("description", Value::from(description)),
        ])
    };
    let token = Value::object([
        ("type", Value::from("http")),
        ("scheme", Value::from("bearer")),
        ("bearerFormat", Value::from("JWT")),
        ("description", Value::from("A token of a trusted issuer")),
    ]);
    let schemes = Value::object([
        ("applicationKey", bearer("A key of the Runtime API")),
        ("managementKey", bearer("A key of the Management API")),
        ("issuerToken", token),
    ]);
    let schemas = Value::object([("Rejection", answers::REJECTION.to_openapi())]);
    Value::object([("securitySchemes", schemes), ("schemas", schemas)])
}

fn operation(route: &Route) -> Value {
    let credentials = credentials(route.audience);
    let security = credentials.iter().map(|scheme| Value::object([(*scheme, Value::Array(vec![]))])).collect();
    let mut members = vec![
        ("operationId", Value::from(route.name)),
        ("summary", Value::from(route.summary)),
        ("tags", names([route.tag].into_iter())),
        ("security", Value::Array(security)),
        ("x-nylorun-credentials", names(credentials.iter().copied())),
        ("x-nylorun-scopes", names(route.scopes.iter().copied().map(Scope::as_str))),
        ("parameters", Value::Array(parameters(route))),
    ];
    if let Some(body) = request_body(&route.body) {
        members.push(("requestBody", body));
    }
    members.push(("responses", responses(route)));
    Value::object(members)
}

/// The security schemes that reach a route of this audience.
fn credentials(audience: Audience) -> &'static [&'static str] {
    match audience {
        Audience::Runtime => &["applicationKey", "issuerToken"],
        Audience::RuntimeByKey | Audience::RuntimeAlone => &["applicationKey"],
        Audience::Management => &["managementKey"],
        Audience::Everyone => &["applicationKey", "managementKey", "issuerToken"],
        Audience::Anyone => &[],
    }
}

fn request_body(body: &BodyKind) -> Option<Value> {
    let (need, content) = match body {
        BodyKind::None => return None,
        BodyKind::Json(schema) => (Need::Required, json_content(schema.to_openapi())),
        BodyKind::OptionalJson(schema) => (Need::Optional, json_content(schema.to_openapi())),
        // Any media type; nothing is said of the bytes.
        BodyKind::Bytes { .. } => (Need::Required, Value::object([("*/*", Value::object::<&str>([]))])),
    };
    Some(Value::object([("required", Value::from(need == Need::Required)), ("content", content)]))
}

fn parameters(route: &Route) -> Vec<Value> {
    let path = route.params().map(|name| {
        Value::object([
            ("name", Value::from(name)),
            ("in", Value::from("path")),
            ("required", Value::from(true)),
            ("schema", param_schema(name).to_openapi()),
        ])
    });
    let query = route.query.iter().map(|QueryParam { name, schema, summary }| {
        Value::object([
            ("name", Value::from(*name)),
            ("in", Value::from("query")),
            ("description", Value::from(*summary)),
            ("schema", schema.to_openapi()),
        ])
    });
    let header = |name: &str, need: Need, description: &str| {
        Value::object([
            ("name", Value::from(name)),
            ("in", Value::from("header")),
            ("required", Value::from(need == Need::Required)),
            ("description", Value::from(description)),
            ("schema", Value::object([("type", Value::from("string"))])),
        ])
    };
    let mut parameters: Vec<_> = path.chain(query).collect();
    parameters.push(header("Nylorun-Protocol", Need::Required, "The protocol's version, 4 to 10"));
    if matches!(route.audience, Audience::Runtime | Audience::RuntimeByKey | Audience::Everyone) {
        parameters.push(header("Nylorun-Subject", Need::Optional, "The person for whom the application acts"));
        parameters.push(header("Nylorun-Scopes", Need::Optional, "What the person may do, separated by spaces"));
    }
    if matches!(route.answer, AnswerKind::Events(_)) {
        parameters.push(header("Last-Event-ID", Need::Optional, "Begin after the event of this cursor"));
    }
    parameters
}

fn param_schema(name: &str) -> Schema {
    match name {
        "keyId" => KEY_ID,
        "file" => FILE_HASH,
        "tool" => Schema::Words(&["bash", "read", "write", "edit", "grep", "glob"]),
        _ => ID,
    }
}

fn responses(route: &Route) -> Value {
    let mut refusals: Vec<(u16, String)> = vec![
        (401, unauthorized(route.audience).to_owned()),
        (403, "key_role_mismatch, scope_required, origin_rejected".to_owned()),
        (426, "protocol_unsupported".to_owned()),
    ];
    refusals.extend(general_refusals(route).into_iter().map(|(status, text): (u16, &str)| (status, text.to_owned())));
    for Refusal { status, code, when } in route.errors {
        refusals.push((*status, format!("{}: {when}", code.as_str())));
    }
    let mut statuses: Vec<u16> = refusals.iter().map(|(status, _)| *status).collect();
    statuses.sort_unstable();
    statuses.dedup();
    let refused = statuses.into_iter().map(|status| {
        let texts: Vec<_> =
            refusals.iter().filter(|(other, _)| *other == status).map(|(_, text)| text.as_str()).collect();
        let rejection = Value::object([("$ref", Value::from("#/components/schemas/Rejection"))]);
        let body = [("description", Value::from(texts.join("; "))), ("content", json_content(rejection))];
        (status.to_string(), Value::object(body))
    });
    Value::object(done(&route.answer).into_iter().chain(refused))
}

fn unauthorized(audience: Audience) -> &'static str {
    match audience {
        Audience::Runtime | Audience::RuntimeByKey | Audience::RuntimeAlone | Audience::Everyone | Audience::Anyone => {
            "credential_required, credential_invalid, token_expired, issuer_unavailable"
        }
        Audience::Management => "credential_required, credential_invalid",
    }
}

/// The answers of a request that is done, by their statuses.
fn done(answer: &AnswerKind) -> Vec<(String, Value)> {
    let with = |status: u16, description: &str, content: Option<Value>| {
        let members = [("description", Value::from(description))].into_iter();
        (status.to_string(), Value::object(members.chain(content.map(|content| ("content", content)))))
    };
    match answer {
        AnswerKind::Json(schema) => vec![with(200, "Done", Some(json_content(schema.to_openapi())))],
        AnswerKind::Stored(schema) => {
            let content = || Some(json_content(schema.to_openapi()));
            vec![with(200, "It was there before", content()), with(201, "It is new", content())]
        }
        AnswerKind::Empty => vec![with(200, "Done", None)],
        AnswerKind::Events(schema) => {
            let stream = Value::object([("itemSchema", schema.to_openapi())]);
            vec![with(200, "Done", Some(Value::object([("text/event-stream", stream)])))]
        }
    }
}

/// Refusals that follow from what a route reads.
fn general_refusals(route: &Route) -> Vec<(u16, &'static str)> {
    let mut refusals = match route.pages {
        Pages::Never => vec![(503, "request_rejected: the server's storage does not answer now")],
        Pages::WithLimit => {
            vec![(503, "request_rejected: the server's storage does not answer now, and no page is asked for")]
        }
        Pages::Always => vec![],
    };
    if route.audience != Audience::Management {
        refusals.push((400, "subject_invalid: the subject or its scopes are wrong"));
    }
    if route.params().next().is_some() {
        refusals.push((400, "request_rejected: the path is malformed, or a name in it breaks its grammar"));
    }
    match &route.body {
        BodyKind::Json(_) | BodyKind::OptionalJson(_) => refusals.extend([
            (400, "request_rejected: the body breaks its schema"),
            (413, "request_rejected: the body is larger than 1 MiB"),
            (415, "unsupported_media_type"),
        ]),
        BodyKind::None | BodyKind::Bytes { .. } => {}
    }
    refusals
}

fn json_content(schema: Value) -> Value {
    Value::object([("application/json", Value::object([("schema", schema)]))])
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Value {
    Value::Array(names.map(Value::from).collect())
}
