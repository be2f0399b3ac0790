//! What the tests share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use nylorun_domain::id::{AgentId, CallId, EffectId, InvocationId, SessionId, TurnId};
use nylorun_domain::image::Image;
use nylorun_domain::json::Json;
use nylorun_domain::model::{
    Candidate, FinishReason, ModelFailure, ModelOutcome, ModelRef, OutputPart, Prompt, PromptItem, ToolCall, ToolInput,
    ToolResult, ToolSpec, UserPart,
};
use nylorun_domain::tool::ToolOutcome;
use nylorun_gates::catalogue::Catalogue;
use nylorun_gates::outbound::{Outbound, PrivateTargets};
use nylorun_gates::{CallSettings, Models};
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::budgets::{Admission, Budgets, BudgetsVersion, Pass};
use nylorun_ports::models::{
    Delta, DeltaSink, KeysError, ModelAccess, ModelCall, ModelGate, ModelKeys, ModelTerms, ProviderAccess,
};
use nylorun_ports::secret::Secret;
use nylorun_testkit::provider::ProviderStub;

/// A key that must be seen nowhere but in a request's header.
pub(crate) const CANARY: &str = "sk-canary-0123456789abcdef";

/// Keeps what it is given.
#[derive(Debug, Default)]
pub(crate) struct Deltas(Mutex<Vec<Delta>>);

impl Deltas {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn all(&self) -> Vec<Delta> {
        self.0.lock().unwrap().clone()
    }

    /// The text of one attempt.
    pub(crate) fn text(&self, attempt: u32) -> String {
        self.all().into_iter().filter(|delta| delta.attempt == attempt).map(|delta| delta.text).collect()
    }
}

impl DeltaSink for Deltas {
    fn delta(&self, delta: Delta) {
        self.0.lock().unwrap().push(delta);
    }
}

/// Answers with what it holds.
pub(crate) struct Keys(pub(crate) Result<ModelAccess, KeysError>);

impl ModelKeys for Keys {
    fn terms(&self) -> BoxFuture<'_, Result<ModelTerms, KeysError>> {
        let answer = self.0.clone().map(|access| ModelTerms { access, budgets: None });
        Box::pin(async move { answer })
    }
}

/// What no budget limits.
pub(crate) struct NoBudgets;

impl Budgets for NoBudgets {
    fn admit<'a>(&'a self, _: &'a ModelCall, _: &'a BudgetsVersion) -> BoxFuture<'a, Admission> {
        Box::pin(async { Admission::Granted(Pass::uncounted()) })
    }
}

/// Settings with waits too short to notice.
pub(crate) fn fast() -> CallSettings {
    CallSettings { base_delay: Duration::from_millis(1), ..CallSettings::default() }
}

pub(crate) fn gate(access: Result<ModelAccess, KeysError>, settings: CallSettings) -> Models {
    gate_within(access, Arc::new(NoBudgets), settings)
}

/// A gate with these budgets.
pub(crate) fn gate_within(
    access: Result<ModelAccess, KeysError>,
    budgets: Arc<dyn Budgets>,
    settings: CallSettings,
) -> Models {
    let outbound = Arc::new(Outbound::new(PrivateTargets::Allow));
    Models::new(Arc::new(Keys(access)), budgets, outbound, Arc::new(Catalogue::load(None).unwrap()), settings)
}

pub(crate) fn access(stub: &ProviderStub, name: &str, model: &str) -> ProviderAccess {
    provider(&stub.base_url(), name, model)
}

pub(crate) fn provider(base_url: &str, name: &str, model: &str) -> ProviderAccess {
    ProviderAccess {
        provider: name.into(),
        model: model.into(),
        base_url: Some(base_url.into()),
        settings: Json::from_trusted("{}"),
        key: Secret::new(CANARY),
    }
}

/// The same access with these settings.
pub(crate) fn settings(access: ProviderAccess, settings: &str) -> ProviderAccess {
    ProviderAccess { settings: Json::from_trusted(settings), ..access }
}

