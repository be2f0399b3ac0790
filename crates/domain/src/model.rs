//! A model call and its answer, in terms of no provider (engine b.6, b.10, e.12).

use std::sync::Arc;

use crate::id::CallId;
use crate::image::Image;
use crate::json::{Json, Text};

/// Everything that a model is asked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The instructions, one text each, in order.
    pub instructions: Vec<String>,
    /// The conversation, oldest first. Prompts of one conversation share their items.
    pub items: Vec<Arc<PromptItem>>,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
    /// JSON Schema that the final answer must follow; the gate adds it to the system text.
    pub output_schema: Option<Json>,
}

impl Prompt {
    /// The conversation, oldest first.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = &PromptItem> + ExactSizeIterator {
        self.items.iter().map(|item| &**item)
    }
}

/// One item of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptItem {
    /// What the person said: one or more parts.
    User(Vec<UserPart>),
    /// What the model answered earlier.
    Assistant(Arc<Candidate>),
    /// What the tools of the answer before this item gave, in the order of its calls.
    ToolResults(Vec<ToolResult>),
}

/// A part of what a person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserPart {
    /// Text, also that of a text file.
    Text(Text),
    /// A picture.
    Image(Image),
}

impl<T: Into<Text>> From<T> for UserPart {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// 1 to 64 of letters, digits, `_`, `-`.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// JSON Schema of its input.
    pub input_schema: Json,
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its parts, in the order in which the model gave them.
    pub parts: Vec<OutputPart>,
    /// Why it ended.
    pub finish: FinishReason,
    /// Tokens and cost, when the provider reported them. Attempts that came to nothing are part of it.
    pub usage: Option<Usage>,
    /// Tokens that the conversation has with this answer, when the provider reported them.
    pub size: Option<i64>,
    /// Who answered.
    pub model: ModelRef,
    /// What the model can hold, when it is known: for compaction (engine b.7).
    pub window: Option<Window>,
}

impl Candidate {
    /// All text parts, joined.
    pub fn text(&self) -> Text {
        let mut texts = self.parts.iter().filter_map(|part| match part {
            OutputPart::Text(text) => Some(text),
            OutputPart::Reasoning { .. } | OutputPart::ToolCall(_) => None,
        });
        match (texts.next(), texts.next()) {
            (None, _) => Text::from(""),
            (Some(only), None) => only.clone(),
            (Some(first), Some(second)) => {
                let rest = texts.map(Text::lossy);
                Text::from([first.lossy(), second.lossy()].into_iter().chain(rest).collect::<String>())
            }
        }
    }

    /// The tool calls, in the model's order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            OutputPart::ToolCall(call) => Some(call),
            OutputPart::Text(_) | OutputPart::Reasoning { .. } => None,
        })
    }
}

/// A part of a model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPart {
    /// Text for the person.
    Text(Text),
    /// The model's own reasoning; replayed only to the same provider and model. No event and no view shows it.
    Reasoning {
        /// Its text, perhaps empty.
        text: Text,
        /// What the provider wants back with it, or with the part after it. Only its adapter knows the shape.
        signature: Option<Json>,
    },
    /// A tool to call.
    ToolCall(ToolCall),
}

/// A tool call that a model asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The model's name for this call; made here when the provider gave none.
    pub call_id: CallId,
    /// The tool.
    pub name: String,
    /// Its input: what the model wrote, when that is JSON.
    pub input: ToolInput,
}

/// A tool's input as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolInput {
    /// JSON.
    Json(Json),
    /// Text that is no JSON: the tool is not run, and the call fails `tool.invalid-arguments`.
    Malformed(Text),
}

/// Why a model stopped (api 4.2, `finishReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It reached its output limit.
    Length,
    /// It wants tools called.
    ToolCalls,
    /// The provider's filter stopped it.
    ContentFilter,
    /// Anything else.
    Other,
}

