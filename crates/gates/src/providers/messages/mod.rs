//! Messages, Anthropic's API.

mod answer;
mod request;

pub(crate) use answer::Reader;
pub(crate) use request::request;

/// The provider's id.
pub(crate) const PROVIDER: &str = "anthropic";
