//! The request.

use nylorun_domain::json::{Json, Text, Value};
use nylorun_domain::model::{Candidate, OutputPart, PromptItem, ToolCall, ToolResult, ToolSpec, UserPart};
use nylorun_domain::tool::ToolOutcome;
use reqwest::header::HeaderValue;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{CACHED_MESSAGES, CacheControl};
use crate::failure::Fault;
use crate::outbound::{OutboundRequest, credential};
use crate::prompt::{NOTHING, base64, object_input, outcome_text, plain_call_id, raw, system_text};
use crate::providers::{Target, bad_key};

const BASE_URL: &str = "https://api.anthropic.com/v1";
const VERSION: &str = "2023-06-01";

/// The kind of thinking that has a budget.
const WITH_BUDGET: &str = "enabled";
/// How many tokens of thinking are usual.
const USUAL_BUDGET: i64 = 8_192;
/// Fewest tokens that the API takes.
const MIN_BUDGET: i64 = 1_024;

/// The request of a call. The key stands in the `x-api-key` header and nowhere else.
pub(crate) fn request(target: &Target<'_>) -> Result<OutboundRequest, Fault> {
    let prompt = &target.call.prompt;
    let system = Some(system_text(prompt)).filter(|text| !text.is_empty());
    let mut messages = messages(target);
    mark_for_cache(&mut messages);
    let mut tools: Vec<_> = prompt.tools.iter().map(Tool::new).collect();
    if let (None, Some(last)) = (&system, tools.last_mut()) {
        last.cache_control = Some(CacheControl::SHORT);
    }
    let body = Body {
        model: &target.model.model,
        max_tokens: target.output_limit(),
        thinking: thinking_config(target, &messages),
        system: system.map(|text| vec![Block::new(Content::Text { text }).cached()]).unwrap_or_default(),
        tools,
        messages,
        stream: true,
    };
    let mut request = target.post(target.access.base_url.as_deref().unwrap_or(BASE_URL), "/messages", &body)?;
    request.headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
    request.headers.insert("x-api-key", credential(target.access.key.expose()).ok_or_else(bad_key)?);
    Ok(request)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
    stream: bool,
}

#[derive(Serialize)]
struct Thinking<'a> {
    r#type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<i64>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> Block<'a> {
    fn new(content: Content<'a>) -> Self {
        Self { content, cache_control: None }
    }

    fn cached(self) -> Self {
        Self { cache_control: Some(CacheControl::SHORT), ..self }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text {
        text: String,
    },
    Image {
        source: Source,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: &'a str,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: String,
        content: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
}

#[derive(Serialize)]
struct Source {
    r#type: &'static str,
    media_type: &'static str,
    data: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> Tool<'a> {
    fn new(tool: &'a ToolSpec) -> Self {
        let input_schema = raw(&tool.input_schema);
        Self { name: &tool.name, description: tool.description.as_deref(), input_schema, cache_control: None }
    }
}

fn messages<'a>(target: &Target<'a>) -> Vec<Message<'a>> {
    let mut messages: Vec<Message<'a>> = Vec::new();
    for item in target.call.prompt.items() {
        let (role, content) = match item {
            PromptItem::User(parts) => (Role::User, user(parts)),
            PromptItem::Assistant(candidate) => (Role::Assistant, assistant(candidate, target)),
            PromptItem::ToolResults(results) => (Role::User, results.iter().map(tool_result).collect()),
        };
        // An answer that held nothing cannot be said again.
        if content.is_empty() {
            continue;
        }
        let content = content.into_iter().map(Block::new);
        match messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            Some(_) | None => messages.push(Message { role, content: content.collect() }),
        }
    }
    messages
}

/// How the model is asked to think, or not to. Older models want a budget, which is part of the output limit.
fn thinking_config<'a>(target: &Target<'a>, messages: &[Message<'_>]) -> Option<Thinking<'a>> {
    let word = target.reasoning_word()?;
    if word != WITH_BUDGET {
        return Some(Thinking { r#type: word, budget_tokens: None });
    }
    let budget = USUAL_BUDGET.min(target.output_limit() / 2);
    let possible = budget >= MIN_BUDGET && goes_on_from_thinking(messages);
    possible.then_some(Thinking { r#type: word, budget_tokens: Some(budget) })
}

/// With a budget, an answer that called tools may only be gone on from when it began with thinking. It did not when
/// another model gave it, or when the setting is newer than the turn.
fn goes_on_from_thinking(messages: &[Message<'_>]) -> bool {
    let is_result = |block: &Block<'_>| matches!(block.content, Content::ToolResult { .. });
    let is_thinking =
        |block: &Block<'_>| matches!(block.content, Content::Thinking { .. } | Content::RedactedThinking { .. });
    match messages {
        [.., answer, results] if results.content.iter().any(is_result) => {
            answer.content.first().is_some_and(is_thinking)
        }
        _ => true,
    }
}

fn mark_for_cache(messages: &mut [Message<'_>]) {
    for message in messages.iter_mut().rev().filter(|message| message.role == Role::User).take(CACHED_MESSAGES) {
        if let Some(last) = message.content.last_mut() {
            last.cache_control = Some(CacheControl::SHORT);
        }
    }
}

fn user<'a>(parts: &[UserPart]) -> Vec<Content<'a>> {
    let block = |part: &UserPart| match part {
        UserPart::Text(said) => text(said),
        UserPart::Image(image) => {
            let source = Source { r#type: "base64", media_type: image.format().media_type(), data: base64(image) };
            Some(Content::Image { source })
        }
    };
    let blocks: Vec<_> = parts.iter().filter_map(block).collect();
    if blocks.is_empty() { vec![Content::Text { text: NOTHING.to_owned() }] } else { blocks }
}

/// A text block; the API refuses one that is blank.
fn text<'a>(text: &Text) -> Option<Content<'a>> {
    let text = text.lossy();
    (!text.trim().is_empty()).then(|| Content::Text { text: text.into_owned() })
}

fn assistant<'a>(candidate: &'a Candidate, target: &Target<'_>) -> Vec<Content<'a>> {
    let blocks = candidate.parts.iter().filter_map(|part| match part {
        OutputPart::Text(said) => text(said),
        OutputPart::Reasoning { text, signature } => thinking(text, target.signature(candidate, signature)?),
        OutputPart::ToolCall(call) => Some(tool_use(call)),
    });
    blocks.collect()
}

/// A block of thinking, as the API gave it: see the reader for the signature's shape.
fn thinking<'a>(text: &Text, signature: &Json) -> Option<Content<'a>> {
    let signature = signature.value();
    let field = |name| signature.get(name).and_then(Value::as_str).map(str::to_owned);
    match field("data") {
        Some(data) => Some(Content::RedactedThinking { data }),
        None => Some(Content::Thinking { thinking: text.lossy().into_owned(), signature: field("signature")? }),
    }
}

fn tool_use(call: &ToolCall) -> Content<'_> {
    Content::ToolUse { id: plain_call_id(&call.call_id), name: &call.name, input: object_input(&call.input) }
}

fn tool_result<'a>(result: &ToolResult) -> Content<'a> {
    let is_error = match &result.outcome {
        ToolOutcome::Completed { .. } => None,
        ToolOutcome::Failed { .. } => Some(true),
    };
    let content = outcome_text(&result.outcome);
    Content::ToolResult { tool_use_id: plain_call_id(&result.call_id), content, is_error }
}
