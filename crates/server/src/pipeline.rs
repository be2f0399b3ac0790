//! The way of a request, step by step (api 1.1). The first failure answers.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::{Method, Request, Response, header};
use nylorun_domain::caller::Caller;
use nylorun_domain::json::Value;
use nylorun_wire::body::Body;
use nylorun_wire::code::Code;
use nylorun_wire::error::Rejection;
use nylorun_wire::protocol::{self, Version};

use crate::Server;
use crate::challenge::Challenges;
use crate::host::{self, is_resource_metadata};
use crate::path::decode_segment;
use crate::reply::{Reply, ReplyBody, refusal};
use crate::request::{Call, Head, Params, Sent};
use crate::route::{self, Audience, BodyKind, Match, Route, Work};
use crate::secure::{authenticate, check_scopes};
use crate::stage::Stage;
use crate::upload::{Upload, check_content_type, too_large};

/// Largest JSON body, in bytes (api 1.13).
pub(crate) const MAX_BODY: usize = 1 << 20;

/// How much of a body that is too large is still taken from the client.
const MAX_DISCARDED: usize = 16 << 20;

const METHODS: &str = "GET, POST, PUT, DELETE, OPTIONS";
const PROTOCOL: &str = "nylorun-protocol";
const TENANT: &str = "nylorun-tenant";

/// Answers one request.
pub(crate) async fn respond(server: Arc<Server>, request: Request<Incoming>) -> Response<ReplyBody> {
    let (parts, body) = request.into_parts();
    let head = Head::new(parts);
    match pass(&server, head, body).await {
        Ok(reply) => reply.into_response(),
        Err(rejection) => refusal(&rejection),
    }
}

async fn pass(server: &Arc<Server>, head: Head, body: Incoming) -> Result<Reply, Rejection> {
    check_host(server, &head)?;
    check_origin(&head)?;
    if head.method == Method::OPTIONS {
        return Ok(Reply::Allow(METHODS));
    }
    if !head.path.starts_with('/') {
        return Err(Rejection::new(400, Code::InvalidRequest, "The request target must be a path"));
    }
    // What is wrong with the path's parameters is answered in its turn.
    let found = route::find(&head.method, &head.path).map(|found| (found.route, decode_params(&found)));
    check_body(&head, &body, found.as_ref().map(|(route, _)| *route))?;
    if let Some(document) = host::document(server, &head).await {
        return document;
    }
    if let Some((route, _)) = &found {
        require_something(server, &head, route)?;
    }
    check_protocol(&head)?;
    check_tenant(server, &head)?;
    match found {
        Some((route, params)) => {
            let is_page = route.pages.are_asked_for(&head.query);
            let answer = serve(server, head, body, route, params?).await;
            answer.map_err(|rejection| if is_page { of_page(rejection) } else { rejection })
        }
        None => {
            authenticate(server, &head, Audience::Everyone).await?;
            Err(Rejection::missing("Route not found"))
        }
    }
}

/// The refusal of a page. It begins no work, so that nothing but storage which does not answer makes it a 503, and
/// that has a code of its own (api 1.8).
fn of_page(mut rejection: Rejection) -> Rejection {
    if (rejection.status, rejection.code) == (503, Code::RequestRejected) {
        rejection.code = Code::ReadsUnavailable;
    }
    rejection
}

/// Step 1: this server answers for the named host.
fn check_host(server: &Server, head: &Head) -> Result<(), Rejection> {
    let allowed = |host: &str| server.config.allowed_hosts.contains(&host.trim().to_ascii_lowercase());
    match head.header(header::HOST) {
        Sent::Once(host) if allowed(host) => Ok(()),
        Sent::Once(_) | Sent::Absent | Sent::Unreadable => {
            Err(Rejection::new(421, Code::HostRejected, "This server does not answer for the Host that was named"))
        }
    }
}

/// Step 2: browsers reach only the API and the protected-resource document.
fn check_origin(head: &Head) -> Result<(), Rejection> {
    let served = head.path.starts_with("/v1/") || is_resource_metadata(&head.path);
    if head.sends(header::ORIGIN) && !served {
        return Err(Rejection::new(403, Code::OriginRejected, "Requests with an Origin are not served here"));
    }
    Ok(())
}

