//! The answer, a stream of `chat.completion.chunk` objects. Servers differ, so whatever can be understood is.

use nylorun_domain::id::{CallId, InvocationId};
use nylorun_domain::json::{Text, Value};
use nylorun_domain::model::{FinishReason, OutputPart, ToolCall, Usage};

use super::FIELD;
use super::details::{DETAILS, Details};
use crate::failure::Fault;
use crate::prompt::made_call_id;
use crate::providers::{Answer, AnswerReader, DeltaStream, Flow, Pieces, Target, document, tokens, tool_input};
use crate::sse::SseEvent;

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct Reader {
    invocation: InvocationId,
    reasoning: Pieces,
    /// The member in which the reasoning comes.
    field: Option<&'static str>,
    details: Details,
    text: Pieces,
    calls: Vec<PartialCall>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    ended: Flow,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: Option<i64>,
    id: String,
    name: String,
    arguments: Pieces,
}

impl Reader {
    /// A reader of the answer to this call.
    pub(crate) fn new(target: &Target<'_>) -> Self {
        Self {
            invocation: target.call.invocation_id.clone(),
            reasoning: Pieces::default(),
            field: None,
            details: Details::default(),
            text: Pieces::default(),
            calls: Vec::new(),
            finish: None,
            usage: None,
            ended: Flow::More,
        }
    }

    fn take_choice(&mut self, choice: &Value, deltas: &mut DeltaStream) {
        // A server that does not stream answers with a whole `message`.
        let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) else { return };
        for name in ["reasoning_content", "reasoning"] {
            if let Some(piece) = delta.get(name).and_then(Value::as_text).filter(|piece| !piece.is_empty()) {
                self.reasoning.push(piece);
                self.field.get_or_insert(name);
                break;
            }
        }
        self.details.take(delta.get(DETAILS).and_then(Value::as_array).unwrap_or_default());
        for name in ["content", "refusal"] {
            for piece in delta.get(name).into_iter().flat_map(texts) {
                self.text.push(piece);
                deltas.push(piece);
            }
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).unwrap_or_default() {
            self.take_call(call);
        }
    }

    /// A piece of a call. Its index says which one; some servers leave it out, or give all calls the same one.
    fn take_call(&mut self, piece: &Value) {
        let index = piece.get("index").and_then(Value::as_i64);
        let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
        let known = match (index, id) {
            (Some(index), "") => self.calls.iter().rposition(|call| call.index == Some(index)),
            (Some(index), id) => {
                self.calls.iter().rposition(|call| call.index == Some(index) && (call.id == id || call.id.is_empty()))
            }
            (None, "") => self.calls.len().checked_sub(1),
            (None, id) => self.calls.iter().rposition(|call| call.id == id),
        };
        let at = known.unwrap_or_else(|| {
            self.calls.push(PartialCall { index, ..PartialCall::default() });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let Some(function) = piece.get("function") else { return };
        if call.name.is_empty() {
            function.get("name").and_then(Value::as_str).unwrap_or_default().clone_into(&mut call.name);
        }
        match function.get("arguments") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => call.arguments.push(text),
            Some(object) => call.arguments.push(&object.to_json().as_str().into()),
        }
    }

    fn tool_calls(&self) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> = Vec::new();
        for (at, call) in self.calls.iter().enumerate() {
            let fresh = !call.id.is_empty() && calls.iter().all(|other| other.call_id.as_str() != call.id);
            let call_id = if fresh { CallId::from_trusted(&*call.id) } else { made_call_id(&self.invocation, at) };
            calls.push(ToolCall { call_id, name: call.name.clone(), input: tool_input(call.arguments.join()) });
        }
        calls
    }
}

