//! The HTTP endpoint of a tool.

use url::Url;

use super::Approval;
use crate::check::{Place, TextRule};
use crate::model::words;

/// Where and how an HTTP tool is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTarget {
    /// An absolute `http` or `https` URL without user info and fragment, as written.
    pub url: String,
    /// The method.
    pub method: HttpMethod,
    /// The name of the credential that is sent, if any.
    pub credential: Option<String>,
    /// How long the answer may take, in milliseconds: 1 to 300,000.
    pub timeout_ms: u32,
    /// Whether a person approves each call.
    pub approval: Approval,
}

words! {
    /// Methods of HTTP tools.
    HttpMethod {
        /// The default.
        Post = "POST",
        /// Replaces.
        Put = "PUT",
        /// Changes.
        Patch = "PATCH",
    }
}

/// How long an HTTP tool's answer may take unless the manifest says, in milliseconds.
const DEFAULT_TIMEOUT_MS: u32 = 60_000;
const MAX_TIMEOUT_MS: u32 = 300_000;

/// Reads a tool's `http`.
pub(super) fn read(place: Place<'_>, approval: Approval) -> Option<HttpTarget> {
    let object = place.object()?;
    let url = object.required("url", |place| place.parsed(parse_url));
    let method = object.optional("method", |place| place.one_of(HttpMethod::ALL, HttpMethod::as_str));
    let credential = object.optional_string("credential", TextRule::ID);
    let timeout_ms = object.optional("timeoutMs", |place| place.integer(1..=MAX_TIMEOUT_MS));
    object.finish();
    Some(HttpTarget {
        url: url?,
        method: method.unwrap_or(HttpMethod::Post),
        credential,
        timeout_ms: timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS),
        approval,
    })
}

fn parse_url(text: &str) -> Result<String, &'static str> {
    let url = Url::parse(text).map_err(|_| "Invalid URL: expected an absolute http or https URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("Invalid URL: expected http or https");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("Invalid URL: must not hold user info; use `credential`");
    }
    if url.fragment().is_some() {
        return Err("Invalid URL: must not have a fragment");
    }
    Ok(text.to_owned())
}
