//! Adapters to providers' APIs: each writes a request and reads the answer's stream, and neither does I/O nor keeps a
//! key.

#[cfg(test)]
mod streams;
mod target;

pub(crate) mod chat;
pub(crate) mod gemini;
pub(crate) mod messages;
pub(crate) mod responses;

use std::sync::Arc;

use nylorun_domain::id::{CallId, InvocationId};
use nylorun_domain::json::{Json, Text, Value, parse};
use nylorun_domain::model::{FinishReason, ModelFailureCode, OutputPart, ToolInput, Usage};
use nylorun_ports::models::{Delta, DeltaSink};
use reqwest::header::HeaderValue;

use crate::catalogue::CUSTOM;
use crate::failure::Fault;
use crate::outbound::{OutboundRequest, credential};
use crate::prompt::made_call_id;
use crate::sse::SseEvent;

use target::invalid;
pub(crate) use target::{Reasoning, Replay, Target};

/// The APIs that this program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    /// OpenAI's Chat Completions, as OpenRouter and many servers speak it.
    Chat,
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
    /// Google's `streamGenerateContent`.
    Gemini,
}

impl Api {
    /// The API of a provider, when this program can call it.
    pub(crate) fn of(provider: &str) -> Option<Self> {
        match provider {
            CUSTOM | chat::OPENROUTER => Some(Self::Chat),
            messages::PROVIDER => Some(Self::Messages),
            responses::PROVIDER => Some(Self::Responses),
            gemini::PROVIDER => Some(Self::Gemini),
            _ => None,
        }
    }

    /// The request of a call.
    pub(crate) fn request(self, target: &Target<'_>) -> Result<OutboundRequest, Fault> {
        match self {
            Self::Chat => chat::request(target),
            Self::Messages => messages::request(target),
            Self::Responses => responses::request(target),
            Self::Gemini => gemini::request(target),
        }
    }

    /// What reads the call's answer.
    pub(crate) fn reader(self, target: &Target<'_>) -> Box<dyn AnswerReader> {
        match self {
            Self::Chat => Box::new(chat::Reader::new(target)),
            Self::Messages => Box::new(messages::Reader::new(target)),
            Self::Responses => Box::new(responses::Reader::new(target)),
            Self::Gemini => Box::new(gemini::Reader::new(target)),
        }
    }
}

/// The header of a provider that takes the key as a bearer token.
fn bearer(key: &str) -> Result<HeaderValue, Fault> {
    credential(&format!("Bearer {key}")).ok_or_else(bad_key)
}

fn bad_key() -> Fault {
    Fault::new(
        ModelFailureCode::Auth,
        "the model's key holds characters that no HTTP header may hold; set the model again",
    )
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Its parts.
    pub(crate) parts: Vec<OutputPart>,
    /// Why it ended.
    pub(crate) finish: FinishReason,
    /// What it used, without cost.
    pub(crate) usage: Option<Usage>,
}

/// Whether more events are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The answer goes on.
    More,
    /// The answer's end was said.
    Ended,
}

/// Reads an answer event by event.
pub(crate) trait AnswerReader: Send {
    /// Takes one event, and passes on the text in it.
    fn take(&mut self, event: &SseEvent, deltas: &mut DeltaStream) -> Result<Flow, Fault>;
    /// Whether what came so far is a whole answer, so that a connection that breaks now costs nothing.
    fn is_complete(&self) -> bool;
    /// What was used so far, as reported.
    fn usage(&self) -> Option<Usage>;
    /// The answer.
    fn finish(self: Box<Self>) -> Answer;
}

/// The deltas of one attempt.
pub(crate) struct DeltaStream {
    sink: Arc<dyn DeltaSink>,
    attempt: u32,
    next: u32,
}

impl DeltaStream {
    /// Deltas of this attempt, counted from 1.
    pub(crate) fn new(sink: Arc<dyn DeltaSink>, attempt: u32) -> Self {
        Self { sink, attempt, next: 0 }
    }

    fn push(&mut self, text: &Text) {
        if text.is_empty() {
            return;
        }
        let text = text.lossy().into_owned();
        self.sink.delta(Delta { attempt: self.attempt, index: self.next, text });
        self.next += 1;
    }
}

/// Text that comes in pieces, perhaps cut between the halves of a surrogate pair.
#[derive(Debug, Default)]
struct Pieces(Vec<Text>);

impl Pieces {
    fn push(&mut self, piece: &Text) {
        if !piece.is_empty() {
            self.0.push(piece.clone());
        }
    }

    fn of(piece: &Text) -> Self {
        Self(vec![piece.clone()])
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn join(&self) -> Text {
        Text::concat(&self.0)
    }
}

/// A member that is text, or nothing.
fn text(value: &Value, name: &str) -> Text {
    value.get(name).and_then(Value::as_text).cloned().unwrap_or_else(|| "".into())
}

/// A member that is a word, or nothing.
fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// What an event holds.
fn document(event: &SseEvent) -> Result<Value, Fault> {
    parse(&event.data).map_err(|error| Fault::unreadable(format!("a piece of the answer is not JSON: {error}")))
}

/// A reasoning part that holds nothing but what the provider wants back before the part after it.
fn state(members: impl IntoIterator<Item = (&'static str, Value)>) -> OutputPart {
    OutputPart::Reasoning { text: "".into(), signature: Some(Value::object(members).to_json()) }
}

/// The provider's id of a call, when it gave one that no call before has; else one made here.
fn given_call_id(id: &str, before: &[OutputPart], invocation: &InvocationId, at: usize) -> CallId {
    let taken = |part: &OutputPart| matches!(part, OutputPart::ToolCall(call) if call.call_id.as_str() == id);
    if id.is_empty() || before.iter().any(taken) { made_call_id(invocation, at) } else { CallId::from_trusted(id) }
}

/// A count of tokens as reported: what is missing, negative or no number counts as nothing.
fn tokens(usage: &Value, name: &str) -> i64 {
    usage.get(name).and_then(Value::as_i64).unwrap_or(0).max(0)
}

/// A tool's input as the model wrote it; nothing at all means an empty object.
fn tool_input(text: Text) -> ToolInput {
    let written = text.as_str().map(str::trim);
    match written {
        Some("") => ToolInput::Json(Json::from_trusted("{}")),
        Some(json) => Json::parse(json).map_or_else(|_| ToolInput::Malformed(text.clone()), ToolInput::Json),
        None => ToolInput::Malformed(text.clone()),
    }
}
