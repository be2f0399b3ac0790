//! Compaction: older history becomes a summary, so that the conversation fits the model's window (engine b.7).

use crate::json::Text;
use crate::model::words;

words! {
    /// Why a conversation is compacted.
    Trigger {
        /// It comes near to the window's end.
        Threshold = "threshold",
        /// The model said that it does not fit.
        Overflow = "overflow",
    }
}

/// A summary in the place of the entries before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// What it says.
    pub summary: Text,
    /// What happened to the conversation.
    pub compacted: Compacted,
}

/// A compaction in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Why.
    pub trigger: Trigger,
    /// Estimated tokens of the conversation before it.
    pub tokens_before: i64,
    /// Estimated tokens after it.
    pub tokens_after: i64,
}

/// With what a call's instructions begin that asks for a summary. No other call's do.
pub const SUMMARY_TASK: &str = "You compact the history of a conversation between a person and an agent with tools.";
/// With what the message begins that shows the model a summary of what came before.
pub const SUMMARY_HEADING: &str = "Summary of the conversation so far, in the place of its older messages:";
/// The line before what the person said, in the text that is to be summarized.
pub const USER_MARK: &str = "[user]";
/// The line before what the agent said.
pub const ASSISTANT_MARK: &str = "[assistant]";

/// Most characters of one message or tool payload in the text that is to be summarized.
pub const CLIP_CHARS: usize = 2_000;

/// The text, or its beginning and a note of what is left out.
pub fn clip(text: &str) -> String {
    match text.char_indices().nth(CLIP_CHARS) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} […]", &text[..at]),
    }
}
