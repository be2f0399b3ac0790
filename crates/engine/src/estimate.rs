//! Estimates of tokens (engine b.7): four characters each.

use nylorun_domain::json::Text;
use nylorun_domain::model::{Candidate, OutputPart, Prompt, ToolInput, ToolResult};
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::transcript::{Entry, Input};

/// Characters of one token.
pub(crate) const CHARS_PER_TOKEN: usize = 4;

/// Tokens of so many characters.
pub(crate) fn tokens(chars: usize) -> i64 {
    i64::try_from(chars.div_ceil(CHARS_PER_TOKEN)).unwrap_or(i64::MAX)
}

/// Tokens of an entry.
pub(crate) fn entry_tokens(entry: &Entry) -> i64 {
    tokens(match entry {
        Entry::Input(Input::Content(text)) => text.utf16_len(),
        Entry::Input(Input::Data(data)) => data.as_str().len(),
        Entry::Input(Input::Parts(texts)) => texts.iter().map(Text::utf16_len).sum(),
        Entry::Candidate { candidate, .. } => candidate_chars(candidate),
        Entry::ToolResults(results) => results.iter().map(result_chars).sum(),
        Entry::Compaction(compaction) => compaction.summary.utf16_len(),
        Entry::Final { .. } => 0,
    })
}

/// Tokens of what stands in every prompt.
pub(crate) fn frame_tokens(prompt: &Prompt) -> i64 {
    let instructions: usize = prompt.instructions.iter().map(String::len).sum();
    let tools = prompt.tools.iter().map(|tool| {
        tool.name.len() + tool.description.as_ref().map_or(0, String::len) + tool.input_schema.as_str().len()
    });
    let schema = prompt.output_schema.as_ref().map_or(0, |schema| schema.as_str().len());
    tokens(instructions + tools.sum::<usize>() + schema)
}

fn candidate_chars(candidate: &Candidate) -> usize {
    let part = |part: &OutputPart| match part {
        OutputPart::Text(text) => text.utf16_len(),
        OutputPart::Reasoning { text, signature } => {
            text.utf16_len() + signature.as_ref().map_or(0, |signature| signature.as_str().len())
        }
        OutputPart::ToolCall(call) => call.name.len() + input_chars(&call.input),
    };
    candidate.parts.iter().map(part).sum()
}

fn input_chars(input: &ToolInput) -> usize {
    match input {
        ToolInput::Json(json) => json.as_str().len(),
        ToolInput::Malformed(text) => text.utf16_len(),
    }
}

fn result_chars(result: &ToolResult) -> usize {
    match &result.outcome {
        ToolOutcome::Completed { output } => output.as_str().len(),
        ToolOutcome::Failed { code, message } => code.len() + message.len(),
    }
}