impl FinishReason {
    /// The wire's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool-calls",
            Self::ContentFilter => "content-filter",
            Self::Other => "other",
        }
    }

    /// The reason of this word.
    pub fn from_wire(word: &str) -> Self {
        match word {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "tool-calls" => Self::ToolCalls,
            "content-filter" => Self::ContentFilter,
            _ => Self::Other,
        }
    }
}

/// A provider's model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRef {
    /// The provider's id: `anthropic`, `openai`, `google`, `openrouter`, `custom`, `fixture`.
    pub provider: String,
    /// The model's id at that provider.
    pub model: String,
}

/// What a model can hold, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Input and output together.
    pub context: i64,
    /// Output alone.
    pub output: i64,
}

/// What one model call used, all its attempts together. Counts are tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input, cached input not counted.
    pub input: i64,
    /// Output, reasoning counted.
    pub output: i64,
    /// Input read from the provider's cache.
    pub cached: i64,
    /// Input written to the provider's cache.
    pub cache_write: i64,
    /// Output spent on reasoning.
    pub reasoning: i64,
    /// The total as reported, or the sum of input, output, cached and cache_write.
    pub total: i64,
    /// Cost in billionths of a US dollar, when the model's price is known.
    pub cost_nano_usd: Option<i64>,
}

impl Usage {
    /// What two attempts used together. Their cost is known when both are.
    pub fn plus(self, other: Self) -> Self {
        let costs = self.cost_nano_usd.zip(other.cost_nano_usd);
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            total: self.total.saturating_add(other.total),
            cost_nano_usd: costs.map(|(one, two)| one.saturating_add(two)),
        }
    }
}

/// What became of a model call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelOutcome {
    /// It answered.
    Completed(Candidate),
    /// It did not.
    Failed(ModelFailure),
}

/// A failed model call (engine b.10). A value, not an error: the turn decides what to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFailure {
    /// What kind of failure.
    pub code: ModelFailureCode,
    /// What happened, without secrets.
    pub message: String,
    /// Whether trying again later may help.
    pub retryable: bool,
    /// Tokens that the provider reported all the same.
    pub usage: Option<Usage>,
    /// Who was asked, when that is known.
    pub model: Option<ModelRef>,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The wire's word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The one of this word.
            pub fn from_wire(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Kinds of model failure; a turn fails as `model.<code>` (api 4.2).
    ModelFailureCode {
        /// The prompt does not fit the model's window.
        ContextOverflow = "context_overflow",
        /// The provider limits how often it may be called, or the account's quota is used up.
        RateLimited = "rate_limited",
        /// The provider is overloaded.
        Overloaded = "overloaded",
        /// No answer in time.
        Timeout = "timeout",
        /// A fault that may pass.
        Transient = "transient",
        /// The provider refused the content.
        ContentPolicy = "content_policy",
        /// No credential, or one that the provider refuses.
        Auth = "auth",
        /// The provider refuses the request itself.
        InvalidRequest = "invalid_request",
        /// The answer cannot be read.
        InvalidOutput = "invalid_output",
        /// A budget is used up; nothing was called.
        BudgetExhausted = "budget_exhausted",
    }
}

/// The result of a tool call as the model is shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: CallId,
    /// The tool.
    pub name: String,
    /// What it gave.
    pub outcome: crate::tool::ToolOutcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_attempts_used_adds_up_and_an_unknown_cost_stays_unknown() {
        let one =
            Usage { input: 1, output: 2, cached: 3, cache_write: 4, reasoning: 1, total: 10, cost_nano_usd: Some(5) };
        let twice =
            Usage { input: 2, output: 4, cached: 6, cache_write: 8, reasoning: 2, total: 20, cost_nano_usd: Some(10) };
        assert_eq!(one.plus(one), twice);
        let unpriced = Usage { cost_nano_usd: None, ..one };
        assert_eq!(one.plus(unpriced), Usage { cost_nano_usd: None, ..twice });
        let most = Usage { total: i64::MAX, ..one };
        assert_eq!(most.plus(one).total, i64::MAX);
    }
}