/// Step 4: a body is JSON, where the route does not say otherwise, and not compressed: its size is bounded as it comes.
fn check_body(head: &Head, body: &Incoming, route: Option<&Route>) -> Result<(), Rejection> {
    let refuse = |message: &str| Err(Rejection::new(415, Code::UnsupportedMediaType, message));
    let takes_bytes = route.is_some_and(|route| matches!(route.body, BodyKind::Bytes { .. }));
    if body.is_end_stream() {
        Ok(())
    } else if !takes_bytes && !is_json(head.header(header::CONTENT_TYPE)) {
        refuse("Send the body as application/json")
    } else if !is_plain(head.header(header::CONTENT_ENCODING)) {
        refuse("Send the body as it is: this server takes no Content-Encoding but identity")
    } else {
        Ok(())
    }
}

/// Whether a body with this `Content-Encoding` is not encoded.
fn is_plain(encoding: Sent<'_>) -> bool {
    match encoding {
        Sent::Absent => true,
        Sent::Once(coding) => coding.trim().is_empty() || coding.trim().eq_ignore_ascii_case("identity"),
        Sent::Unreadable => false,
    }
}

fn is_json(content_type: Sent<'_>) -> bool {
    let Sent::Once(value) = content_type else { return false };
    let media_type = value.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/json")
}

/// Step 6: who sends neither a version nor a credential is no client of this API, and is told where a token can be had.
fn require_something(server: &Server, head: &Head, route: &Route) -> Result<(), Rejection> {
    if route.audience == Audience::Anyone || head.sends(PROTOCOL) || head.sends(header::AUTHORIZATION) {
        return Ok(());
    }
    Err(Challenges::of(server, head, route.audience).credential_required())
}

/// Step 7: a version that this server speaks.
fn check_protocol(head: &Head) -> Result<Version, Rejection> {
    let version = match head.header(PROTOCOL) {
        Sent::Once(value) => Version::parse(value),
        Sent::Absent | Sent::Unreadable => None,
    };
    version.ok_or_else(|| Rejection::protocol_unsupported(protocol::to_value()))
}

/// Step 9: no other tenant is meant.
fn check_tenant(server: &Server, head: &Head) -> Result<(), Rejection> {
    match head.header(TENANT) {
        Sent::Absent => Ok(()),
        Sent::Once(named) if named.trim().is_empty() || named.trim() == server.app.tenant_id().as_str() => Ok(()),
        Sent::Once(_) | Sent::Unreadable => Err(Rejection::opaque()),
    }
}

/// Step 10: the path's parameters, percent-decoded.
fn decode_params(found: &Match<'_>) -> Result<Params, Rejection> {
    let decode = |(name, raw): &(&'static str, &str)| {
        let value = decode_segment(raw).map_err(|_| Rejection::bad_request("Malformed path"))?;
        Ok((*name, value))
    };
    found.params.iter().map(decode).collect()
}

/// Step 11: who calls, whether they may, what they send, and the answer.
async fn serve(
    server: &Arc<Server>,
    head: Head,
    body: Incoming,
    route: &'static Route,
    params: Params,
) -> Result<Reply, Rejection> {
    let caller = authenticate(server, &head, route.audience).await?;
    if let Some(caller) = &caller {
        check_scopes(server, &head, caller, route)?;
    }
    if route.work == Work::Begins && server.stages.now() != Stage::Running {
        let message = "The server is being stopped: try again shortly";
        return Err(Rejection::new(503, Code::RequestRejected, message).with_retry_after(1));
    }
    let received = receive(server, &head, body, route).await?;
    let call = call(server, route, head, caller, params, received);
    let request_id = call.body.as_ref().and_then(|body| body.optional_text("requestId"));
    let answer = run(route, call).await;
    answer.map_err(|rejection| match request_id {
        Some(request_id) => rejection.with_request_id(request_id),
        None => rejection,
    })
}

