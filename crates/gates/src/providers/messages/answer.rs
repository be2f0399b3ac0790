//! The answer, a stream of events whose `type` says what they are.

use std::collections::BTreeMap;

use nylorun_domain::id::{CallId, InvocationId};
use nylorun_domain::json::{Json, Text, Value};
use nylorun_domain::model::{FinishReason, OutputPart, ToolCall, ToolInput, Usage};

use crate::failure::Fault;
use crate::prompt::made_call_id;
use crate::providers::{
    Answer, AnswerReader, DeltaStream, Flow, Pieces, Target, document, text, tokens, tool_input, word,
};
use crate::sse::SseEvent;

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct Reader {
    invocation: InvocationId,
    /// By the API's index; what stands under an unknown type is left out.
    blocks: BTreeMap<i64, Block>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
}

#[derive(Debug)]
enum Block {
    Text(Pieces),
    Thinking { text: Pieces, signature: Pieces },
    Redacted(Text),
    ToolUse { id: String, name: String, given: Json, written: Pieces },
}

impl Reader {
    /// A reader of the answer to this call.
    pub(crate) fn new(target: &Target<'_>) -> Self {
        let invocation = target.call.invocation_id.clone();
        Self { invocation, blocks: BTreeMap::new(), finish: None, usage: None }
    }

    fn begin_block(&mut self, event: &Value, deltas: &mut DeltaStream) {
        let (Some(index), Some(block)) = (index(event), event.get("content_block")) else { return };
        let begun = |name| {
            let mut pieces = Pieces::default();
            pieces.push(&text(block, name));
            pieces
        };
        let block = match word(block, "type") {
            "text" => {
                deltas.push(&text(block, "text"));
                Block::Text(begun("text"))
            }
            "thinking" => Block::Thinking { text: begun("thinking"), signature: begun("signature") },
            "redacted_thinking" => Block::Redacted(text(block, "data")),
            "tool_use" => Block::ToolUse {
                id: word(block, "id").to_owned(),
                name: word(block, "name").to_owned(),
                given: block.get("input").map_or_else(|| Json::from_trusted("{}"), Value::to_json),
                written: Pieces::default(),
            },
            _ => return,
        };
        self.blocks.insert(index, block);
    }

    fn extend_block(&mut self, event: &Value, deltas: &mut DeltaStream) {
        let (Some(index), Some(delta)) = (index(event), event.get("delta")) else { return };
        match (self.blocks.get_mut(&index), word(delta, "type")) {
            (Some(Block::Text(pieces)), "text_delta") => {
                let piece = text(delta, "text");
                deltas.push(&piece);
                pieces.push(&piece);
            }
            (Some(Block::Thinking { text: pieces, .. }), "thinking_delta") => pieces.push(&text(delta, "thinking")),
            (Some(Block::Thinking { signature, .. }), "signature_delta") => signature.push(&text(delta, "signature")),
            (Some(Block::ToolUse { written, .. }), "input_json_delta") => written.push(&text(delta, "partial_json")),
            _ => {}
        }
    }

    /// The last report of each count holds: those at the end are of the whole message.
    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.filter(|usage| usage.as_object().is_some()) else { return };
        let counted = self.usage.get_or_insert_default();
        let set = |name, count: &mut i64| {
            if usage.get(name).and_then(Value::as_i64).is_some() {
                *count = tokens(usage, name);
            }
        };
        set("input_tokens", &mut counted.input);
        set("output_tokens", &mut counted.output);
        set("cache_read_input_tokens", &mut counted.cached);
        set("cache_creation_input_tokens", &mut counted.cache_write);
        let sums = [counted.input, counted.output, counted.cached, counted.cache_write];
        counted.total = sums.into_iter().fold(0, i64::saturating_add);
    }
}

impl AnswerReader for Reader {
    fn take(&mut self, event: &SseEvent, deltas: &mut DeltaStream) -> Result<Flow, Fault> {
        let event = document(event)?;
        match word(&event, "type") {
            "message_start" => self.count(event.get("message").and_then(|message| message.get("usage"))),
            "content_block_start" => self.begin_block(&event, deltas),
            "content_block_delta" => self.extend_block(&event, deltas),
            "message_delta" => {
                self.count(event.get("usage"));
                if let Some(reason) =
                    event.get("delta").map(|delta| word(delta, "stop_reason")).filter(|r| !r.is_empty())
                {
                    self.finish = Some(finish_reason(reason));
                }
            }
            "message_stop" => return Ok(Flow::Ended),
            "error" => {
                let error = event.get("error").unwrap_or(&Value::Null);
                return Err(Fault::said(None, word(error, "type"), word(error, "message")));
            }
            // `ping`, `content_block_stop`, and what later versions add.
            _ => {}
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
        let Self { invocation, blocks, finish, usage } = *self;
        let parts: Vec<_> =
            blocks.into_values().enumerate().filter_map(|(at, block)| part(&invocation, at, block)).collect();
        Answer { parts, finish: finish.unwrap_or(FinishReason::Stop), usage }
    }
}

fn part(invocation: &InvocationId, at: usize, block: Block) -> Option<OutputPart> {
    match block {
        Block::Text(pieces) => Some(pieces.join()).filter(|text| !text.is_empty()).map(OutputPart::Text),
        Block::Thinking { text, signature } => {
            let signature = Some(signature.join()).filter(|signature| !signature.is_empty());
            let signature = signature.map(|text| Value::object([("signature", Value::from(text))]).to_json());
            Some(OutputPart::Reasoning { text: text.join(), signature })
        }
        Block::Redacted(data) => {
            let signature = Some(Value::object([("data", Value::from(data))]).to_json());
            Some(OutputPart::Reasoning { text: "".into(), signature })
        }
        Block::ToolUse { id, name, given, written } => {
            let call_id = if id.is_empty() { made_call_id(invocation, at) } else { CallId::from_trusted(id) };
            let written = written.join();
            let input = if written.is_empty() { ToolInput::Json(given) } else { tool_input(written) };
            Some(OutputPart::ToolCall(ToolCall { call_id, name, input }))
        }
    }
}

fn index(event: &Value) -> Option<i64> {
    event.get("index").and_then(Value::as_i64)
}

fn finish_reason(word: &str) -> FinishReason {
    match word {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}
