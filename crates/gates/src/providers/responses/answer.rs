//! The answer, a stream of events whose `type` says what they are. An answer is a list of items: reasoning, messages
//! and function calls.

use std::collections::BTreeMap;

use nylorun_domain::id::InvocationId;
use nylorun_domain::json::{Text, Value};
use nylorun_domain::model::{FinishReason, OutputPart, ToolCall, Usage};

use crate::failure::Fault;
use crate::providers::{
    Answer, AnswerReader, DeltaStream, Flow, Pieces, Target, document, given_call_id, state, text, tokens, tool_input,
    word,
};
use crate::sse::SseEvent;

/// The member of a reasoning item, and of its part's signature, that only the provider can read.
pub(super) const ENCRYPTED: &str = "encrypted_content";
/// The member of a message, and of the signature before its text, that says whether it is the final answer.
pub(super) const PHASE: &str = "phase";

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct Reader {
    invocation: InvocationId,
    /// By the API's index; what stands under an unknown type is left out.
    items: BTreeMap<i64, Item>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
}

#[derive(Debug)]
enum Item {
    Message { text: Pieces, phase: Text, refusal: Refusal },
    Reasoning { text: Pieces, encrypted: Text },
    Call { id: String, name: String, arguments: Pieces },
}

/// Whether a message is the model's refusal to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    No,
    Yes,
}

impl Item {
    fn new(item: &Value) -> Option<Self> {
        match word(item, "type") {
            "message" => Some(Self::Message { text: Pieces::default(), phase: "".into(), refusal: Refusal::No }),
            "reasoning" => Some(Self::Reasoning { text: Pieces::default(), encrypted: "".into() }),
            "function_call" => {
                Some(Self::Call { id: String::new(), name: String::new(), arguments: Pieces::default() })
            }
            _ => None,
        }
    }

    /// Takes what the item says itself, when it begins and when it is done. Its text counts only where no piece of it
    /// came before.
    fn take(&mut self, item: &Value, deltas: &mut DeltaStream) {
        match self {
            Self::Message { text: pieces, phase, refusal } => {
                replace(phase, text(item, PHASE));
                for part in item.get("content").and_then(Value::as_array).unwrap_or_default() {
                    if word(part, "type") == "refusal" {
                        *refusal = Refusal::Yes;
                    }
                }
                if pieces.is_empty() {
                    for said in texts(item, "content") {
                        deltas.push(&said);
                        pieces.push(&said);
                    }
                }
            }
            Self::Reasoning { text: pieces, encrypted } => {
                replace(encrypted, text(item, ENCRYPTED));
                if pieces.is_empty() {
                    // The summary is what the provider shows of the reasoning; open models give the whole of it.
                    let whole = [texts(item, "summary"), texts(item, "content")];
                    for (at, said) in whole.into_iter().find(|texts| !texts.is_empty()).iter().flatten().enumerate() {
                        if at > 0 {
                            pieces.push(&BREAK.into());
                        }
                        pieces.push(said);
                    }
                }
            }
            Self::Call { id, name, arguments } => {
                for (known, member) in [(id, "call_id"), (name, "name")] {
                    if known.is_empty() {
                        word(item, member).clone_into(known);
                    }
                }
                if arguments.is_empty() {
                    arguments.push(&text(item, "arguments"));
                }
            }
        }
    }
}

/// What stands between two parts of a summary.
const BREAK: &str = "\n\n";

fn replace(known: &mut Text, newer: Text) {
    if !newer.is_empty() {
        *known = newer;
    }
}

/// The texts of a list of parts; a refusal is text too.
fn texts(item: &Value, name: &str) -> Vec<Text> {
    let parts = item.get(name).and_then(Value::as_array).unwrap_or_default();
    let said = |part: &Value| part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_text).cloned();
    parts.iter().filter_map(said).filter(|text| !text.is_empty()).collect()
}

impl Reader {
    /// A reader of the answer to this call.
    pub(crate) fn new(target: &Target<'_>) -> Self {
        let invocation = target.call.invocation_id.clone();
        Self { invocation, items: BTreeMap::new(), finish: None, usage: None }
    }

    fn take_item(&mut self, index: i64, item: &Value, deltas: &mut DeltaStream) {
        if let std::collections::btree_map::Entry::Vacant(place) = self.items.entry(index) {
            let Some(fresh) = Item::new(item) else { return };
            place.insert(fresh);
        }
        if let Some(known) = self.items.get_mut(&index) {
            known.take(item, deltas);
        }
    }

    fn extend(&mut self, kind: &str, event: &Value, deltas: &mut DeltaStream) {
        let Some(item) = index(event).and_then(|index| self.items.get_mut(&index)) else { return };
        let piece = text(event, "delta");
        match (item, kind) {
            (Item::Message { text, refusal, .. }, "response.output_text.delta" | "response.refusal.delta") => {
                if kind == "response.refusal.delta" {
                    *refusal = Refusal::Yes;
                }
                deltas.push(&piece);
                text.push(&piece);
            }
            (
                Item::Reasoning { text, .. },
                "response.reasoning_summary_text.delta" | "response.reasoning_text.delta",
            ) => text.push(&piece),
            (Item::Reasoning { text, .. }, "response.reasoning_summary_part.added") if !text.is_empty() => {
                text.push(&BREAK.into());
            }
            (Item::Call { arguments, .. }, "response.function_call_arguments.delta") => arguments.push(&piece),
            _ => {}
        }
    }

