//! The guarded outbound client: all that leaves for a place that a tenant names goes through it (trust 4).
//!
//! It resolves names itself and connects to the address that it checked, refuses redirects, ignores proxies of the
//! environment, and bounds time and size. Header values that hold credentials are marked sensitive, and its errors
//! never hold a URL's query.

mod address;
mod guard;

use std::error::Error as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use reqwest::header::{HeaderMap, HeaderValue, USER_AGENT};
use reqwest::redirect::Policy;
use reqwest::{Body, Client, ClientBuilder, Method};
use url::{Position, Url};

pub use guard::{Lookup, PrivateTargets, Refusal};

use guard::{GuardedResolver, host_lookup};

/// How long a connection that is used again may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an unused connection is kept.
const IDLE_CONNECTION: Duration = Duration::from_secs(90);

/// How far a request is, for who gives it up.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicBool>);

impl Progress {
    /// Whether something of the request may have left. Until then there is no connection.
    pub fn was_sent(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn sent(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Why a request gave no answer, or its answer no end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The guard refuses the URL; nothing was sent.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The endpoint answered with a redirect, which is not followed.
    #[error("the endpoint answered with a redirect ({0}), which is not followed")]
    Redirect(u16),
    /// No connection was made; nothing was sent.
    #[error("no connection to {host}: {problem}")]
    NotSent {
        /// Whom it was for: the host and the port that the URL names.
        host: String,
        /// What happened.
        problem: String,
    },
    /// The connection broke after the request was sent.
    #[error("the connection broke: {0}")]
    Lost(String),
    /// No answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// The answer is larger than the bound.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The client could not be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    SetUp(String),
}

/// One request.
#[derive(Debug)]
pub struct OutboundRequest {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// Headers; use [`credential`] for secret values.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Largest answer that is read, in bytes.
    pub max_answer: usize,
}

/// Whether a connection serves several requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// It does: the next request saves a handshake, and may find the connection closed by the other side.
    Reused,
    /// Each request has its own: a request that fails after it was sent did not fail because it came late. Making it
    /// has no time limit of its own: who waits for the answer has one.
    OneEach,
}

/// The client.
pub struct Outbound {
    policy: PrivateTargets,
    connections: Connections,
    lookup: Lookup,
    /// Made at the first call: reading the system's certificates takes longer than a start may.
    client: OnceLock<Result<Client, String>>,
}

impl Outbound {
    /// A client under this policy, which asks the host's name system and uses connections again.
    pub fn new(policy: PrivateTargets) -> Self {
        Self { policy, connections: Connections::Reused, lookup: host_lookup(), client: OnceLock::new() }
    }

    /// The same, with such connections.
    #[must_use]
    pub fn with_connections(self, connections: Connections) -> Self {
        Self { connections, ..self }
    }

    /// The same, with names found by `lookup`. What it answers is checked all the same.
    #[must_use]
    pub fn with_lookup(self, lookup: Lookup) -> Self {
        Self { lookup, ..self }
    }

    /// Sends a request and waits for the head of its answer. It has no time limit of its own beyond that of a
    /// connection that is used again: dropping the future ends the call.
    pub async fn send(&self, request: OutboundRequest) -> Result<OutboundAnswer, OutboundError> {
        self.send_with(request, &Progress::default()).await
    }

    /// The same, and tells `progress` how far it is.
    pub async fn send_with(
        &self,
        request: OutboundRequest,
        progress: &Progress,
    ) -> Result<OutboundAnswer, OutboundError> {
        self.policy.check(&request.url)?;
        let client = self.client.get_or_init(|| self.set_up());
        let client = client.as_ref().map_err(|error| OutboundError::SetUp(error.clone()))?;
        let body = told(request.body, progress);
        let sent = client.request(request.method, request.url).headers(request.headers).body(body).send();
        let response = sent.await.map_err(failed)?;
        let status = response.status();
        if status.is_redirection() {
            return Err(OutboundError::Redirect(status.as_u16()));
        }
        Ok(OutboundAnswer { response, left: request.max_answer, max: request.max_answer })
    }

