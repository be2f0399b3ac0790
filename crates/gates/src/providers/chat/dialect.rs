//! How an endpoint's Chat Completions differ from the usual: what `settings.compat` says (api 3.2), over what is usual
//! for the provider.

use nylorun_domain::json::{Json, Value};
use serde_json::json;

use super::OPENROUTER;
use crate::failure::Fault;
use crate::providers::{Reasoning, Target, invalid};

/// The effort that is asked for when the tenant wants reasoning and the catalogue has no word.
const USUAL_EFFORT: &str = "medium";

/// An endpoint's ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    /// `supportsDeveloperRole`: instructions are the developer's rather than the system's.
    pub(super) developer_role: bool,
    /// `supportsUsageInStreaming`: the stream says what was used when it is asked to.
    pub(super) usage_in_stream: bool,
    /// `supportsReasoningEffort`: it knows `reasoning_effort`.
    pub(super) effort: bool,
    /// `requiresToolResultName`: a tool's result names the tool.
    pub(super) result_names: bool,
    /// `requiresAssistantAfterToolResult`: the model speaks between a tool's result and the person.
    pub(super) answer_after_results: bool,
    /// `requiresNonNullAssistantContent`: an answer of calls alone has an empty text.
    pub(super) text_always: bool,
    /// `requiresThinkingAsText`: earlier reasoning goes back as text.
    pub(super) reasoning_as_text: bool,
    /// `requiresReasoningContentOnAssistantMessages`: every answer has its reasoning, perhaps empty.
    pub(super) reasoning_always: bool,
    /// `cacheControlFormat`: what is to be cached is marked, as Anthropic wants it.
    pub(super) cache_marks: bool,
    /// `maxTokensField`
    pub(super) max_tokens: MaxTokens,
    /// `thinkingFormat`
    pub(super) thinking: Thinking,
    /// `requiresKey`: it is called with a key.
    pub(super) key: bool,
    /// `openRouterRouting`: which providers a router may choose.
    pub(super) routing: Option<Json>,
}

/// How the output limit is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MaxTokens {
    /// `max_tokens`, as most servers have it.
    Old,
    /// `max_completion_tokens`, as OpenAI has it now.
    New,
}

/// How reasoning is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    /// `reasoning_effort`
    OpenAi,
    /// `reasoning: {effort}` or `{enabled}`
    OpenRouter,
    /// `reasoning: {enabled}`
    Together,
    /// `thinking: {type}`
    DeepSeek,
    /// `enable_thinking`
    Qwen,
    /// `chat_template_kwargs: {enable_thinking}`
    ChatTemplate,
}

const MAX_TOKENS: &[(&str, MaxTokens)] = &[("max_tokens", MaxTokens::Old), ("max_completion_tokens", MaxTokens::New)];
const THINKING: &[(&str, Thinking)] = &[
    ("openai", Thinking::OpenAi),
    ("openrouter", Thinking::OpenRouter),
    ("together", Thinking::Together),
    ("deepseek", Thinking::DeepSeek),
    ("zai", Thinking::DeepSeek),
    ("qwen", Thinking::Qwen),
    ("qwen-chat-template", Thinking::ChatTemplate),
];

impl Dialect {
    /// The ways of the endpoint that is asked.
    pub(super) fn of(target: &Target<'_>) -> Result<Self, Fault> {
        let compat = Compat(&target.compat);
        let is_router = target.model.provider == OPENROUTER;
        let marks = is_router && target.model.model.starts_with("anthropic/");
        let thinking = if is_router { Thinking::OpenRouter } else { Thinking::OpenAi };
        Ok(Self {
            developer_role: compat.flag("supportsDeveloperRole", false)?,
            usage_in_stream: compat.flag("supportsUsageInStreaming", true)?,
            effort: compat.flag("supportsReasoningEffort", true)?,
            result_names: compat.flag("requiresToolResultName", false)?,
            answer_after_results: compat.flag("requiresAssistantAfterToolResult", false)?,
            text_always: compat.flag("requiresNonNullAssistantContent", false)?,
            reasoning_as_text: compat.flag("requiresThinkingAsText", false)?,
            reasoning_always: compat.flag("requiresReasoningContentOnAssistantMessages", false)?,
            cache_marks: compat.word("cacheControlFormat", &[("anthropic", true)], marks)?,
            max_tokens: compat.word("maxTokensField", MAX_TOKENS, MaxTokens::Old)?,
            thinking: compat.word("thinkingFormat", THINKING, thinking)?,
            key: compat.flag("requiresKey", true)?,
            routing: compat.object("openRouterRouting")?,
        })
    }

    /// The members of the request that ask for reasoning, or for none.
    pub(super) fn reasoning(&self, target: &Target<'_>) -> Option<(&'static str, serde_json::Value)> {
        let is_on = match target.reasoning? {
            Reasoning::On => true,
            Reasoning::Off => false,
        };
        let word = target.reasoning_word();
        // A model that the catalogue knows to have no word for this is left alone.
        if target.listed.is_some() && word.is_none() {
            return None;
        }
        match self.thinking {
            Thinking::OpenAi if !self.effort => None,
            Thinking::OpenAi => {
                let effort = word.or(is_on.then_some(USUAL_EFFORT))?;
                Some(("reasoning_effort", json!(effort)))
            }
            Thinking::OpenRouter => match word {
                Some(effort) => Some(("reasoning", json!({ "effort": effort }))),
                None => Some(("reasoning", json!({ "enabled": is_on }))),
            },
            Thinking::Together => Some(("reasoning", json!({ "enabled": is_on }))),
            Thinking::DeepSeek => Some(("thinking", json!({ "type": if is_on { "enabled" } else { "disabled" } }))),
            Thinking::Qwen => Some(("enable_thinking", json!(is_on))),
            Thinking::ChatTemplate => Some(("chat_template_kwargs", json!({ "enable_thinking": is_on }))),
        }
    }
}

/// The members of `settings.compat`. What is not known here means nothing.
struct Compat<'a>(&'a Value);

impl Compat<'_> {
    fn member(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| **value != Value::Null)
    }

    fn flag(&self, name: &str, usual: bool) -> Result<bool, Fault> {
        match self.member(name) {
            None => Ok(usual),
            Some(value) => value.as_bool().ok_or_else(|| wrong(name, value, "true or false")),
        }
    }

    fn word<T: Copy>(&self, name: &str, words: &[(&str, T)], usual: T) -> Result<T, Fault> {
        let Some(value) = self.member(name) else { return Ok(usual) };
        let known = words.iter().find(|(word, _)| value.as_str() == Some(word));
        known.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            wrong(name, value, &words.join(", "))
        })
    }

    fn object(&self, name: &str) -> Result<Option<Json>, Fault> {
        let Some(value) = self.member(name) else { return Ok(None) };
        let object = value.as_object().map(|_| value.to_json());
        object.map(Some).ok_or_else(|| wrong(name, value, "an object"))
    }
}

fn wrong(name: &str, value: &Value, known: &str) -> Fault {
    let value = value.to_json();
    invalid(format!("the model's settings.compat.{name} is {}; it takes {known}", value.as_str()))
}