/// Asks the stub's model `m` of the provider `custom`.
pub(crate) async fn ask(stub: &ProviderStub, prompt: Prompt) -> (ModelOutcome, Arc<Deltas>) {
    ask_as(access(stub, "custom", "m"), prompt).await
}

/// Asks with this access.
pub(crate) async fn ask_as(access: ProviderAccess, prompt: Prompt) -> (ModelOutcome, Arc<Deltas>) {
    let deltas = Deltas::new();
    let gate = gate(Ok(ModelAccess::Provider(access)), fast());
    let outcome = gate.call(&call(prompt), deltas.clone(), Abort::never()).await;
    (outcome.expect("nothing aborts the call"), deltas)
}

pub(crate) fn completed((outcome, _): (ModelOutcome, Arc<Deltas>)) -> Candidate {
    match outcome {
        ModelOutcome::Completed(candidate) => candidate,
        ModelOutcome::Failed(failure) => panic!("{failure:?}"),
    }
}

/// The texts of the deltas, in order.
pub(crate) fn deltas_of((_, deltas): &(ModelOutcome, Arc<Deltas>)) -> Vec<String> {
    deltas.all().into_iter().map(|delta| delta.text).collect()
}

pub(crate) fn failed((outcome, _): (ModelOutcome, Arc<Deltas>)) -> ModelFailure {
    match outcome {
        ModelOutcome::Failed(failure) => failure,
        ModelOutcome::Completed(candidate) => panic!("{candidate:?}"),
    }
}

pub(crate) fn prompt(items: Vec<PromptItem>) -> Prompt {
    Prompt {
        instructions: Vec::new(),
        items: items.into_iter().map(Arc::new).collect(),
        tools: Vec::new(),
        output_schema: None,
    }
}

/// A prompt of one message.
pub(crate) fn hello() -> Prompt {
    prompt(vec![user("hello")])
}

pub(crate) fn user(text: &str) -> PromptItem {
    PromptItem::User(vec![text.into()])
}

pub(crate) fn model(provider: &str, model: &str) -> ModelRef {
    ModelRef { provider: provider.into(), model: model.into() }
}

pub(crate) fn assistant(model: ModelRef, parts: Vec<OutputPart>) -> PromptItem {
    let candidate = Candidate { parts, finish: FinishReason::Stop, usage: None, size: None, model, window: None };
    PromptItem::Assistant(candidate.into())
}

/// Reasoning with what its provider wants back.
pub(crate) fn signed(text: &str, signature: &str) -> OutputPart {
    OutputPart::Reasoning { text: text.into(), signature: Some(Json::from_trusted(signature)) }
}

/// A picture: the beginning of a PNG is enough for everyone but a model.
pub(crate) fn image() -> UserPart {
    UserPart::Image(Image::new(&b"\x89PNG\r\n\x1a\n"[..]).unwrap())
}

pub(crate) fn tool_call(id: &str, name: &str, input: ToolInput) -> OutputPart {
    OutputPart::ToolCall(ToolCall { call_id: CallId::from_trusted(id), name: name.into(), input })
}

pub(crate) fn json(text: &str) -> ToolInput {
    ToolInput::Json(Json::from_trusted(text))
}

pub(crate) fn tool_result(id: &str, name: &str, outcome: ToolOutcome) -> ToolResult {
    ToolResult { call_id: CallId::from_trusted(id), name: name.into(), outcome }
}

pub(crate) fn output(json: &str) -> ToolOutcome {
    ToolOutcome::Completed { output: Json::from_trusted(json) }
}

pub(crate) fn tool(name: &str, schema: &str) -> ToolSpec {
    ToolSpec { name: name.into(), description: Some(format!("The {name}.")), input_schema: Json::from_trusted(schema) }
}

pub(crate) fn call(prompt: Prompt) -> ModelCall {
    ModelCall {
        session_id: SessionId::from_trusted("session-1"),
        turn_id: TurnId::from_trusted("turn-1"),
        agent_id: AgentId::from_trusted("agent-1"),
        epoch: 1,
        effect_id: EffectId::from_trusted("turn-1:0:model:invocation-1"),
        invocation_id: InvocationId::from_trusted("invocation-1"),
        prompt,
    }
}
