//! A server that records each request and answers from a function.

use std::future::Future;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use nylorun_client::{Client, Key, REQUIRED_FEATURES, TenantClient};
use serde_json::{Value, json};

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// Method and path with query.
    pub(crate) line: String,
    /// Headers by lower-case name.
    pub(crate) headers: Vec<(String, String)>,
    /// The body, when it is JSON.
    pub(crate) body: Option<Value>,
}

impl Seen {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A running server.
pub(crate) struct Stub {
    /// Its base URL.
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Stub {
    /// Starts a server whose every answer is what `answer` makes of the request.
    pub(crate) async fn start<F, A>(answer: F) -> Self
    where
        F: Fn(Seen) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        let app = Router::new().fallback(move |request: Request| {
            let (answer, record) = (answer.clone(), Arc::clone(&record));
            async move {
                let request = read(request).await;
                record.lock().unwrap().push(request.clone());
                answer(request).await
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, seen }
    }

    /// Requests so far, in order of arrival.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Request lines so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }

    /// A client of the Runtime API.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url, Key::new("app-key").unwrap()).unwrap()
    }

    /// A client of the Management API.
    pub(crate) fn tenant(&self) -> TenantClient {
        TenantClient::new(&self.url, Key::new("management-key").unwrap()).unwrap()
    }
}

async fn read(request: Request) -> Seen {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
    };
    Seen {
        line: format!("{} {}", parts.method, parts.uri),
        headers: parts.headers.iter().map(header).collect(),
        body: serde_json::from_slice(&body).ok(),
    }
}

/// A JSON answer.
pub(crate) fn answer(status: u16, body: &Value) -> Response {
    let builder = Response::builder().status(status).header("content-type", "application/json");
    builder.body(Body::from(body.to_string())).unwrap()
}

/// What a healthy server says of itself.
pub(crate) fn health() -> Value {
    json!({"status": "ok", "service": "nylorun-runtime", "version": "0.1.0", "coreVersion": "0.1.0", "hostId": "host_x",
        "pid": 1, "protocol": {"min": 4, "max": 10, "features": REQUIRED_FEATURES}})
}

/// An event stream of these pieces; `Err` cuts the connection there.
pub(crate) fn event_stream(
    pieces: impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static,
) -> Response {
    let builder = Response::builder().header("content-type", "text/event-stream");
    builder.body(Body::from_stream(pieces)).unwrap()
}
