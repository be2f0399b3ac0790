//! A stub of a model provider on `127.0.0.1`, which answers what it is told and misbehaves on demand.
//!
//! It takes any method on any path, so it serves every provider's API: [`chat`], [`messages`], [`responses`] and
//! [`gemini`] write their streams; it stands for the endpoint of an HTTP tool too. Without a reply in its queue it
//! answers with [`ProviderStub::always`]'s, or with status 599.

pub mod chat;
pub mod gemini;
pub mod messages;
mod reply;
pub mod responses;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use bytes::Bytes;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use reply::{Piece, Reply};

/// A request that the stub got.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its method.
    pub method: Method,
    /// Its path.
    pub path: String,
    /// Its query, without the question mark; empty when it has none.
    pub query: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as it came.
    pub body: Bytes,
}

impl Recorded {
    /// The body as JSON; `null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// A header, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// What answers when the queue is empty.
type Answering = Arc<dyn Fn(&Recorded) -> Reply + Send + Sync>;

#[derive(Default)]
struct Script {
    queue: VecDeque<Reply>,
    answering: Option<Answering>,
    requests: Vec<Recorded>,
}

struct Shared {
    script: Mutex<Script>,
    /// How many requests came.
    count: watch::Sender<usize>,
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stub. It stops when it is dropped.
pub struct ProviderStub {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl ProviderStub {
    /// Starts a stub on a free port.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { script: Mutex::default(), count: watch::Sender::new(0) });
        let router = Router::new().fallback(handle).layer(DefaultBodyLimit::disable()).with_state(shared.clone());
        let server = tokio::spawn(async move {
            // The listener outlives every test, so an error has nobody to tell.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, server })
    }

    /// The base URL, whoever the stub stands for.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Queues a reply: each request takes one.
    pub fn then(&self, reply: Reply) -> &Self {
        self.shared.script().queue.push_back(reply);
        self
    }

    /// Answers each request that finds the queue empty with what `answer` makes of it. Such requests are counted and
    /// not kept, so that a benchmark's memory does not grow.
    pub fn always(&self, answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> &Self {
        self.shared.script().answering = Some(Arc::new(answer));
        self
    }

    /// As [`ProviderStub::always`], once `released` says so.
    pub fn always_after(
        &self,
        released: watch::Receiver<bool>,
        answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
    ) -> &Self {
        self.always(move |request| answer(request).after(released.clone()))
    }

    /// The requests that took a reply from the queue, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.script().requests.clone()
    }

    /// How many requests came in all.
    pub fn count(&self) -> usize {
        *self.shared.count.borrow()
    }

    /// Waits until so many requests have come.
    pub async fn wait_for(&self, requests: usize) {
        let mut count = self.shared.count.subscribe();
        // The sender lives as long as the stub, so this ends only with the condition.
        let _ = count.wait_for(|count| *count >= requests).await;
    }
}

impl Drop for ProviderStub {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (path, query) = (uri.path().to_owned(), uri.query().unwrap_or_default().to_owned());
    let request = Recorded { method, path, query, headers, body };
    let reply = next_reply(&shared, request);
    shared.count.send_modify(|count| *count += 1);
    reply.into_response().await
}

fn next_reply(shared: &Shared, request: Recorded) -> Reply {
    let mut script = shared.script();
    if let Some(reply) = script.queue.pop_front() {
        script.requests.push(request);
        return reply;
    }
    let answering = script.answering.clone();
    drop(script);
    match answering {
        Some(answer) => answer(&request),
        None => Reply::status(599, "the stub has no reply left"),
    }
}

/// A text cut in two, between characters.
fn halves(text: &str) -> std::array::IntoIter<&str, 2> {
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    [&text[..middle], &text[middle..]].into_iter()
}
