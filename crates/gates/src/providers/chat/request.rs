//! The request.

use std::borrow::Cow;

use nylorun_domain::model::{Candidate, PromptItem, ToolSpec, UserPart};
use reqwest::header::AUTHORIZATION;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::Fault;
use crate::outbound::OutboundRequest;
use crate::prompt::{data_url, input_text, outcome_text, raw, system_text};
use crate::providers::{Target, bearer, invalid};

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
        request.headers.insert(AUTHORIZATION, bearer(key)?);
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
        content: Content,
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

/// Many servers take only one text, so a list of parts is sent only where it must be.
#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

impl Content {
    fn new(parts: &[UserPart]) -> Self {
        let texts: Option<Vec<Cow<'_, str>>> = parts
            .iter()
            .map(|part| match part {
                UserPart::Text(text) => Some(text.lossy()),
                UserPart::Image(_) => None,
            })
            .collect();
        match texts {
            Some(texts) => Self::Text(texts.join("\n\n")),
            None => Self::Parts(parts.iter().map(Part::new).collect()),
        }
    }
}

impl Part {
    fn new(part: &UserPart) -> Self {
        match part {
            UserPart::Text(text) => Self::Text { text: text.lossy().into_owned() },
            UserPart::Image(image) => Self::ImageUrl { image_url: ImageUrl { url: data_url(image) } },
        }
    }
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
            PromptItem::User(parts) => messages.push(Message::User { content: Content::new(parts) }),
            PromptItem::Assistant(candidate) => messages.push(assistant(candidate)),
            PromptItem::ToolResults(results) => messages.extend(results.iter().map(|result| Message::Tool {
                tool_call_id: result.call_id.as_str(),
                content: outcome_text(&result.outcome),
            })),
        }
    }
    messages
}

fn assistant(candidate: &Candidate) -> Message<'_> {
    let text = candidate.text().lossy().into_owned();
    let tool_calls: Vec<_> = candidate
        .tool_calls()
        .map(|call| Call {
            id: call.call_id.as_str(),
            r#type: "function",
            function: CallFunction { name: &call.name, arguments: input_text(&call.input) },
        })
        .collect();
    let content = (!text.is_empty() || tool_calls.is_empty()).then_some(text);
    Message::Assistant { content, tool_calls }
}
