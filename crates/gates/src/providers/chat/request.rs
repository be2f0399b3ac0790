//! The request.

use std::borrow::Cow;

use nylorun_domain::json::{Text, Value};
use nylorun_domain::model::{Candidate, PromptItem, ToolInput, ToolSpec};
use reqwest::header::AUTHORIZATION;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::Fault;
use crate::outbound::{OutboundRequest, credential};
use crate::prompt::{outcome_text, outgoing, raw, system_text};
use crate::providers::{Target, bad_key, invalid};

/// The request of a call. The key stands in the `authorization` header and nowhere else.
pub(crate) fn request(target: &Target<'_>) -> Result<OutboundRequest, Fault> {
    let Some(base) = &target.access.base_url else {
        return Err(invalid("the model has no base URL; set it with `nylorun model set … --base-url URL`".to_owned()));
    };
    let prompt = &target.call.prompt;
    let body = Body {
        model: &target.model.model,
        messages: messages(target),
        tools: prompt.tools.iter().map(Tool::new).collect(),
        max_tokens: target.max_tokens,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
    };
    let mut request = target.post(base, "/chat/completions", &body)?;
    let key = target.access.key.expose();
    if !key.is_empty() {
        request.headers.insert(AUTHORIZATION, credential(&format!("Bearer {key}")).ok_or_else(bad_key)?);
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
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: String,
    },
    User {
        content: String,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CallFunction<'a>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: &'a str,
    arguments: String,
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

fn messages<'a>(target: &Target<'a>) -> Vec<Message<'a>> {
    let prompt = &target.call.prompt;
    let system = Some(system_text(prompt)).filter(|text| !text.is_empty());
    let mut messages: Vec<_> = system.map(|content| Message::System { content }).into_iter().collect();
    for item in &prompt.items {
        match item {
            PromptItem::User(texts) => messages.push(Message::User { content: joined(texts) }),
            PromptItem::Assistant(candidate) => messages.push(assistant(candidate)),
            PromptItem::ToolResults(results) => messages.extend(results.iter().map(|result| Message::Tool {
                tool_call_id: result.call_id.as_str(),
                content: outcome_text(&result.outcome),
            })),
        }
    }
    messages
}

/// Many servers take only one text, not a list of parts.
fn joined(texts: &[Text]) -> String {
    texts.iter().map(Text::lossy).collect::<Vec<Cow<'_, str>>>().join("\n\n")
}

fn assistant(candidate: &Candidate) -> Message<'_> {
    let text = candidate.text().lossy().into_owned();
    let tool_calls: Vec<_> = candidate
        .tool_calls()
        .map(|call| Call {
            id: call.call_id.as_str(),
            r#type: "function",
            function: CallFunction { name: &call.name, arguments: arguments(&call.input) },
        })
        .collect();
    let content = (!text.is_empty() || tool_calls.is_empty()).then_some(text);
    Message::Assistant { content, tool_calls }
}

/// Arguments must be JSON here too: servers that render them into the prompt refuse anything else.
fn arguments(input: &ToolInput) -> String {
    match input {
        ToolInput::Json(json) => outgoing(json),
        ToolInput::Malformed(text) => {
            let written = Value::from(text.lossy().into_owned());
            Value::object([("malformed", written)]).to_json().as_str().to_owned()
        }
    }
}
