//! The answer, a stream of `GenerateContentResponse` objects, each with the parts that came since the one before.

use nylorun_domain::id::InvocationId;
use nylorun_domain::json::{Json, Text, Value};
use nylorun_domain::model::{FinishReason, ModelFailureCode, OutputPart, ToolCall, ToolInput, Usage};

use super::{CAME_WITH, EMPTY_TEXT, SIGNATURE, THOUGHT};
use crate::failure::Fault;
use crate::providers::{
    Answer, AnswerReader, DeltaStream, Flow, Pieces, Target, document, given_call_id, text, tokens, word,
};
use crate::sse::SseEvent;

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct Reader {
    invocation: InvocationId,
    pieces: Vec<Piece>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
}

/// A part, or several of one kind that may be joined: those without a signature.
#[derive(Debug)]
enum Piece {
    Thought(Pieces),
    Text(Pieces),
    Call {
        id: String,
        name: String,
        input: Json,
    },
    /// Of the part after it, or of the one that it names.
    Signature {
        signature: Text,
        came_with: Option<&'static str>,
        thought: Text,
    },
}

/// Whether a text is the model's own or the person's.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Thought,
    Text,
}

impl Reader {
    /// A reader of the answer to this call.
    pub(crate) fn new(target: &Target<'_>) -> Self {
        let invocation = target.call.invocation_id.clone();
        Self { invocation, pieces: Vec::new(), finish: None, usage: None }
    }

    fn take_part(&mut self, part: &Value, deltas: &mut DeltaStream) {
        let signature = text(part, SIGNATURE);
        if let Some(call) = part.get("functionCall") {
            self.sign(signature, None, "".into());
            let input = call.get("args").filter(|args| args.as_object().is_some());
            self.pieces.push(Piece::Call {
                id: word(call, "id").to_owned(),
                name: word(call, "name").to_owned(),
                input: input.map_or_else(|| Json::from_trusted("{}"), Value::to_json),
            });
            return;
        }
        let Some(said) = part.get("text").and_then(Value::as_text) else { return };
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        match (is_thought, signature.is_empty()) {
            (true, true) => self.say(said, Kind::Thought),
            (true, false) => self.sign(signature, Some(THOUGHT), said.clone()),
            (false, true) => {
                deltas.push(said);
                self.say(said, Kind::Text);
            }
            (false, false) if said.is_empty() => self.sign(signature, Some(EMPTY_TEXT), "".into()),
            (false, false) => {
                deltas.push(said);
                self.sign(signature, None, "".into());
                self.pieces.push(Piece::Text(Pieces::of(said)));
                // What comes now has no signature, so it may not be joined to this.
                self.pieces.push(Piece::Text(Pieces::default()));
            }
        }
    }

    fn sign(&mut self, signature: Text, came_with: Option<&'static str>, thought: Text) {
        if !signature.is_empty() {
            self.pieces.push(Piece::Signature { signature, came_with, thought });
        }
    }

    /// Adds to the text of this kind that is being said, or begins one.
    fn say(&mut self, said: &Text, kind: Kind) {
        match (self.pieces.last_mut(), kind) {
            (Some(Piece::Thought(pieces)), Kind::Thought) | (Some(Piece::Text(pieces)), Kind::Text) => {
                pieces.push(said);
            }
            (_, Kind::Thought) => self.pieces.push(Piece::Thought(Pieces::of(said))),
            (_, Kind::Text) => self.pieces.push(Piece::Text(Pieces::of(said))),
        }
    }

    fn take_end(&mut self, candidate: &Value) -> Result<(), Fault> {
        let reason = word(candidate, "finishReason");
        self.finish = match reason {
            "" | "FINISH_REASON_UNSPECIFIED" => return Ok(()),
            // The model wrote a call that is none; asked again, it usually does better.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
                let message = text(candidate, "finishMessage").lossy().into_owned();
                let fault = Fault::unreadable(format!("{reason}: {message}"));
                return Err(Fault { retryable: true, ..fault });
            }
            "MAX_TOKENS" => Some(FinishReason::Length),
            "SAFETY" | "PROHIBITED_CONTENT" | "BLOCKLIST" | "SPII" | "RECITATION" => Some(FinishReason::ContentFilter),
            "STOP" | "FUNCTION_CALL" => Some(FinishReason::Stop),
            _ => Some(FinishReason::Other),
        };
        Ok(())
    }
}

