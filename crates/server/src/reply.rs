//! What is answered, and how it becomes an HTTP response.

use std::convert::Infallible;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use http_body_util::{Either, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use nylorun_domain::json::{Json, Value};
use nylorun_wire::error::Rejection;

/// The chunks of an event stream.
pub(crate) type Chunks = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>;

/// The body of a response.
pub(crate) type ReplyBody = Either<Full<Bytes>, StreamBody<Chunks>>;

/// An answer.
pub(crate) enum Reply {
    /// A JSON document.
    Json(StatusCode, Json),
    /// Nothing, with `200`.
    Empty,
    /// A public document, made once.
    Document(Bytes),
    /// A public document, made for the request.
    Published(Value),
    /// Nothing, with an `Allow` header.
    Allow(&'static str),
    /// Server-sent events.
    Events(Chunks),
}

impl Reply {
    /// `200` with this document.
    pub(crate) fn ok(value: &Value) -> Self {
        Self::Json(StatusCode::OK, value.to_json())
    }

    pub(crate) fn into_response(self) -> Response<ReplyBody> {
        match self {
            Self::Json(status, json) => json_response(status, bytes_of(json)),
            Self::Empty => Response::new(Either::Left(Full::default())),
            Self::Document(bytes) => published(bytes),
            Self::Published(document) => published(bytes_of(document.to_json())),
            Self::Allow(methods) => {
                let mut response = Response::new(Either::Left(Full::default()));
                *response.status_mut() = StatusCode::NO_CONTENT;
                set(&mut response, header::ALLOW, methods);
                response
            }
            Self::Events(chunks) => {
                let mut response = Response::new(Either::Right(StreamBody::new(chunks)));
                set(&mut response, header::CONTENT_TYPE, "text/event-stream");
                set(&mut response, header::CACHE_CONTROL, "no-cache");
                set(&mut response, header::CONNECTION, "keep-alive");
                set(&mut response, HeaderName::from_static("x-accel-buffering"), "no");
                response
            }
        }
    }
}

/// A document that a client may keep, and asks for again.
fn published(bytes: Bytes) -> Response<ReplyBody> {
    let mut response = json_response(StatusCode::OK, bytes);
    set(&mut response, header::CACHE_CONTROL, "no-cache");
    response
}

/// A refusal as a response, with its challenge and `Retry-After`.
pub(crate) fn refusal(rejection: &Rejection) -> Response<ReplyBody> {
    let status = StatusCode::from_u16(rejection.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_response(status, bytes_of(rejection.to_value().to_json()));
    if let Some(challenge) = rejection.challenge().and_then(|text| HeaderValue::from_str(text).ok()) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    if let Some(seconds) = rejection.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The document's bytes, without a copy.
pub(crate) fn bytes_of(json: Json) -> Bytes {
    struct Owner(Json);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            self.0.as_str().as_bytes()
        }
    }
    Bytes::from_owner(Owner(json))
}

fn json_response(status: StatusCode, body: Bytes) -> Response<ReplyBody> {
    let length = body.len();
    let mut response = Response::new(Either::Left(Full::new(body)));
    *response.status_mut() = status;
    set(&mut response, header::CONTENT_TYPE, "application/json");
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    response
}

fn set(response: &mut Response<ReplyBody>, name: HeaderName, value: &'static str) {
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(name, HeaderValue::from_static(value));
}
