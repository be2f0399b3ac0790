//! The model gate: asks who answers the tenant's model calls, and makes the call, with retries (engine b.10).

mod attempt;
mod retry;

use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::budget::Exhausted;
use nylorun_domain::model::{Candidate, ModelFailure, ModelFailureCode, ModelOutcome, ModelRef, Usage};
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::budgets::{Admission, Budgets};
use nylorun_ports::models::{
    DeltaSink, KeysError, ModelAccess, ModelCall, ModelGate, ModelKeys, ModelTerms, ProviderAccess,
};

use crate::catalogue::{CUSTOM, Catalogue};
use crate::failure::{Fault, With};
use crate::fixture::Fixture;
use crate::outbound::Outbound;
use crate::providers::{Answer, Api, DeltaStream, Replay, Target};

/// How a call is made (engine b.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSettings {
    /// Attempts of one call.
    pub attempts: u32,
    /// Wait before the second attempt; doubled before each further one.
    pub base_delay: Duration,
    /// Longest wait that a provider's `Retry-After` may ask for.
    pub max_retry_after: Duration,
    /// Longest silence of a stream, its beginning included.
    pub idle: Duration,
    /// Longest time of one attempt.
    pub request: Duration,
}

impl Default for CallSettings {
    fn default() -> Self {
        Self {
            attempts: 3,
            base_delay: Duration::from_secs(2),
            max_retry_after: Duration::from_secs(60),
            idle: Duration::from_secs(300),
            request: Duration::from_secs(600),
        }
    }
}

/// The model gate. Keys are read for each call, and live no longer than it.
pub struct Models {
    keys: Arc<dyn ModelKeys>,
    budgets: Arc<dyn Budgets>,
    outbound: Arc<Outbound>,
    catalogue: Arc<Catalogue>,
    settings: CallSettings,
}

impl Models {
    /// A gate that opens keys with `keys`, asks `budgets` before each call, and calls out through `outbound`.
    pub fn new(
        keys: Arc<dyn ModelKeys>,
        budgets: Arc<dyn Budgets>,
        outbound: Arc<Outbound>,
        catalogue: Arc<Catalogue>,
        settings: CallSettings,
    ) -> Self {
        Self { keys, budgets, outbound, catalogue, settings }
    }

    async fn answer(&self, call: &ModelCall, deltas: Arc<dyn DeltaSink>, abort: Abort) -> Option<ModelOutcome> {
        let ModelTerms { access, budgets } = match self.keys.terms().await {
            Ok(terms) => terms,
            Err(error) => return Some(failed(unopened(&error), None)),
        };
        if matches!(access, ModelAccess::None) {
            return Some(failed(Fault::new(ModelFailureCode::Auth, NO_MODEL), None));
        }
        let _pass = match self.budgets.admit(call, &budgets).await {
            Admission::Granted(pass) => pass,
            Admission::Refused(exhausted) => return Some(refused(call, &exhausted)),
        };
        match access {
            ModelAccess::Fixture => Fixture.call(call, deltas, abort).await,
            ModelAccess::Provider(access) => Some(self.ask(call, &access, deltas).await),
            ModelAccess::None => None,
        }
    }