fn call(
    server: &Arc<Server>,
    route: &'static Route,
    head: Head,
    caller: Option<Caller>,
    params: Params,
    received: Received,
) -> Call {
    let last_event_id = match head.header("last-event-id") {
        Sent::Absent => None,
        Sent::Once(id) => Some(id.to_owned()),
        // Not a cursor that anybody was given: it is refused as one that cannot be read.
        Sent::Unreadable => Some(String::new()),
    };
    let (body, upload) = match received {
        Received::Nothing => (None, None),
        Received::Json(body) => (Some(body), None),
        Received::Bytes(upload) => (None, Some(upload)),
    };
    Call { server: server.clone(), route, caller, params, query: head.query, last_event_id, body, upload }
}

/// Runs the handler in a task of its own: a client that goes away does not stop half of a use case, and a panic ends
/// nothing but its request.
async fn run(route: &'static Route, call: Call) -> Result<Reply, Rejection> {
    match tokio::spawn((route.handler)(call)).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::error!(route = route.path, %error, "a handler panicked");
            Err(Rejection::internal())
        }
    }
}

/// What a request brought for its route.
enum Received {
    /// Nothing that the route looks at.
    Nothing,
    /// JSON that follows the route's schema.
    Json(Body),
    /// Bytes that are still to come.
    Bytes(Upload),
}

async fn receive(server: &Server, head: &Head, body: Incoming, route: &'static Route) -> Result<Received, Rejection> {
    let (schema, may_be_absent) = match &route.body {
        BodyKind::None => return Ok(Received::Nothing),
        BodyKind::Bytes { what, limit_bytes } => {
            check_content_type(head.header(header::CONTENT_TYPE))?;
            let upload = Upload::new(body, *limit_bytes, server.config.limits.body);
            if upload.is_declared_too_large() {
                upload.discard().await;
                return Err(too_large(what, *limit_bytes));
            }
            return Ok(Received::Bytes(upload));
        }
        BodyKind::Json(schema) => (schema, false),
        BodyKind::OptionalJson(schema) => (schema, true),
    };
    let bytes = collect(server, head, body).await?;
    let text = match std::str::from_utf8(&bytes) {
        Ok("") if may_be_absent => "{}",
        Ok(text) => text,
        Err(_) => return Err(Rejection::bad_request("Invalid JSON")),
    };
    let body = Body::parse(text).map_err(|error| {
        let details = [("problem", Value::from(error.problem)), ("offset", Value::from(error.offset as i64))];
        Rejection::bad_request("Invalid JSON").with_details(Value::object(details))
    })?;
    schema.check(body.value()).map_err(|problems| Rejection::invalid(&problems))?;
    Ok(Received::Json(body))
}

/// The whole body, within its size and time. The bytes of all bodies that are read at once are bounded too.
async fn collect(server: &Server, head: &Head, body: Incoming) -> Result<Vec<u8>, Rejection> {
    let declared = body.size_hint().exact().map_or(MAX_BODY, |length| usize::try_from(length).unwrap_or(MAX_BODY));
    let expected = u32::try_from(declared.min(MAX_BODY)).unwrap_or(u32::MAX);
    let read = async {
        let _room = server.bodies.acquire_many(expected).await;
        read_bounded(body, expected).await
    };
    match within(server.config.limits.body, read).await {
        Some(Ok(bytes)) if bytes.len() <= MAX_BODY => Ok(bytes),
        Some(Ok(_)) => Err(Rejection::new(413, Code::RequestRejected, "The body is larger than 1 MiB")),
        Some(Err(error)) => {
            tracing::debug!(path = head.path, %error, "a request's body broke off");
            Err(Rejection::new(400, Code::InvalidRequest, "The body could not be read"))
        }
        None => Err(Rejection::new(400, Code::InvalidRequest, "The body did not arrive in time")),
    }
}

/// The body, or something longer than [`MAX_BODY`] when it is longer. What is too long is still taken from the client,
/// up to a bound: one that is cut off while it sends would see a broken connection instead of the refusal.
async fn read_bounded(mut body: Incoming, expected: u32) -> Result<Vec<u8>, hyper::Error> {
    let mut bytes = Vec::with_capacity(expected as usize);
    let mut taken = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        taken += data.len();
        if taken > MAX_DISCARDED {
            break;
        }
        let room = (MAX_BODY + 1).saturating_sub(bytes.len());
        bytes.extend_from_slice(&data[..data.len().min(room)]);
    }
    Ok(bytes)
}

async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, work).await.ok()
}