    fn set_up(&self) -> Result<Client, String> {
        install_tls();
        let with_system = self.builder().build();
        // A machine without certificates can still call what speaks plain HTTP; HTTPS then trusts nobody.
        let built = with_system.or_else(|error| {
            let error = innermost(&error);
            tracing::warn!(error, "no certificates of the system: endpoints with https cannot be called");
            self.builder().tls_certs_only([]).build()
        });
        built.map_err(|error| innermost(&error))
    }

    fn builder(&self) -> ClientBuilder {
        let agent = HeaderValue::from_static(concat!("nylorun/", env!("CARGO_PKG_VERSION")));
        let builder = match self.connections {
            Connections::Reused => Client::builder().connect_timeout(CONNECT_TIMEOUT),
            Connections::OneEach => Client::builder().pool_max_idle_per_host(0),
        };
        builder
            .no_proxy()
            .redirect(Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .dns_resolver(GuardedResolver { policy: self.policy, lookup: Arc::clone(&self.lookup) })
            .pool_idle_timeout(IDLE_CONNECTION)
            .default_headers(HeaderMap::from_iter([(USER_AGENT, agent)]))
    }
}

/// A body that tells when it is taken to be sent: the connection is there then, and nothing of the request left before.
fn told(body: Bytes, progress: &Progress) -> Body {
    let taken = progress.clone();
    if body.is_empty() {
        taken.sent();
        return Body::from(body);
    }
    Body::wrap(Full::new(body).inspect_frame(move |_| taken.sent()))
}

impl std::fmt::Debug for Outbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { policy, connections, .. } = self;
        f.debug_struct("Outbound").field("policy", policy).field("connections", connections).finish_non_exhaustive()
    }
}

/// An answer, whose body comes in pieces.
#[derive(Debug)]
pub struct OutboundAnswer {
    response: reqwest::Response,
    left: usize,
    max: usize,
}

impl OutboundAnswer {
    /// The status.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// A header's value, when it is there and is visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next piece of the body, or `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, OutboundError> {
        let Some(chunk) = self.response.chunk().await.map_err(failed)? else { return Ok(None) };
        self.left = self.left.checked_sub(chunk.len()).ok_or(OutboundError::TooLarge(self.max))?;
        Ok(Some(chunk))
    }

    /// The body's first bytes, up to `limit`; what follows is dropped, and so is what was lost.
    pub async fn beginning(mut self, limit: usize) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < limit
            && let Ok(Some(chunk)) = self.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
        body.truncate(limit);
        body
    }
}

/// A header's value that is a credential: no log or debug output shows it. `None` when it holds what no header may
/// hold.
pub fn credential(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The one place that chooses the TLS implementation of this process.
fn install_tls() {
    // An error says that one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn failed(error: reqwest::Error) -> OutboundError {
    let host = error.url().map_or_else(String::new, |url| url[Position::BeforeHost..Position::AfterPort].to_owned());
    let error = error.without_url();
    if let Some(refusal) = refusal(&error) {
        OutboundError::Refused(refusal)
    } else if error.is_timeout() && error.is_connect() {
        let problem = format!("none was made within {} s", CONNECT_TIMEOUT.as_secs());
        OutboundError::NotSent { host, problem }
    } else if error.is_timeout() {
        OutboundError::TimedOut
    } else if error.is_connect() || error.is_builder() {
        OutboundError::NotSent { host, problem: innermost(&error) }
    } else {
        OutboundError::Lost(innermost(&error))
    }
}

/// The resolver's refusal, which the client wraps.
fn refusal(error: &reqwest::Error) -> Option<Refusal> {
    causes(error).find_map(|cause| cause.downcast_ref().cloned())
}

/// The cause that says most: "connection refused" rather than "error sending request".
fn innermost(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn causes<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&(dyn std::error::Error + 'static)| (*cause).source())
}