    async fn ask(&self, call: &ModelCall, access: &ProviderAccess, deltas: Arc<dyn DeltaSink>) -> ModelOutcome {
        let mut target = Target::new(call, access, &self.catalogue);
        let Some(api) = Api::of(&access.provider) else {
            let message = format!("this version cannot call the provider {:?}", access.provider);
            return failed(Fault::new(ModelFailureCode::InvalidRequest, message), Some(target.model));
        };
        if let Err(fault) = target.check() {
            return failed(fault, Some(target.model));
        }
        // What attempts without an answer used: the provider bills them too.
        let mut lost: Option<Usage> = None;
        let mut attempt = 1;
        loop {
            let stream = DeltaStream::new(deltas.clone(), attempt);
            let tried = attempt::run(&self.outbound, &self.settings, api, &target, stream).await;
            let fault = match tried.and_then(|answer| self.fits(answer, &target)) {
                Ok(answer) => return ModelOutcome::Completed(self.candidate(answer, lost, &target)),
                Err(fault) => fault.without(access.key.expose()),
            };
            lost = together(lost, fault.usage.map(|usage| self.priced(usage, &target)));
            // Better an answer without its earlier reasoning than none for the rest of the session.
            if fault.with == With::Replay && target.replay == Replay::Own && attempt < self.settings.attempts {
                log_failure(call, access, attempt, &fault, Some(Duration::ZERO));
                target.replay = Replay::Nothing;
                attempt += 1;
                continue;
            }
            if !fault.retryable || attempt >= self.settings.attempts {
                log_failure(call, access, attempt, &fault, None);
                return failed(Fault { usage: lost, ..fault }, Some(target.model));
            }
            let wait = retry::delay(&self.settings, &fault, attempt, &call.invocation_id);
            log_failure(call, access, attempt, &fault, Some(wait));
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    /// Some providers cut a prompt that does not fit instead of refusing it: the reported usage tells.
    fn fits(&self, answer: Answer, target: &Target<'_>) -> Result<Answer, Fault> {
        let prompt = answer.usage.map(|usage| usage.input + usage.cached + usage.cache_write);
        match (target.window, prompt) {
            (Some(window), Some(prompt)) if prompt > window.context => {
                let message = format!("the prompt has {prompt} tokens; the model holds {}", window.context);
                Err(Fault { usage: answer.usage, ..Fault::new(ModelFailureCode::ContextOverflow, message) })
            }
            _ => Ok(answer),
        }
    }

    fn candidate(&self, answer: Answer, lost: Option<Usage>, target: &Target<'_>) -> Candidate {
        Candidate {
            parts: answer.parts,
            finish: answer.finish,
            size: answer.usage.map(|usage| usage.total),
            usage: together(lost, answer.usage.map(|usage| self.priced(usage, target))),
            model: target.model.clone(),
            window: target.window,
        }
    }

    fn priced(&self, usage: Usage, target: &Target<'_>) -> Usage {
        let ModelRef { provider, model } = &target.model;
        let listed = || self.catalogue.model(provider, model).and_then(|listed| listed.cost_nano_usd(&usage));
        let cost_nano_usd = match provider.as_str() {
            CUSTOM => Some(0),
            // What a router says that it charged is better than a price list.
            _ => usage.cost_nano_usd.or_else(listed),
        };
        Usage { cost_nano_usd, ..usage }
    }
}

impl ModelGate for Models {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        deltas: Arc<dyn DeltaSink>,
        abort: Abort,
    ) -> BoxFuture<'a, Option<ModelOutcome>> {
        Box::pin(async move {
            let mut aborted = abort.clone();
            tokio::select! {
                biased;
                // Dropping the other branch closes the connection.
                _ = aborted.aborted() => None,
                outcome = self.answer(call, deltas, abort) => outcome,
            }
        })
    }
}

fn together(one: Option<Usage>, two: Option<Usage>) -> Option<Usage> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.plus(two)),
        (one, two) => one.or(two),
    }
}

/// Says that an attempt failed, and whether another one follows. The provider's words stay in the record: they may
/// repeat what somebody said.
fn log_failure(call: &ModelCall, access: &ProviderAccess, attempt: u32, fault: &Fault, retry_in: Option<Duration>) {
    let (session, turn) = (call.session_id.as_str(), call.turn_id.as_str());
    let (provider, model, code) = (access.provider.as_str(), access.model.as_str(), fault.code.as_str());
    match retry_in.map(|wait| wait.as_millis()) {
        Some(wait_ms) => {
            tracing::warn!(session, turn, provider, model, attempt, code, wait_ms, "model call is tried again");
        }
        None => tracing::warn!(session, turn, provider, model, attempt, code, "model call failed"),
    }
}

/// A call that is not made, for a budget's sake. Trying again does not help, so nobody should.
fn refused(call: &ModelCall, exhausted: &Exhausted) -> ModelOutcome {
    let (session, turn, agent) = (call.session_id.as_str(), call.turn_id.as_str(), call.agent_id.as_str());
    tracing::warn!(session, turn, agent, reason = %exhausted, "a budget refused a model call");
    failed(Fault::new(ModelFailureCode::BudgetExhausted, exhausted.to_string()), None)
}

const NO_MODEL: &str = "No model is chosen yet: `nylorun model set PROVIDER/MODEL` chooses one.";

fn unopened(error: &KeysError) -> Fault {
    match error {
        KeysError::Unavailable(_) => Fault::transient(error.to_string()),
        KeysError::Broken(_) => Fault { retryable: false, ..Fault::transient(error.to_string()) },
        KeysError::Unreadable => Fault::new(ModelFailureCode::Auth, error.to_string()),
    }
}

fn failed(fault: Fault, model: Option<ModelRef>) -> ModelOutcome {
    let Fault { code, message, retryable, usage, .. } = fault;
    ModelOutcome::Failed(ModelFailure { code, message, retryable, usage, model })
}
