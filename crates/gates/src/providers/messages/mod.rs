//! Messages, Anthropic's API.

mod answer;
mod request;

use serde::Serialize;

pub(crate) use answer::Reader;
pub(crate) use request::request;

/// The provider's id.
pub(crate) const PROVIDER: &str = "anthropic";

/// How many messages end a stretch that is cached: the newest, and the one whose cache this call can read.
pub(super) const CACHED_MESSAGES: usize = 2;

/// The mark of the end of a stretch that is cached.
#[derive(Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    r#type: &'static str,
}

impl CacheControl {
    /// Kept for five minutes (engine b.10, short retention).
    pub(super) const SHORT: Self = Self { r#type: "ephemeral" };
}
