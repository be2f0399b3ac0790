//! The messages of a request.

use nylorun_domain::json::Value;
use nylorun_domain::model::{Candidate, OutputPart, PromptItem, ToolCall, ToolResult, UserPart};
use serde::Serialize;
use serde_json::value::RawValue;

use super::FIELD;
use super::details::DETAILS;
use super::dialect::Dialect;
use crate::prompt::{data_url, input_text, outcome_text, raw, system_text};
use crate::providers::messages::{CACHED_MESSAGES, CacheControl};
use crate::providers::{Reasoning, Target, word};

/// What the model says where an endpoint wants it to have spoken before the person does.
const AFTER_RESULTS: &str = "I have read the tool results.";

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum Message<'a> {
    System {
        content: Content,
    },
    Developer {
        content: Content,
    },
    User {
        content: Content,
    },
    Assistant {
        content: Option<Content>,
        #[serde(flatten)]
        reasoning: ReasoningBack,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        content: String,
    },
}

/// Many servers take only one text, so a list of parts is sent only where it must be.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part {
    Text {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
}

#[derive(Serialize)]
pub(super) struct ImageUrl {
    url: String,
}

/// The reasoning of an earlier answer, in the member in which the endpoint gave it.
#[derive(Default, Serialize)]
pub(super) struct ReasoningBack {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<Box<RawValue>>,
}

#[derive(Serialize)]
pub(super) struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CallFunction<'a>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: &'a str,
    arguments: String,
}

impl Content {
    fn new(parts: &[UserPart]) -> Self {
        let text = |part: &UserPart| match part {
            UserPart::Text(text) => Some(text.lossy().into_owned()),
            UserPart::Image(_) => None,
        };
        match parts.iter().map(text).collect::<Option<Vec<_>>>() {
            Some(texts) => Self::Text(texts.join("\n\n")),
            None => Self::Parts(parts.iter().map(Part::new).collect()),
        }
    }

    /// Marks the end of what is to be cached. Nothing can be marked in an empty text.
    fn mark(&mut self) {
        if let Self::Text(text) = self
            && !text.trim().is_empty()
        {
            *self = Self::Parts(vec![Part::text(std::mem::take(text))]);
        }
        if let Self::Parts(parts) = self
            && let Some(Part::Text { cache_control, .. }) =
                parts.iter_mut().rfind(|part| matches!(part, Part::Text { .. }))
        {
            *cache_control = Some(CacheControl::SHORT);
        }
    }
}

impl Part {
    fn new(part: &UserPart) -> Self {
        match part {
            UserPart::Text(text) => Self::text(text.lossy().into_owned()),
            UserPart::Image(image) => Self::ImageUrl { image_url: ImageUrl { url: data_url(image) } },
        }
    }

    fn text(text: String) -> Self {
        Self::Text { text, cache_control: None }
    }
}

/// The instructions and the conversation.
pub(super) fn messages<'a>(target: &Target<'a>, dialect: &Dialect) -> Vec<Message<'a>> {
    let prompt = &target.call.prompt;
    let system = Some(system_text(prompt)).filter(|text| !text.is_empty()).map(Content::Text);
    let system = system.map(|content| match dialect.developer_role {
        true => Message::Developer { content },
        false => Message::System { content },
    });
    let mut messages: Vec<_> = system.into_iter().collect();
    for item in prompt.items() {
        match item {
            PromptItem::User(parts) => {
                if dialect.answer_after_results && matches!(messages.last(), Some(Message::Tool { .. })) {
                    messages.push(after_results());
                }
                messages.push(Message::User { content: Content::new(parts) });
            }
            PromptItem::Assistant(candidate) => messages.push(assistant(candidate, target, dialect)),
            PromptItem::ToolResults(results) => {
                messages.extend(results.iter().map(|result| tool_result(result, dialect)));
            }
        }
    }
    if dialect.cache_marks {
        mark_for_cache(&mut messages);
    }
    messages
}

/// Marks the instructions and the newest texts of the conversation.
fn mark_for_cache(messages: &mut [Message<'_>]) {
    let mut left = CACHED_MESSAGES;
    for message in messages.iter_mut().rev() {
        match message {
            Message::System { content } | Message::Developer { content } => content.mark(),
            Message::User { content } | Message::Assistant { content: Some(content), .. } if left > 0 => {
                content.mark();
                left -= 1;
            }
            Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => {}
        }
    }
}

fn after_results<'a>() -> Message<'a> {
    let content = Some(Content::Text(AFTER_RESULTS.to_owned()));
    Message::Assistant { content, reasoning: ReasoningBack::default(), tool_calls: Vec::new() }
}

fn tool_result<'a>(result: &'a ToolResult, dialect: &Dialect) -> Message<'a> {
    Message::Tool {
        tool_call_id: result.call_id.as_str(),
        name: dialect.result_names.then_some(result.name.as_str()),
        content: outcome_text(&result.outcome),
    }
}

fn assistant<'a>(candidate: &'a Candidate, target: &Target<'_>, dialect: &Dialect) -> Message<'a> {
    let thoughts = dialect.reasoning_as_text && target.replays(candidate);
    let said = candidate.parts.iter().filter_map(|part| match part {
        OutputPart::Reasoning { text, .. } if thoughts && !text.is_empty() => Some(format!("{}\n\n", text.lossy())),
        OutputPart::Text(text) => Some(text.lossy().into_owned()),
        OutputPart::Reasoning { .. } | OutputPart::ToolCall(_) => None,
    });
    let text: String = said.collect();
    let tool_calls: Vec<_> = candidate.tool_calls().map(call).collect();
    let is_said = !text.is_empty() || tool_calls.is_empty() || dialect.text_always;
    let reasoning =
        if dialect.reasoning_as_text { ReasoningBack::default() } else { reasoning_back(candidate, target, dialect) };
    Message::Assistant { content: is_said.then_some(Content::Text(text)), reasoning, tool_calls }
}

/// What the endpoint wants back of an answer's reasoning; see the reader for the signature's shape.
fn reasoning_back(candidate: &Candidate, target: &Target<'_>, dialect: &Dialect) -> ReasoningBack {
    let mut back = ReasoningBack::default();
    for part in &candidate.parts {
        let OutputPart::Reasoning { text, signature } = part else { continue };
        let Some(state) = target.signature(candidate, signature).map(|json| json.value()) else { continue };
        if let Some(details) = state.get(DETAILS).map(Value::to_json) {
            back.reasoning_details = Some(raw(&details));
            continue;
        }
        let text = Some(text.lossy().into_owned());
        match word(&state, FIELD) {
            "reasoning_content" => back.reasoning_content = text,
            "reasoning" => back.reasoning = text,
            _ => {}
        }
    }
    if dialect.reasoning_always && target.reasoning == Some(Reasoning::On) {
        back.reasoning_content.get_or_insert_default();
    }
    back
}

fn call(call: &ToolCall) -> Call<'_> {
    let function = CallFunction { name: &call.name, arguments: input_text(&call.input) };
    Call { id: call.call_id.as_str(), r#type: "function", function }
}
