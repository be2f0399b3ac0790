//! Requests and their answers: the one place that knows the HTTP library.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;

use crate::error::{Error, Refusal};
use crate::health::{Health, PROTOCOL, Ready};
use crate::key::Key;
use crate::text;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest an ordinary answer may take. Opening a session may start a workspace.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);

/// One server, one key.
pub(crate) struct Http {
    client: reqwest::Client,
    base: Url,
    key: Key,
    /// What `/health` said. Empty until the first request, and after a 426.
    health: Mutex<Option<Arc<Health>>>,
}

/// A request to make.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) segments: &'a [&'a str],
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Value>,
}

impl<'a> Call<'a> {
    pub(crate) fn get(segments: &'a [&'a str]) -> Self {
        Self { method: Method::GET, segments, query: Vec::new(), body: None }
    }

    pub(crate) fn put(segments: &'a [&'a str], body: Value) -> Self {
        Self { method: Method::PUT, segments, query: Vec::new(), body: Some(body) }
    }

    pub(crate) fn post(segments: &'a [&'a str], body: Value) -> Self {
        Self { method: Method::POST, segments, query: Vec::new(), body: Some(body) }
    }

    pub(crate) fn delete(segments: &'a [&'a str]) -> Self {
        Self { method: Method::DELETE, segments, query: Vec::new(), body: None }
    }

    /// Adds a query parameter, when there is a value.
    pub(crate) fn query(mut self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        self.query.extend(value.map(|value| (name, value.into())));
        self
    }
}

