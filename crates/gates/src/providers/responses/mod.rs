//! Responses, OpenAI's API. Nothing is stored there: every call sends the whole conversation, with the reasoning that
//! the provider encrypted for us.

mod answer;
mod request;

pub(crate) use answer::Reader;
pub(crate) use request::request;

/// The provider's id.
pub(crate) const PROVIDER: &str = "openai";