    /// The response as it stands at its end.
    fn end(&mut self, response: &Value, deltas: &mut DeltaStream) -> Result<Flow, Fault> {
        if let Some(usage) = response.get("usage").filter(|usage| usage.as_object().is_some()) {
            self.usage = Some(read_usage(usage));
        }
        if word(response, "status") == "failed" {
            return Err(said(response.get("error").unwrap_or(&Value::Null)));
        }
        let output = response.get("output").and_then(Value::as_array).unwrap_or_default();
        for (index, item) in (0..).zip(output) {
            self.take_item(index, item, deltas);
        }
        let reason = response.get("incomplete_details").map(|details| word(details, "reason")).unwrap_or_default();
        self.finish = Some(match (word(response, "status"), reason) {
            ("incomplete", "max_output_tokens") => FinishReason::Length,
            ("incomplete", "content_filter") => FinishReason::ContentFilter,
            ("incomplete", _) => FinishReason::Other,
            _ => FinishReason::Stop,
        });
        Ok(Flow::Ended)
    }
}

impl AnswerReader for Reader {
    fn take(&mut self, event: &SseEvent, deltas: &mut DeltaStream) -> Result<Flow, Fault> {
        if event.data.trim() == "[DONE]" {
            return Ok(Flow::Ended);
        }
        let event = document(event)?;
        match word(&event, "type") {
            "response.output_item.added" | "response.output_item.done" => {
                if let (Some(index), Some(item)) = (index(&event), event.get("item")) {
                    self.take_item(index, item, deltas);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                return self.end(event.get("response").unwrap_or(&Value::Null), deltas);
            }
            "error" => return Err(said(event.get("error").unwrap_or(&event))),
            // A server that does not stream answers with the response itself.
            "" if word(&event, "object") == "response" => return self.end(&event, deltas),
            kind => self.extend(kind, &event, deltas),
        }
        Ok(Flow::More)
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn finish(self: Box<Self>) -> Answer {
        let Self { invocation, items, finish, usage } = *self;
        let mut parts = Vec::new();
        let mut refused = Refusal::No;
        for (at, item) in items.into_values().enumerate() {
            match item {
                Item::Message { text, phase, refusal } => {
                    if refusal == Refusal::Yes {
                        refused = refusal;
                    }
                    let text = text.join();
                    if text.is_empty() {
                        continue;
                    }
                    if !phase.is_empty() {
                        parts.push(state([(PHASE, Value::from(phase))]));
                    }
                    parts.push(OutputPart::Text(text));
                }
                Item::Reasoning { text, encrypted } => parts.extend(reasoning(text.join(), encrypted)),
                Item::Call { id, name, arguments } => {
                    let call_id = given_call_id(&id, &parts, &invocation, at);
                    parts.push(OutputPart::ToolCall(ToolCall { call_id, name, input: tool_input(arguments.join()) }));
                }
            }
        }
        let calls = parts.iter().any(|part| matches!(part, OutputPart::ToolCall(_)));
        let finish = match finish.unwrap_or(FinishReason::Stop) {
            FinishReason::Stop if calls => FinishReason::ToolCalls,
            FinishReason::Stop if refused == Refusal::Yes => FinishReason::ContentFilter,
            other => other,
        };
        Answer { parts, finish, usage }
    }
}

fn reasoning(text: Text, encrypted: Text) -> Option<OutputPart> {
    let signature = Some(encrypted).filter(|encrypted| !encrypted.is_empty());
    let signature = signature.map(|encrypted| Value::object([(ENCRYPTED, Value::from(encrypted))]).to_json());
    (!text.is_empty() || signature.is_some()).then_some(OutputPart::Reasoning { text, signature })
}

fn index(event: &Value) -> Option<i64> {
    event.get("output_index").and_then(Value::as_i64)
}

fn said(error: &Value) -> Fault {
    Fault::said(None, word(error, "code"), word(error, "message"))
}

/// The prompt's count holds what was read from the cache and what was written to it.
fn read_usage(usage: &Value) -> Usage {
    let detail = |group: &str, name: &str| usage.get(group).map_or(0, |group| tokens(group, name));
    let prompt = tokens(usage, "input_tokens");
    let cached = detail("input_tokens_details", "cached_tokens").min(prompt);
    let cache_write = detail("input_tokens_details", "cache_write_tokens").min(prompt - cached);
    let output = tokens(usage, "output_tokens");
    let reasoning = detail("output_tokens_details", "reasoning_tokens").min(output);
    let sum = prompt.saturating_add(output);
    let total = Some(tokens(usage, "total_tokens")).filter(|total| *total > 0).unwrap_or(sum);
    let input = prompt - cached - cache_write;
    Usage { input, output, cached, cache_write, reasoning, total, cost_nano_usd: None }
}