impl AnswerReader for Reader {
    fn take(&mut self, event: &SseEvent, deltas: &mut DeltaStream) -> Result<Flow, Fault> {
        if event.data.trim() == "[DONE]" {
            self.ended = Flow::Ended;
            return Ok(Flow::Ended);
        }
        let chunk = document(event)?;
        if let Some(error) = chunk.get("error").filter(|error| **error != Value::Null) {
            return Err(said(error));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.as_object().is_some()) {
            self.usage = Some(read_usage(usage));
        }
        if let Some(choice) = chunk.get("choices").and_then(Value::as_array).and_then(<[Value]>::first) {
            self.take_choice(choice, deltas);
            if let Some(word) = choice.get("finish_reason").and_then(Value::as_str) {
                self.finish = Some(finish_reason(word));
            }
        }
        Ok(Flow::More)
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some() || self.ended == Flow::Ended
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn finish(self: Box<Self>) -> Answer {
        let calls = self.tool_calls();
        let finish = match self.finish.unwrap_or(FinishReason::Stop) {
            FinishReason::Stop if !calls.is_empty() => FinishReason::ToolCalls,
            other => other,
        };
        let thought = self.reasoning.join();
        let text = Some(self.text.join()).filter(|text| !text.is_empty());
        let details = self.details.into_value().map(|details| (DETAILS, details));
        let state = details.or_else(|| self.field.map(|field| (FIELD, Value::from(field))));
        let mut parts = Vec::new();
        if let Some(state) = state {
            parts.push(OutputPart::Reasoning { text: thought, signature: Some(Value::object([state]).to_json()) });
        }
        parts.extend(text.map(OutputPart::Text));
        parts.extend(calls.into_iter().map(OutputPart::ToolCall));
        Answer { parts, finish, usage: self.usage }
    }
}

/// Content is a string, or a list of parts of which some are text.
fn texts(content: &Value) -> Vec<&Text> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text").and_then(Value::as_text)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

fn said(error: &Value) -> Fault {
    let status = error.get("code").and_then(Value::as_i64).and_then(|code| u16::try_from(code).ok());
    let word = |name| error.get(name).and_then(Value::as_str);
    let kind = word("code").or_else(|| word("type")).unwrap_or_default();
    let message = word("message").or_else(|| error.as_str()).unwrap_or_default();
    Fault::said(status, kind, message)
}

fn finish_reason(word: &str) -> FinishReason {
    match word {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

fn read_usage(usage: &Value) -> Usage {
    let detail = |group: &str, name: &str| usage.get(group).map_or(0, |group| tokens(group, name));
    let prompt = tokens(usage, "prompt_tokens");
    let cached = detail("prompt_tokens_details", "cached_tokens").min(prompt);
    let cache_write = detail("prompt_tokens_details", "cache_write_tokens").min(prompt - cached);
    let output = tokens(usage, "completion_tokens");
    let reasoning = detail("completion_tokens_details", "reasoning_tokens").min(output);
    let sum = prompt.saturating_add(output);
    let total = Some(tokens(usage, "total_tokens")).filter(|total| *total > 0).unwrap_or(sum);
    let input = prompt - cached - cache_write;
    Usage { input, output, cached, cache_write, reasoning, total, cost_nano_usd: cost_nano_usd(usage) }
}

/// What a router charged, in billionths of its credits, which are US dollars. With a key of the tenant's own it charges
/// a fee, and the provider behind it the rest.
fn cost_nano_usd(usage: &Value) -> Option<i64> {
    let dollars = |value: Option<&Value>| match value {
        Some(Value::Number(number)) => Some(number.as_f64()).filter(|dollars| (0.0..1e9).contains(dollars)),
        Some(Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) | None => None,
    };
    let charged = dollars(usage.get("cost"))?;
    let own_key = usage.get("is_byok").and_then(Value::as_bool) == Some(true);
    let upstream = usage.get("cost_details").and_then(|details| details.get("upstream_inference_cost"));
    let rest = if own_key { dollars(upstream).unwrap_or_default() } else { 0.0 };
    // In range, as both sums are.
    Some(((charged + rest) * 1e9).round() as i64)
}
