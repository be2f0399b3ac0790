//! The request.

use nylorun_domain::json::{Text, Value};
use nylorun_domain::model::{Candidate, OutputPart, PromptItem, ToolCall, ToolResult, ToolSpec, UserPart};
use nylorun_domain::tool::ToolOutcome;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{CAME_WITH, EMPTY_TEXT, SIGNATURE, THOUGHT};
use crate::failure::Fault;
use crate::outbound::{OutboundRequest, credential};
use crate::prompt::{NOTHING, base64, error, is_made, object_input, raw, system_text};
use crate::providers::{Target, bad_key, word};

const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";
/// What Google documents for a call in the history that has no signature, since another model made it.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The request of a call. The key stands in the `x-goog-api-key` header and nowhere else.
pub(crate) fn request(target: &Target<'_>) -> Result<OutboundRequest, Fault> {
    let prompt = &target.call.prompt;
    let system = Some(system_text(prompt)).filter(|text| !text.is_empty());
    let declarations: Vec<_> = prompt.tools.iter().map(Declaration::new).collect();
    let body = Body {
        system_instruction: system.map(|text| Content { role: None, parts: vec![Part::text(text)] }),
        contents: contents(target),
        tools: if declarations.is_empty() { Vec::new() } else { vec![Tools { function_declarations: declarations }] },
        generation_config: GenerationConfig {
            max_output_tokens: target.max_tokens,
            thinking_config: target.reasoning_word().map(ThinkingConfig::new),
        },
    };
    let base = target.access.base_url.as_deref().unwrap_or(BASE_URL);
    let mut request = target.post(base, &format!("/models/{}:streamGenerateContent", target.model.model), &body)?;
    request.url.query_pairs_mut().append_pair("alt", "sse");
    request.headers.insert("x-goog-api-key", credential(target.access.key.expose()).ok_or_else(bad_key)?);
    Ok(request)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    generation_config: GenerationConfig<'a>,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    parts: Vec<Part<'a>>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Model,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(flatten)]
    data: Data<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Data<'a> {
    Text(String),
    InlineData(InlineData),
    FunctionCall(FunctionCall<'a>),
    FunctionResponse(FunctionResponse<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData {
    mime_type: &'static str,
    data: String,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: Box<RawValue>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Response,
}

/// The API takes objects alone.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Response {
    Output(Box<RawValue>),
    Error(Box<RawValue>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters_json_schema: Box<RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig<'a>>,
}

/// Models up to 2.5 have a budget in tokens, later ones a level.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum ThinkingConfig<'a> {
    ThinkingBudget(i64),
    ThinkingLevel(&'a str),
}

impl<'a> ThinkingConfig<'a> {
    fn new(word: &'a str) -> Self {
        word.parse().map_or(Self::ThinkingLevel(word), Self::ThinkingBudget)
    }
}

impl<'a> Declaration<'a> {
    fn new(tool: &'a ToolSpec) -> Self {
        let parameters_json_schema = raw(&tool.input_schema);
        Self { name: &tool.name, description: tool.description.as_deref(), parameters_json_schema }
    }
}

impl<'a> Part<'a> {
    fn new(data: Data<'a>, thought_signature: Option<String>) -> Self {
        Self { data, thought: None, thought_signature }
    }

    fn text(text: String) -> Self {
        Self::new(Data::Text(text), None)
    }
}

fn contents<'a>(target: &Target<'a>) -> Vec<Content<'a>> {
    let content = |role, parts| Content { role: Some(role), parts };
    let contents = target.call.prompt.items().map(|item| match item {
        PromptItem::User(parts) => content(Role::User, user(parts)),
        PromptItem::Assistant(candidate) => content(Role::Model, assistant(candidate, target)),
        PromptItem::ToolResults(results) => content(Role::User, results.iter().map(tool_result).collect()),
    });
    // An answer that held nothing cannot be said again.
    contents.filter(|content| !content.parts.is_empty()).collect()
}

fn user<'a>(parts: &[UserPart]) -> Vec<Part<'a>> {
    let part = |part: &UserPart| match part {
        UserPart::Text(text) => text_of(text).map(Part::text),
        UserPart::Image(image) => {
            let data = InlineData { mime_type: image.format().media_type(), data: base64(image) };
            Some(Part::new(Data::InlineData(data), None))
        }
    };
    let parts: Vec<_> = parts.iter().filter_map(part).collect();
    if parts.is_empty() { vec![Part::text(NOTHING.to_owned())] } else { parts }
}

fn text_of(text: &Text) -> Option<String> {
    let text = text.lossy();
    (!text.trim().is_empty()).then(|| text.into_owned())
}

fn assistant<'a>(candidate: &'a Candidate, target: &Target<'_>) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    let mut pending = None;
    for part in &candidate.parts {
        match part {
            OutputPart::Text(text) => {
                let said = text.lossy().into_owned();
                if !said.is_empty() {
                    parts.push(Part::new(Data::Text(said), pending.take()));
                }
            }
            OutputPart::ToolCall(call) => parts.push(Part::new(function_call(call), pending.take())),
            OutputPart::Reasoning { text, signature } => {
                let Some(state) = target.signature(candidate, signature).map(|json| json.value()) else { continue };
                let signature = Some(word(&state, SIGNATURE).to_owned()).filter(|signature| !signature.is_empty());
                match state.get(CAME_WITH).and_then(Value::as_str) {
                    Some(THOUGHT) => {
                        let data = Data::Text(text.lossy().into_owned());
                        parts.push(Part { thought: Some(true), ..Part::new(data, signature) });
                    }
                    Some(EMPTY_TEXT) => parts.push(Part::new(Data::Text(String::new()), signature)),
                    Some(_) | None => pending = signature,
                }
            }
        }
    }
    stand_in(&mut parts, target);
    parts
}

/// Models from 3 on refuse a step of the current turn whose first call has no signature.
fn stand_in(parts: &mut [Part<'_>], target: &Target<'_>) {
    if target.model.model.starts_with("gemini-2") {
        return;
    }
    let first = parts.iter_mut().find(|part| matches!(part.data, Data::FunctionCall(_)));
    if let Some(Part { thought_signature: signature @ None, .. }) = first {
        *signature = Some(NO_SIGNATURE.to_owned());
    }
}

fn function_call(call: &ToolCall) -> Data<'_> {
    let id = Some(call.call_id.as_str()).filter(|_| !is_made(&call.call_id));
    Data::FunctionCall(FunctionCall { id, name: &call.name, args: object_input(&call.input) })
}

fn tool_result(result: &ToolResult) -> Part<'_> {
    let response = match &result.outcome {
        ToolOutcome::Completed { output } => Response::Output(raw(output)),
        ToolOutcome::Failed { code, message } => Response::Error(raw(&error(code, message).to_json())),
    };
    let id = Some(result.call_id.as_str()).filter(|_| !is_made(&result.call_id));
    Part::new(Data::FunctionResponse(FunctionResponse { id, name: &result.name, response }), None)
}
