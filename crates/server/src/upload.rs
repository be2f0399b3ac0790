//! Bodies of bytes: passed on as they come, never held whole.

use std::time::Duration;

use futures_util::stream;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use nylorun_app::{BlobBody, BodyError};
use nylorun_domain::json::Value;
use nylorun_wire::code::Code;
use nylorun_wire::error::Rejection;
use tokio::time::{Instant, timeout_at};

use crate::request::Sent;

/// How much of a body that is refused is still taken from the client. One that is cut off while it sends would see a
/// broken connection instead of the refusal.
const MAX_DISCARDED: usize = 16 << 20;

/// Longest time for one body, however steadily it comes.
const LONGEST: Duration = Duration::from_secs(600);

/// A body that was not read yet.
pub(crate) struct Upload {
    body: Incoming,
    limit_bytes: u64,
    /// How long the client may be silent.
    silence: Duration,
    end_at: Instant,
}

impl Upload {
    /// A body of at most `limit_bytes`.
    pub(crate) fn new(body: Incoming, limit_bytes: u64, silence: Duration) -> Self {
        Self { body, limit_bytes, silence, end_at: Instant::now() + LONGEST }
    }

    /// Whether the client has said itself that it sends too much.
    pub(crate) fn is_declared_too_large(&self) -> bool {
        self.body.size_hint().lower() > self.limit_bytes
    }

    /// The bytes as they come.
    pub(crate) fn chunks(&mut self) -> BlobBody<'_> {
        Box::pin(stream::unfold(self, |upload| async {
            let chunk = upload.next().await?;
            Some((chunk, upload))
        }))
    }

    async fn next(&mut self) -> Option<Result<bytes::Bytes, BodyError>> {
        loop {
            let until = self.end_at.min(Instant::now() + self.silence);
            match timeout_at(until, self.body.frame()).await {
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => return Some(Ok(data)),
                    Err(_trailers) => {}
                },
                Ok(Some(Err(error))) => return Some(Err(BodyError(error.to_string()))),
                Ok(None) => return None,
                Err(_elapsed) => return Some(Err(BodyError("it did not arrive in time".to_owned()))),
            }
        }
    }

    /// Takes what the client still sends, up to a bound, and forgets it.
    pub(crate) async fn discard(mut self) {
        let mut taken = 0;
        while let Some(Ok(data)) = self.next().await {
            taken += data.len();
            if taken > MAX_DISCARDED {
                return;
            }
        }
    }
}

/// The refusal of a body that has more bytes than it may.
pub(crate) fn too_large(what: &str, limit_bytes: u64) -> Rejection {
    let limit = Value::from(i64::try_from(limit_bytes).unwrap_or(i64::MAX));
    let message = format!("{what} has at most {limit_bytes} bytes");
    Rejection::new(413, Code::LimitExceeded, message).with_details(Value::object([("limitBytes", limit)]))
}

/// Checks that a sent `Content-Type` is one, whichever it is.
pub(crate) fn check_content_type(sent: Sent<'_>) -> Result<(), Rejection> {
    let sound = match sent {
        Sent::Absent => true,
        Sent::Once(value) => is_media_type(value),
        Sent::Unreadable => false,
    };
    if sound {
        return Ok(());
    }
    let message = "Content-Type must be one media type, such as application/octet-stream; or leave it out";
    Err(Rejection::new(400, Code::InvalidRequest, message))
}

/// `type/subtype`, perhaps with parameters (RFC 9110, 8.3.1).
fn is_media_type(value: &str) -> bool {
    let token = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !text.is_empty() && text.bytes().all(allowed)
    };
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype))
}

#[cfg(test)]
mod tests {
    use super::is_media_type;

    #[test]
    fn media_types_are_of_one_form() {
        for right in ["text/plain", "application/vnd.x+json; charset=utf-8", "*/*", " image/png "] {
            assert!(is_media_type(right), "{right}");
        }
        for wrong in ["", "text", "text/", "/plain", "text/pla in", "a/b/c", "; charset=utf-8", "text/plain, a/b"] {
            assert!(!is_media_type(wrong), "{wrong}");
        }
    }
}
