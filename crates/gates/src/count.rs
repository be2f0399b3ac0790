//! Counting characters of a prompt, for estimates of its tokens.

use nylorun_domain::model::{OutputPart, Prompt, PromptItem, ToolInput, ToolResult, UserPart};
use nylorun_domain::tool::ToolOutcome;

/// What a picture counts as: about 1,200 tokens, as providers count one of a usual size.
const IMAGE_CHARS: usize = 4_800;

/// Characters (UTF-16 units, or bytes of JSON) that a prompt holds.
pub(crate) fn prompt_chars(prompt: &Prompt) -> usize {
    let instructions: usize = prompt.instructions.iter().map(String::len).sum();
    let items: usize = prompt.items().map(item_chars).sum();
    let tools: usize = prompt
        .tools
        .iter()
        .map(|tool| {
            tool.name.len() + tool.description.as_ref().map_or(0, String::len) + tool.input_schema.as_str().len()
        })
        .sum();
    let schema = prompt.output_schema.as_ref().map_or(0, |schema| schema.as_str().len());
    instructions + items + tools + schema
}

/// Characters of one part of an answer.
pub(crate) fn part_chars(part: &OutputPart) -> usize {
    match part {
        OutputPart::Text(text) => text.utf16_len(),
        OutputPart::Reasoning { text, signature } => {
            text.utf16_len() + signature.as_ref().map_or(0, |value| value.as_str().len())
        }
        OutputPart::ToolCall(call) => call.name.len() + input_chars(&call.input),
    }
}

fn item_chars(item: &PromptItem) -> usize {
    match item {
        PromptItem::User(parts) => parts.iter().map(user_chars).sum(),
        PromptItem::Assistant(candidate) => candidate.parts.iter().map(part_chars).sum(),
        PromptItem::ToolResults(results) => results.iter().map(result_chars).sum(),
    }
}

fn user_chars(part: &UserPart) -> usize {
    match part {
        UserPart::Text(text) => text.utf16_len(),
        UserPart::Image(_) => IMAGE_CHARS,
    }
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