impl AnswerReader for Reader {
    fn take(&mut self, event: &SseEvent, deltas: &mut DeltaStream) -> Result<Flow, Fault> {
        let event = document(event)?;
        if let Some(error) = event.get("error") {
            let status = error.get("code").and_then(Value::as_i64).and_then(|code| u16::try_from(code).ok());
            return Err(Fault::said(status, word(error, "status"), word(error, "message")));
        }
        if let Some(usage) = event.get("usageMetadata").filter(|usage| usage.as_object().is_some()) {
            self.usage = Some(read_usage(usage));
        }
        let blocked = event.get("promptFeedback").map(|feedback| word(feedback, "blockReason")).unwrap_or_default();
        if !blocked.is_empty() {
            let message = format!("the provider refused the prompt: {blocked}");
            return Err(Fault::new(ModelFailureCode::ContentPolicy, message));
        }
        let candidates = event.get("candidates").and_then(Value::as_array).unwrap_or_default();
        let Some(candidate) = candidates.first() else { return Ok(Flow::More) };
        let parts = candidate.get("content").and_then(|content| content.get("parts")).and_then(Value::as_array);
        for part in parts.unwrap_or_default() {
            self.take_part(part, deltas);
        }
        self.take_end(candidate)?;
        Ok(Flow::More)
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn finish(self: Box<Self>) -> Answer {
        let Self { invocation, pieces, finish, usage } = *self;
        let mut parts: Vec<OutputPart> = Vec::new();
        for (at, piece) in pieces.into_iter().enumerate() {
            match piece {
                Piece::Thought(pieces) => {
                    let text = pieces.join();
                    if !text.is_empty() {
                        parts.push(OutputPart::Reasoning { text, signature: None });
                    }
                }
                Piece::Text(pieces) => {
                    let text = pieces.join();
                    if !text.is_empty() {
                        parts.push(OutputPart::Text(text));
                    }
                }
                Piece::Signature { signature, came_with, thought } => {
                    parts.push(signed(thought, signature, came_with));
                }
                Piece::Call { id, name, input } => {
                    let call_id = given_call_id(&id, &parts, &invocation, at);
                    parts.push(OutputPart::ToolCall(ToolCall { call_id, name, input: ToolInput::Json(input) }));
                }
            }
        }
        let calls = parts.iter().any(|part| matches!(part, OutputPart::ToolCall(_)));
        let finish = match finish.unwrap_or(FinishReason::Stop) {
            FinishReason::Stop if calls => FinishReason::ToolCalls,
            other => other,
        };
        Answer { parts, finish, usage }
    }
}

/// What the provider wants back, with the thought that it came with if it came with one.
fn signed(thought: Text, signature: Text, came_with: Option<&str>) -> OutputPart {
    let came_with = came_with.map(|part| (CAME_WITH, Value::from(part)));
    let members = [(SIGNATURE, Value::from(signature))].into_iter().chain(came_with);
    OutputPart::Reasoning { text: thought, signature: Some(Value::object(members).to_json()) }
}

/// The prompt's count holds what was read from the cache; that of the candidates does not hold the thoughts.
fn read_usage(usage: &Value) -> Usage {
    let prompt = tokens(usage, "promptTokenCount");
    let cached = tokens(usage, "cachedContentTokenCount").min(prompt);
    let input = (prompt - cached).saturating_add(tokens(usage, "toolUsePromptTokenCount"));
    let reasoning = tokens(usage, "thoughtsTokenCount");
    let output = tokens(usage, "candidatesTokenCount").saturating_add(reasoning);
    let sum = input.saturating_add(cached).saturating_add(output);
    let total = Some(tokens(usage, "totalTokenCount")).filter(|total| *total > 0).unwrap_or(sum);
    Usage { input, output, cached, cache_write: 0, reasoning, total, cost_nano_usd: None }
}
