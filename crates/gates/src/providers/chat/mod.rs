//! Chat Completions, OpenAI's API as vLLM, Ollama, llama.cpp, LiteLLM and many others speak it.

mod answer;
mod request;

pub(crate) use answer::Reader;
pub(crate) use request::request;