impl Http {
    pub(crate) fn new(base_url: &str, key: Key) -> Result<Self, Error> {
        let invalid = |reason: &str| Error::InvalidUrl { url: base_url.to_owned(), reason: reason.to_owned() };
        let base = Url::parse(base_url).map_err(|error| invalid(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(invalid("it must begin with http:// or https://"));
        }
        Ok(Self { client: http_client(&base)?, base, key, health: Mutex::new(None) })
    }

    /// The base URL, without a trailing slash.
    pub(crate) fn base(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Reads `/health` now, without any check.
    pub(crate) async fn read_health(&self) -> Result<Health, Error> {
        let url = self.url(&["health"])?;
        let response = self.plain_get(&url).await?;
        read_json(response, &url).await
    }

    /// Reads `/ready` now; 503 is an answer too.
    pub(crate) async fn read_ready(&self) -> Result<Ready, Error> {
        let url = self.url(&["ready"])?;
        let response = self.plain_get(&url).await?;
        let body = response.text().await.map_err(|error| unreachable(&url, error))?;
        text::parse(&body).map_err(|error| malformed(&url, error))
    }

    /// What `/health` said, read and checked at the first call.
    ///
    /// # Errors
    /// [`Error::Incompatible`] when this client cannot talk to the server.
    pub(crate) async fn compatible(&self) -> Result<Arc<Health>, Error> {
        let mut known = self.health.lock().await;
        if let Some(health) = known.as_ref() {
            return Ok(Arc::clone(health));
        }
        let health = Arc::new(self.read_health().await?);
        if let Some(reason) = health.incompatibility() {
            return Err(Error::Incompatible { url: self.base().to_owned(), reason });
        }
        *known = Some(Arc::clone(&health));
        Ok(health)
    }

    /// Makes a request and reads its JSON answer.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<T, Error> {
        let url = self.call_url(call)?;
        let response = self.send(call, &url, &[], Some(ANSWER_TIMEOUT)).await?;
        read_json(response, &url).await
    }

    /// Makes a request whose answer is an event stream, and gives it as soon as its headers came.
    pub(crate) async fn stream(&self, call: &Call<'_>, headers: &[(&'static str, &str)]) -> Result<Response, Error> {
        let url = self.call_url(call)?;
        let response = self.send(call, &url, headers, None).await?;
        match response.headers().get(CONTENT_TYPE).map(|value| value.as_bytes().starts_with(b"text/event-stream")) {
            Some(true) => Ok(response),
            Some(false) | None => Err(malformed(&url, "the answer is not an event stream")),
        }
    }

    /// Sends, and once more after reading `/health` again when the server answers 426: it may have been replaced by
    /// another version since it was asked.
    async fn send(
        &self,
        call: &Call<'_>,
        url: &Url,
        headers: &[(&'static str, &str)],
        timeout: Option<Duration>,
    ) -> Result<Response, Error> {
        self.compatible().await?;
        match self.attempt(call, url, headers, timeout).await {
            Err(Error::Refused(refusal)) if refusal.status == StatusCode::UPGRADE_REQUIRED.as_u16() => {
                *self.health.lock().await = None;
                self.compatible().await?;
                self.attempt(call, url, headers, timeout).await
            }
            answer => answer,
        }
    }

    async fn attempt(
        &self,
        call: &Call<'_>,
        url: &Url,
        headers: &[(&'static str, &str)],
        timeout: Option<Duration>,
    ) -> Result<Response, Error> {
        let mut request = self
            .client
            .request(call.method.clone(), url.clone())
            .header(AUTHORIZATION, format!("Bearer {}", self.key.expose()))
            .header("Nylorun-Protocol", PROTOCOL);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        let response = request.send().await.map_err(|error| unreachable(url, error))?;
        if response.status().is_success() { Ok(response) } else { Err(refused(response, url).await) }
    }

    async fn plain_get(&self, url: &Url) -> Result<Response, Error> {
        let request = self.client.get(url.clone()).header(ACCEPT, "application/json").timeout(HEALTH_TIMEOUT);
        request.send().await.map_err(|error| unreachable(url, error))
    }

    fn call_url(&self, call: &Call<'_>) -> Result<Url, Error> {
        let mut url = self.url(call.segments)?;
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        Ok(url)
    }

    /// The base URL with path segments, each percent-encoded: an id may hold `/`.
    fn url(&self, segments: &[&str]) -> Result<Url, Error> {
        // Every URL parser reads these two as steps, even percent-encoded, so they cannot travel as ids.
        // And they drop some control characters, which no id has.
        let cannot_travel =
            |segment: &&&str| matches!(**segment, "" | "." | "..") || segment.contains(char::is_control);
        if let Some(id) = segments.iter().find(cannot_travel) {
            return Err(Error::InvalidId((*id).to_owned()));
        }
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        Ok(url)
    }
}

fn http_client(base: &Url) -> Result<reqwest::Client, Error> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread installed one meanwhile, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true);
    if is_loopback(base) {
        // A proxy from the environment cannot reach this machine's own loopback.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| Error::Setup(innermost(&error)))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

async fn read_json<T: DeserializeOwned>(response: Response, url: &Url) -> Result<T, Error> {
    if !response.status().is_success() {
        return Err(refused(response, url).await);
    }
    let body = response.text().await.map_err(|error| unreachable(url, error))?;
    text::parse(&body).map_err(|error| malformed(url, error))
}

async fn refused(response: Response, url: &Url) -> Error {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    match response.text().await {
        Ok(body) => Error::Refused(Box::new(Refusal::read(status.as_u16(), retry_after, &body))),
        Err(error) => unreachable(url, error),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

pub(crate) fn unreachable(url: &Url, error: reqwest::Error) -> Error {
    let cause = if error.is_timeout() { "it took too long".to_owned() } else { innermost(&error) };
    Error::Unreachable { url: url.to_string(), cause }
}

fn malformed(url: &Url, reason: impl ToString) -> Error {
    Error::Malformed { url: url.to_string(), reason: reason.to_string() }
}

/// The last of a chain of causes: the one that says what happened.
fn innermost(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => innermost(source),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(base: &str) -> Http {
        Http::new(base, Key::new("k").unwrap()).unwrap()
    }

    #[test]
    fn ids_are_one_segment_each() {
        let url = http("http://127.0.0.1:4000").url(&["v1", "sessions", "team-a/proj 42", "events"]).unwrap();
        assert_eq!(url.as_str(), "http://127.0.0.1:4000/v1/sessions/team-a%2Fproj%2042/events");
    }

    #[test]
    fn a_path_before_the_api_is_kept() {
        for base in ["https://example.com/nylo", "https://example.com/nylo/"] {
            assert_eq!(http(base).url(&["v1", "agents"]).unwrap().as_str(), "https://example.com/nylo/v1/agents");
        }
    }

    #[test]
    fn ids_that_urls_cannot_carry_are_refused() {
        for id in ["", ".", "..", "a\nb", "\ta", "a\u{7f}"] {
            assert!(matches!(http("http://h").url(&["v1", id]), Err(Error::InvalidId(_))), "{id:?}");
        }
    }

    #[test]
    fn only_http_urls() {
        for url in ["4000", "ftp://x", "unix:/run/x", "http://"] {
            assert!(matches!(Http::new(url, Key::new("k").unwrap()), Err(Error::InvalidUrl { .. })), "{url}");
        }
    }

    #[test]
    fn loopback_is_known_in_its_three_forms() {
        let loopback = |text: &str| is_loopback(&Url::parse(text).unwrap());
        assert!(loopback("http://localhost:1") && loopback("http://127.0.0.2:1") && loopback("http://[::1]:1"));
        assert!(!loopback("http://example.com") && !loopback("http://10.0.0.1"));
    }
}
