//! The model catalogue: what models there are, what they hold and what they cost.
//!
//! The committed file is `data/models.json`. An operator's file of the same shape is merged over it: a model with the
//! same provider and id replaces the committed one, others are added. Providers are those that this program can call.

mod file;
mod price;

use nylorun_domain::model::{Usage, Window};

pub use price::Price;

const COMMITTED: &str = include_str!("../../../../data/models.json");

/// The provider whose models nobody lists: any id is accepted, and it costs nothing (api 3.2).
pub const CUSTOM: &str = "custom";

/// Why a catalogue file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// It is no JSON; where, and why.
    #[error("line {line}, column {column}: not JSON: {problem}")]
    NotJson {
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong there.
        problem: &'static str,
    },
    /// It has another shape: each problem with its line, its member, and the value that is there.
    #[error("{}", .0.join("; "))]
    Wrong(Vec<String>),
}

/// The catalogue.
#[derive(Clone, Debug)]
pub struct Catalogue {
    providers: Vec<Provider>,
}

/// A provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// `anthropic`, `openai`, `google`, `openrouter`, `custom`.
    pub id: String,
    /// Its name for people; the id when a file gives none.
    pub name: String,
    /// Its models; none for [`CUSTOM`].
    pub models: Vec<Model>,
}

/// A model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its id at the provider.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Tokens of input and output together.
    pub context_window: i64,
    /// Tokens of output.
    pub max_tokens: i64,
    /// Whether it reads images.
    pub images: bool,
    /// How it is asked to reason; none for a model that does not.
    pub reasoning: Option<ReasoningWords>,
    /// What it costs.
    pub price: Option<Price>,
    /// What a call with a long prompt costs, where that differs.
    pub long_prompt: Option<LongPrompt>,
}

/// A provider's words for a model's reasoning. Without a word, such a model is left to its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasoningWords {
    /// Asks it to reason: `effort` of OpenAI and OpenRouter, `thinking.type` of Anthropic, and of Google the thinking
    /// level or, as a number, the thinking budget in tokens.
    pub on: Option<String>,
    /// Asks it not to, or to reason as little as it can.
    pub off: Option<String>,
}

/// The price of calls whose prompt is long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongPrompt {
    /// It holds for prompts of more tokens than this, cached ones counted.
    pub above: i64,
    /// The price of every token of such a call.
    pub price: Price,
}

impl Catalogue {
    /// The committed catalogue, with an operator's file merged over it when its text is given.
    pub fn load(operators: Option<&str>) -> Result<Self, CatalogueError> {
        let mut catalogue = file::read(COMMITTED)?;
        if let Some(text) = operators {
            catalogue.merge(file::read(text)?);
        }
        Ok(catalogue)
    }

    /// All providers with their models: the answer of `GET /v1/tenant/models`.
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// The provider of this id.
    pub fn provider(&self, id: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    /// The model, when it is listed.
    pub fn model(&self, provider: &str, model: &str) -> Option<&Model> {
        self.provider(provider)?.models.iter().find(|known| known.id == model)
    }

    /// Whether a tenant may choose this model: it is listed, or its provider is [`CUSTOM`].
    pub fn accepts(&self, provider: &str, model: &str) -> bool {
        provider == CUSTOM || self.model(provider, model).is_some()
    }

    fn merge(&mut self, over: Self) {
        for provider in over.providers {
            let Some(known) = self.providers.iter_mut().find(|known| known.id == provider.id) else {
                self.providers.push(provider);
                continue;
            };
            if !provider.name.is_empty() {
                known.name = provider.name;
            }
            for model in provider.models {
                match known.models.iter_mut().find(|other| other.id == model.id) {
                    Some(other) => *other = model,
                    None => known.models.push(model),
                }
            }
        }
    }
}

impl Model {
    /// What it can hold.
    pub fn window(&self) -> Window {
        Window { context: self.context_window, output: self.max_tokens }
    }

    /// What a call cost, in billionths of a US dollar, rounded up; `None` when the price is not known.
    pub fn cost_nano_usd(&self, usage: &Usage) -> Option<i64> {
        let prompt = usage.input.saturating_add(usage.cached).saturating_add(usage.cache_write);
        let long = self.long_prompt.filter(|long| prompt > long.above);
        long.map(|long| long.price).or(self.price).map(|price| price.of(usage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_file_lists_what_can_be_called() {
        let catalogue = Catalogue::load(None).unwrap();
        let ids: Vec<_> = catalogue.providers().iter().map(|provider| provider.id.as_str()).collect();
        assert_eq!(ids, ["anthropic", "openai", "google", "openrouter", "custom"]);
        let model = catalogue.model("anthropic", "claude-haiku-4-5").unwrap();
        assert_eq!(model.window(), Window { context: 200_000, output: 64_000 });
        assert!(catalogue.accepts("custom", "anything"));
        assert!(!catalogue.accepts("anthropic", "claude-2"));
        assert!(!catalogue.accepts("nobody", "x"));
    }

    #[test]
    fn a_long_prompt_has_its_own_price() {
        let catalogue = Catalogue::load(None).unwrap();
        let model = catalogue.model("anthropic", "claude-haiku-5-5").unwrap();
        let usage = |cached| Usage { input: 1_000, cached, cache_write: 10, output: 100, ..Usage::default() };
        // 1,000 x 100 + 10 x 125 + 100 x 500 nano-dollars, and 1,000 cached tokens at 10 each.
        assert_eq!(model.cost_nano_usd(&usage(1_000)), Some(161_250));
        // 1,000 x 500 + 10 x 625 + 100 x 2,500, and 100,000 x 50.
        assert_eq!(model.cost_nano_usd(&usage(100_000)), Some(5_756_250));
    }

    #[test]
    fn an_operators_file_replaces_and_adds() {
        let over = r#"{"providers":[{"id":"anthropic","models":[
            {"id":"claude-haiku-4-5","name":"Ours","contextWindow":1000,"maxTokens":100,
             "price":{"input":0.0375,"output":0}},
            {"id":"new","name":"New","contextWindow":1000,"maxTokens":100}
        ]}]}"#;
        let catalogue = Catalogue::load(Some(over)).unwrap();
        let ours = catalogue.model("anthropic", "claude-haiku-4-5").unwrap();
        assert_eq!(ours.window(), Window { context: 1_000, output: 100 });
        assert_eq!(ours.cost_nano_usd(&Usage { input: 3, ..Usage::default() }), Some(113));
        assert_eq!(catalogue.model("anthropic", "new").unwrap().cost_nano_usd(&Usage::default()), None);
        assert_eq!(catalogue.provider("anthropic").unwrap().name, "Anthropic");
        assert!(catalogue.model("anthropic", "claude-opus-5-5").is_some());
    }
}
