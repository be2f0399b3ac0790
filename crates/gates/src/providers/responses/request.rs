//! The request.

use nylorun_domain::json::{Text, Value};
use nylorun_domain::model::{Candidate, OutputPart, PromptItem, ToolCall, ToolResult, ToolSpec, UserPart};
use reqwest::header::AUTHORIZATION;
use serde::Serialize;
use serde_json::value::RawValue;

use super::answer::{ENCRYPTED, PHASE};
use crate::failure::Fault;
use crate::outbound::OutboundRequest;
use crate::prompt::{cache_key, data_url, input_text, outcome_text, plain_call_id, raw, system_text};
use crate::providers::{Target, bearer, word};

const BASE_URL: &str = "https://api.openai.com/v1";
/// Asks for reasoning in a form that can be sent back.
const INCLUDE_REASONING: &str = "reasoning.encrypted_content";

/// The request of a call. The key stands in the `authorization` header and nowhere else.
pub(crate) fn request(target: &Target<'_>) -> Result<OutboundRequest, Fault> {
    let prompt = &target.call.prompt;
    let reasons = target.listed.is_some_and(|model| model.reasoning.is_some());
    let body = Body {
        model: &target.model.model,
        instructions: system_text(prompt),
        input: input(target),
        tools: prompt.tools.iter().map(Tool::new).collect(),
        max_output_tokens: target.max_tokens,
        reasoning: target.reasoning_word().map(|effort| Reasoning { effort }),
        include: if reasons { vec![INCLUDE_REASONING] } else { Vec::new() },
        prompt_cache_key: cache_key(&target.call.session_id),
        store: false,
        stream: true,
    };
    let base = target.access.base_url.as_deref().unwrap_or(BASE_URL);
    let mut request = target.post(base, "/responses", &body)?;
    request.headers.insert(AUTHORIZATION, bearer(target.access.key.expose())?);
    Ok(request)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "String::is_empty")]
    instructions: String,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    prompt_cache_key: String,
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
}

/// Items of earlier answers carry no ids: the provider stored nothing that an id could name, and where one item has
/// an id it wants those of its neighbours too.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: Role,
        content: Vec<Content>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    Reasoning {
        summary: Vec<Summary>,
        encrypted_content: String,
    },
    FunctionCall {
        call_id: String,
        name: &'a str,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: String,
        output: String,
    },
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content {
    InputText { text: String },
    InputImage { image_url: String },
    OutputText { text: String },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "summary_text")]
struct Summary {
    text: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: Box<RawValue>,
    /// Must be said: without it the API takes only schemas of its strict subset.
    strict: bool,
}

impl<'a> Tool<'a> {
    fn new(tool: &'a ToolSpec) -> Self {
        let parameters = raw(&tool.input_schema);
        let description = tool.description.as_deref();
        Self { r#type: "function", name: &tool.name, description, parameters, strict: false }
    }
}

fn input<'a>(target: &Target<'a>) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    for item in target.call.prompt.items() {
        match item {
            PromptItem::User(parts) => {
                let content = parts.iter().map(user).collect();
                items.push(Item::Message { role: Role::User, content, phase: None });
            }
            PromptItem::Assistant(candidate) => items.extend(assistant(candidate, target)),
            PromptItem::ToolResults(results) => items.extend(results.iter().map(tool_result)),
        }
    }
    items
}

fn user(part: &UserPart) -> Content {
    match part {
        UserPart::Text(text) => Content::InputText { text: text.lossy().into_owned() },
        UserPart::Image(image) => Content::InputImage { image_url: data_url(image) },
    }
}

fn assistant<'a>(candidate: &'a Candidate, target: &Target<'_>) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    let mut phase = None;
    for part in &candidate.parts {
        match part {
            OutputPart::Text(text) => items.push(said(text, phase.take())),
            OutputPart::Reasoning { text, signature } => {
                let Some(state) = target.signature(candidate, signature).map(|json| json.value()) else { continue };
                match state.get(ENCRYPTED).and_then(Value::as_str) {
                    Some(encrypted) => items.push(reasoning(text, encrypted)),
                    None => phase = Some(word(&state, PHASE).to_owned()).filter(|phase| !phase.is_empty()),
                }
            }
            OutputPart::ToolCall(call) => items.push(function_call(call)),
        }
    }
    // The API refuses reasoning that nothing follows, as an answer cut by its output limit leaves it.
    while let Some(Item::Reasoning { .. }) = items.last() {
        items.pop();
    }
    items
}

fn said<'a>(text: &Text, phase: Option<String>) -> Item<'a> {
    let content = vec![Content::OutputText { text: text.lossy().into_owned() }];
    Item::Message { role: Role::Assistant, content, phase }
}

fn reasoning<'a>(text: &Text, encrypted: &str) -> Item<'a> {
    let text = text.lossy().into_owned();
    let summary = if text.is_empty() { Vec::new() } else { vec![Summary { text }] };
    Item::Reasoning { summary, encrypted_content: encrypted.to_owned() }
}

fn function_call(call: &ToolCall) -> Item<'_> {
    Item::FunctionCall { call_id: plain_call_id(&call.call_id), name: &call.name, arguments: input_text(&call.input) }
}

fn tool_result<'a>(result: &ToolResult) -> Item<'a> {
    Item::FunctionCallOutput { call_id: plain_call_id(&result.call_id), output: outcome_text(&result.outcome) }
}
