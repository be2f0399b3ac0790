//! The request.

use nylorun_domain::model::ToolSpec;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use serde::Serialize;
use serde_json::value::RawValue;

use super::OPENROUTER;
use super::dialect::{Dialect, MaxTokens};
use super::message::{Message, messages};
use crate::failure::Fault;
use crate::outbound::OutboundRequest;
use crate::prompt::{cache_key, raw};
use crate::providers::{Target, bearer, invalid};

const OPENROUTER_URL: &str = "https://openrouter.ai/api/v1";
/// The name under which a router lists this program's calls.
const TITLE: HeaderValue = HeaderValue::from_static("Nylorun");

/// The request of a call. The key stands in the `authorization` header and nowhere else.
pub(crate) fn request(target: &Target<'_>) -> Result<OutboundRequest, Fault> {
    let is_router = target.model.provider == OPENROUTER;
    let base = target.access.base_url.as_deref().or(is_router.then_some(OPENROUTER_URL)).ok_or_else(|| {
        invalid("the model has no base URL; set it with `nylorun model set … --base-url URL`".to_owned())
    })?;
    let dialect = Dialect::of(target)?;
    let max_tokens = |field| target.max_tokens.filter(|_| dialect.max_tokens == field);
    let body = Body {
        model: &target.model.model,
        messages: messages(target, &dialect),
        tools: target.call.prompt.tools.iter().map(Tool::new).collect(),
        max_tokens: max_tokens(MaxTokens::Old),
        max_completion_tokens: max_tokens(MaxTokens::New),
        reasoning: dialect.reasoning(target).map(|(name, value)| (name.to_owned(), value)).into_iter().collect(),
        provider: dialect.routing.as_ref().map(raw),
        stream: true,
        stream_options: dialect.usage_in_stream.then_some(StreamOptions { include_usage: true }),
    };
    let mut request = target.post(base, "/chat/completions", &body)?;
    let key = target.access.key.expose();
    if dialect.key && !key.is_empty() {
        request.headers.insert(AUTHORIZATION, bearer(key)?);
    }
    if is_router {
        request.headers.insert("x-title", TITLE);
        // Calls of one session go to one provider, where their prompt is cached.
        if let Ok(session) = HeaderValue::from_str(&cache_key(&target.call.session_id)) {
            request.headers.insert("x-session-id", session);
        }
    }
    Ok(request)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<i64>,
    #[serde(flatten)]
    reasoning: serde_json::Map<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<Box<RawValue>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: Box<RawValue>,
}

impl<'a> Tool<'a> {
    fn new(tool: &'a ToolSpec) -> Self {
        let parameters = raw(&tool.input_schema);
        let function = ToolFunction { name: &tool.name, description: tool.description.as_deref(), parameters };
        Self { r#type: "function", function }
    }
}
