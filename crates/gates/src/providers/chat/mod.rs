//! Chat Completions, OpenAI's older API as OpenRouter, vLLM, Ollama, llama.cpp, LiteLLM and many others speak it.

mod answer;
mod details;
mod dialect;
mod message;
mod request;

pub(crate) use answer::Reader;
pub(crate) use request::request;

/// The id of the router that speaks it.
pub(crate) const OPENROUTER: &str = "openrouter";

/// The member of a signature that names the member in which an endpoint gives its reasoning, and wants it back.
const FIELD: &str = "field";
