//! One call at one provider's model: what is asked, of whom, and how the tenant wants it.

use bytes::Bytes;
use nylorun_domain::json::{Json, Value};
use nylorun_domain::model::{Candidate, ModelFailureCode, ModelRef, PromptItem, UserPart, Window};
use nylorun_ports::models::{ModelCall, ProviderAccess};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;

use crate::catalogue::{Catalogue, Model};
use crate::failure::Fault;
use crate::outbound::OutboundRequest;

/// Largest answer that is read, in bytes, over all its events.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// The output limit of a model that the catalogue does not know, in tokens (engine b.7).
const USUAL_OUTPUT: i64 = 8_192;

/// One call at one provider's model.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    /// The call.
    pub(crate) call: &'a ModelCall,
    /// Where to, and with which key.
    pub(crate) access: &'a ProviderAccess,
    /// Who is asked.
    pub(crate) model: ModelRef,
    /// What the catalogue says of the model, when it knows it.
    pub(crate) listed: Option<&'a Model>,
    /// What the model can hold, when it is known.
    pub(crate) window: Option<Window>,
    /// The tenant's own output limit, in tokens.
    pub(crate) max_tokens: Option<i64>,
    /// Whether the tenant wants the model to reason; the provider decides when the tenant says nothing.
    pub(crate) reasoning: Option<Reasoning>,
    /// How the endpoint differs from the usual: an object, or null.
    pub(crate) compat: Value,
    /// What of earlier reasoning is sent back.
    pub(crate) replay: Replay,
}

/// Whether the model is to reason before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reasoning {
    /// It is.
    On,
    /// It is not, or as little as it can.
    Off,
}

/// What of a model's earlier reasoning is sent back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replay {
    /// What the same provider and model gave.
    Own,
    /// Nothing: the provider refused what it was sent.
    Nothing,
}

impl<'a> Target<'a> {
    /// The settings of the tenant's choice win over the catalogue.
    pub(crate) fn new(call: &'a ModelCall, access: &'a ProviderAccess, catalogue: &'a Catalogue) -> Self {
        let settings = access.settings.value();
        let setting = |name| settings.get(name).and_then(Value::as_i64).filter(|value| *value > 0);
        let max_tokens = setting("maxTokens");
        let listed = catalogue.model(&access.provider, &access.model);
        let context = setting("contextWindow").or(listed.map(|model| model.context_window));
        let output = max_tokens.or(listed.map(|model| model.max_tokens)).unwrap_or(USUAL_OUTPUT);
        let reasons = settings.get("reasoning").and_then(Value::as_bool);
        Self {
            call,
            access,
            model: ModelRef { provider: access.provider.clone(), model: access.model.clone() },
            listed,
            window: context.map(|context| Window { context, output: output.min(context) }),
            max_tokens,
            reasoning: reasons.map(|reasons| if reasons { Reasoning::On } else { Reasoning::Off }),
            compat: settings.get("compat").cloned().unwrap_or(Value::Null),
            replay: Replay::Own,
        }
    }

    /// Refuses what the model is known not to read.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let has_image = |item: &PromptItem| match item {
            PromptItem::User(parts) => parts.iter().any(|part| matches!(part, UserPart::Image(_))),
            PromptItem::Assistant(_) | PromptItem::ToolResults(_) => false,
        };
        if self.listed.is_some_and(|model| !model.images) && self.call.prompt.items().any(has_image) {
            let ModelRef { provider, model } = &self.model;
            let message = format!("{provider}/{model} reads no images; choose a model that does, or leave them out");
            return Err(invalid(message));
        }
        Ok(())
    }

    /// The most tokens that an answer may have.
    pub(super) fn output_limit(&self) -> i64 {
        self.window.map_or(self.max_tokens.unwrap_or(USUAL_OUTPUT), |window| window.output)
    }

    /// The provider's word for the reasoning that the tenant wants, when the catalogue has one for this model.
    pub(super) fn reasoning_word(&self) -> Option<&'a str> {
        let words = self.listed?.reasoning.as_ref()?;
        match self.reasoning? {
            Reasoning::On => words.on.as_deref(),
            Reasoning::Off => words.off.as_deref(),
        }
    }

    /// What a provider wants back with this answer's reasoning, when it is sent back.
    pub(super) fn signature<'s>(&self, candidate: &Candidate, signature: &'s Option<Json>) -> Option<&'s Json> {
        self.replays(candidate).then_some(signature.as_ref())?
    }

    /// Whether the reasoning of this answer is sent back: only to the model that gave it (engine e.12).
    pub(super) fn replays(&self, candidate: &Candidate) -> bool {
        match self.replay {
            Replay::Own => candidate.model == self.model,
            Replay::Nothing => false,
        }
    }

    /// A POST of JSON to `path` below the endpoint's base URL.
    pub(super) fn post(&self, base: &str, path: &str, body: &impl serde::Serialize) -> Result<OutboundRequest, Fault> {
        let mut url = Url::parse(base).map_err(|error| invalid(format!("the base URL is not valid: {error}")))?;
        let full = format!("{}{path}", url.path().trim_end_matches('/'));
        url.set_path(&full);
        let body =
            serde_json::to_vec(body).map_err(|error| invalid(format!("the request cannot be written: {error}")))?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        Ok(OutboundRequest { method: Method::POST, url, headers, body: Bytes::from(body), max_answer: MAX_ANSWER })
    }
}

/// A request that is wrong whoever is asked.
pub(super) fn invalid(message: String) -> Fault {
    Fault::new(ModelFailureCode::InvalidRequest, message)
}
