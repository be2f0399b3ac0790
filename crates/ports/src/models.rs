//! The model gate: the one place that holds a provider's key (trust 1).

use std::sync::Arc;

use nylorun_domain::id::{AgentId, EffectId, InvocationId, SessionId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::model::{ModelOutcome, Prompt};

use crate::BoxFuture;
use crate::abort::Abort;
use crate::budgets::BudgetsVersion;
use crate::secret::Secret;

/// One model call. Who asks comes from the run, never from the prompt.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// The session: providers' prompt caches are keyed by it.
    pub session_id: SessionId,
    /// Its turn.
    pub turn_id: TurnId,
    /// The turn's root agent.
    pub agent_id: AgentId,
    /// The session's epoch; a newer one means that another owner took over.
    pub epoch: i64,
    /// The journaled effect.
    pub effect_id: EffectId,
    /// The call, the same across replays.
    pub invocation_id: InvocationId,
    /// What to ask.
    pub prompt: Prompt,
}

/// Text of an answer while it is made. Never in the record (decisions, Token deltas).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Which attempt of the call, from 1. A higher one means: discard what you showed.
    pub attempt: u32,
    /// Position among this attempt's deltas, from 0.
    pub index: u32,
    /// The piece of text.
    pub text: String,
}

/// Where deltas go. Must not block.
pub trait DeltaSink: Send + Sync {
    /// Takes one delta.
    fn delta(&self, delta: Delta);
}

/// Calls models.
pub trait ModelGate: Send + Sync {
    /// Calls the tenant's model. Failures are values; `None` only when `abort` ended the call.
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        deltas: Arc<dyn DeltaSink>,
        abort: Abort,
    ) -> BoxFuture<'a, Option<ModelOutcome>>;
}

/// What a call needs of the tenant's settings, read at once.
#[derive(Clone, Debug)]
pub struct ModelTerms {
    /// Who answers.
    pub access: ModelAccess,
    /// Which budgets hold.
    pub budgets: BudgetsVersion,
}

/// What the tenant chose to answer its model calls.
#[derive(Clone, Debug)]
pub enum ModelAccess {
    /// Nothing yet: a turn fails `model.auth`.
    None,
    /// The built-in fixture model.
    Fixture,
    /// A provider.
    Provider(ProviderAccess),
}

/// A provider's model with the key to it.
#[derive(Clone, Debug)]
pub struct ProviderAccess {
    /// `anthropic`, `openai`, `google`, `openrouter`, `custom`.
    pub provider: String,
    /// The model's id at the provider.
    pub model: String,
    /// Where the endpoint is; needed for `custom`, else the provider's own.
    pub base_url: Option<String>,
    /// `contextWindow`, `maxTokens`, `reasoning`, `compat` (api 3.2), or `{}`.
    pub settings: Json,
    /// The API key; empty when the endpoint wants none.
    pub key: Secret,
}

/// Opens the tenant's model key. Read for every call and never cached, so that a new key works at the next one.
pub trait ModelKeys: Send + Sync {
    /// The tenant's choice, with its key opened.
    fn terms(&self) -> BoxFuture<'_, Result<ModelTerms, KeysError>>;
}

/// Why a key could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// The store did not answer.
    #[error("keys unavailable: {0}")]
    Unavailable(String),
    /// The store refuses it for good, or holds what this build cannot read: trying again does not help.
    #[error("the store cannot keep or read keys: {0}")]
    Broken(String),
    /// The sealed key does not open with this host's vault key.
    #[error("the stored model key cannot be opened with this host's vault key; set the model again")]
    Unreadable,
}
