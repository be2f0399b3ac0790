//! What can go wrong between this side and the server.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::key::InvalidKey;
use crate::sse::FrameTooLarge;

/// A request that gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server answered, and refused.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// No answer came: nothing listens there, the connection was cut, or it took too long.
    #[error("no answer from {url}: {cause}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// The innermost reason, in words.
        cause: String,
    },
    /// Something answers there that this client cannot talk to.
    #[error("the server at {url} cannot be used: {reason}")]
    Incompatible {
        /// The server's base URL.
        url: String,
        /// What it lacks, in words.
        reason: String,
    },
    /// The server answered with something that the protocol does not have.
    #[error("unexpected answer from {url}: {reason}")]
    Malformed {
        /// What was asked for.
        url: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// A frame of an event stream beyond the limit.
    #[error(transparent)]
    FrameTooLarge(#[from] FrameTooLarge),
    /// The base URL is not an absolute http or https URL.
    #[error("`{url}` is not an http or https URL: {reason}")]
    InvalidUrl {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An id that no URL can carry as one path segment.
    #[error("`{0}` cannot be an id")]
    InvalidId(String),
    /// The key cannot be sent.
    #[error(transparent)]
    InvalidKey(#[from] InvalidKey),
    /// The HTTP client could not be set up, or the system gave no random numbers.
    #[error("this machine cannot make requests: {0}")]
    Setup(String),
}

impl Error {
    /// Whether the same request may work later: no answer, 408, 429 and every 5xx.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(refusal) => matches!(refusal.status, 408 | 429 | 500..),
            Self::Incompatible { .. }
            | Self::Malformed { .. }
            | Self::FrameTooLarge(_)
            | Self::InvalidUrl { .. }
            | Self::InvalidId(_)
            | Self::InvalidKey(_)
            | Self::Setup(_) => false,
        }
    }

    /// The server's refusal, when that is what this is.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// A refusal as the server sent it (api 1.8).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message} ({code}, status {status})")]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The error code, such as `request_rejected`.
    pub code: String,
    /// The server's message. For a body that does not validate it is a JSON list: [`Refusal::problems`].
    pub message: String,
    /// Details of some codes.
    pub details: Option<Value>,
    /// The turn that is in the way, for some 409.
    pub active_turn_id: Option<String>,
    /// The id that the request carried.
    pub request_id: Option<String>,
    /// How long the server asks to wait, from `Retry-After` in seconds.
    pub retry_after: Option<Duration>,
}

/// One thing that is wrong with a document, from a refusal's message.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Problem {
    /// Its kind, such as `invalid_type`.
    #[serde(default)]
    pub code: String,
    /// Member names and element numbers from the document's root.
    #[serde(default)]
    pub path: Vec<Value>,
    /// What is wrong, in words.
    #[serde(default)]
    pub message: String,
}

impl Refusal {
    /// The problems that the message lists, all at once; empty for a message in words.
    pub fn problems(&self) -> Vec<Problem> {
        serde_json::from_str(&self.message).unwrap_or_default()
    }

    /// Reads an error answer. A body that is no refusal (a proxy's page, say) gives the code `http_<status>`.
    pub(crate) fn read(status: u16, retry_after: Option<Duration>, body: &str) -> Self {
        let body: Body = crate::text::parse(body).unwrap_or_default();
        Self {
            status,
            code: body.code.unwrap_or_else(|| format!("http_{status}")),
            message: body.message.unwrap_or_else(|| format!("the server answered with status {status}")),
            details: body.details,
            active_turn_id: body.active_turn_id,
            request_id: body.request_id,
            retry_after,
        }
    }
}

impl Problem {
    /// The path as people write it: `capabilities[0].tools[2].name`; `(root)` for the document itself.
    pub fn path_text(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Value::Number(index) => text.push_str(&format!("[{index}]")),
                Value::String(name) if text.is_empty() => text.push_str(name),
                Value::String(name) => text.push_str(&format!(".{name}")),
                other => text.push_str(&format!(".{other}")),
            }
        }
        if text.is_empty() { "(root)".to_owned() } else { text }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    code: Option<String>,
    message: Option<String>,
    details: Option<Value>,
    active_turn_id: Option<String>,
    request_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_is_read_whole() {
        let body = json!({"status": "rejected", "code": "request_rejected", "message": "busy", "activeTurnId": "t1",
            "requestId": "r1", "details": {"a": 1}});
        let expected = Refusal {
            status: 409,
            code: "request_rejected".into(),
            message: "busy".into(),
            details: Some(json!({"a": 1})),
            active_turn_id: Some("t1".into()),
            request_id: Some("r1".into()),
            retry_after: None,
        };
        assert_eq!(Refusal::read(409, None, &body.to_string()), expected);
    }

    #[test]
    fn a_page_that_is_no_refusal_keeps_its_status() {
        let refusal = Refusal::read(502, None, "<html>bad gateway</html>");
        assert_eq!((refusal.code.as_str(), refusal.status), ("http_502", 502));
    }

    #[test]
    fn problems_have_paths() {
        let message = json!([
            {"code": "invalid_type", "path": ["manifest", "capabilities", 0, "tools", 2, "name"],
                "message": "expected string"},
            {"code": "unrecognized_keys", "path": [], "message": "unknown key `x`"},
        ]);
        let refusal = Refusal::read(400, None, &json!({"code": "c", "message": message.to_string()}).to_string());
        let paths: Vec<String> = refusal.problems().iter().map(Problem::path_text).collect();
        assert_eq!(paths, ["manifest.capabilities[0].tools[2].name", "(root)"]);
        assert_eq!(Refusal::read(400, None, r#"{"code":"c","message":"Invalid JSON"}"#).problems(), []);
    }
}
