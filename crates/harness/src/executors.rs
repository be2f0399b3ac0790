//! Carrying effects out: models at their gate, tools in the session's workspace, at the tool gate or here.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use nylorun_domain::effect::{
    Effect, EffectKind, EffectOutcome, EffectRequest, RunsAt, ToolRequest, ToolTarget, may_run_again,
};
use nylorun_domain::id::{AgentId, EffectId, SessionId, TurnId};
use nylorun_domain::manifest::AgentManifest;
use nylorun_domain::model::{ModelFailure, ModelFailureCode, ModelOutcome, Prompt};
use nylorun_domain::tool::{SkillTool, ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::WorkspaceEvent;
use nylorun_ports::abort::{Abort, AbortHandle, AbortKind, abort_pair};
use nylorun_ports::http_tools::{HttpToolAnswer, HttpToolCall};
use nylorun_ports::models::{Delta, DeltaSink, ModelCall};
use nylorun_ports::run::{RunCore, RunWorkspace};
use nylorun_ports::workspaces::{RunClaim, WorkspaceCall, WorkspaceOutcome};
use tokio::sync::mpsc;

use crate::in_process::Gates;
use crate::skills::{self, UNAVAILABLE};

/// On whose behalf effects are carried out.
pub(crate) struct RunContext {
    pub(crate) session_id: SessionId,
    pub(crate) agent_id: AgentId,
    pub(crate) turn_id: TurnId,
    pub(crate) epoch: i64,
    pub(crate) workspace: Option<RunWorkspace>,
    pub(crate) manifest: Arc<AgentManifest>,
}

/// Whether an effect that was cut off may simply run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeatable {
    /// It may.
    Yes,
    /// Its gate holds it: it may be asked for again, and is not made twice. A shutdown lets it finish.
    Held,
    /// It is uncertain then.
    No,
}

/// How much of a tool's result is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// As much as the room of its step allows.
    Fitted,
    /// All of it: workspace tools bound their results themselves, and refusals are short.
    Whole,
}

/// What the run knows of an effect that is being carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub(crate) repeatable: Repeatable,
    pub(crate) kept: Kept,
}

/// What became of an effect.
pub(crate) struct Arrival {
    pub(crate) effect_id: EffectId,
    pub(crate) ended: Ended,
    pub(crate) events: Vec<WorkspaceEvent>,
}

/// How an effect ended.
pub(crate) enum Ended {
    /// With a definite outcome.
    Value(EffectOutcome),
    /// Its answer was lost.
    Lost {
        /// What is known.
        message: String,
    },
    /// It was cut off and may run again.
    Dropped,
}

/// Carries out a run's effects in tasks of their own. What is left when this is dropped is told to end.
pub(crate) struct Executors {
    shared: Arc<Shared>,
    arrivals: mpsc::UnboundedSender<Arrival>,
    repeatable: (AbortHandle, Abort),
    unrepeatable: (AbortHandle, Abort),
}

struct Shared {
    gates: Gates,
    core: Arc<dyn RunCore>,
    context: RunContext,
}

impl Repeatable {
    /// Of this effect.
    pub(crate) fn of(effect: &Effect) -> Self {
        let tool = match &effect.request {
            EffectRequest::Model(_) | EffectRequest::Summary(_) => None,
            EffectRequest::Tool(request) => Some((request.target.runs_at(), request.tool_name.as_str())),
        };
        match (tool, may_run_again(effect.request.kind(), tool)) {
            (Some((RunsAt::Gate, _)), true) => Self::Held,
            (_, true) => Self::Yes,
            (_, false) => Self::No,
        }
    }
}

impl Kept {
    /// Of this effect's result.
    pub(crate) fn of(effect: &Effect) -> Self {
        let runs_at = match &effect.request {
            EffectRequest::Model(_) | EffectRequest::Summary(_) => None,
            EffectRequest::Tool(request) => Some(request.target.runs_at()),
        };
        match runs_at {
            Some(RunsAt::Gate | RunsAt::Runtime) => Self::Fitted,
            Some(RunsAt::Workspace | RunsAt::Nowhere) | None => Self::Whole,
        }
    }
}

impl InFlight {
    /// Of this effect.
    pub(crate) fn of(effect: &Effect) -> Self {
        Self { repeatable: Repeatable::of(effect), kept: Kept::of(effect) }
    }
}

impl Executors {
    /// Executors of one run, which send what became of effects to `arrivals`.
    pub(crate) fn new(
        gates: Gates,
        core: Arc<dyn RunCore>,
        context: RunContext,
        arrivals: mpsc::UnboundedSender<Arrival>,
    ) -> Self {
        let shared = Arc::new(Shared { gates, core, context });
        Self { shared, arrivals, repeatable: abort_pair(), unrepeatable: abort_pair() }
    }

    /// Begins effects. Tools are called in this order, so that one session's calls stay in the model's order.
    pub(crate) fn begin(&self, effects: Vec<Effect>) {
        let with_aborts = effects.into_iter().map(|effect| {
            let abort = match Repeatable::of(&effect) {
                Repeatable::Yes => self.repeatable.1.clone(),
                Repeatable::Held | Repeatable::No => self.unrepeatable.1.clone(),
            };
            (effect, abort)
        });
        let effects: Vec<_> = with_aborts.collect();
        let (shared, arrivals) = (Arc::clone(&self.shared), self.arrivals.clone());
        tokio::spawn(async move {
            let calls = effects.iter().map(|(effect, abort)| shared.carry_out(effect, abort));
            // Polled for the first time in the order in which they stand.
            let mut calls: FuturesUnordered<_> = calls.collect();
            while let Some(arrival) = calls.next().await {
                // A run that is over hears nothing more; the other calls still end in order.
                let _ = arrivals.send(arrival);
            }
        });
    }

    /// Ends the effects that may run again.
    pub(crate) fn abort_repeatable(&self, kind: AbortKind) {
        self.repeatable.0.abort(kind);
    }

    /// Ends all effects.
    pub(crate) fn abort_all(&self, kind: AbortKind) {
        self.repeatable.0.abort(kind);
        self.unrepeatable.0.abort(kind);
    }
}

impl Drop for Executors {
    fn drop(&mut self) {
        for (handle, abort) in [&self.repeatable, &self.unrepeatable] {
            if abort.kind().is_none() {
                handle.abort(AbortKind::Deadline);
            }
        }
    }
}

impl Shared {
    async fn carry_out(&self, effect: &Effect, abort: &Abort) -> Arrival {
        let call = async {
            match &effect.request {
                EffectRequest::Model(prompt) | EffectRequest::Summary(prompt) => {
                    self.call_model(effect, prompt, abort.clone()).await
                }
                EffectRequest::Tool(request) => self.call_tool(effect, request, abort.clone()).await,
            }
        };
        AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(effect = %effect.id, "an executor panicked");
            arrival(effect, failed_within(effect, "the call stopped by an internal fault"))
        })
    }

    async fn call_model(&self, effect: &Effect, prompt: &Prompt, mut abort: Abort) -> Arrival {
        let call = ModelCall {
            session_id: self.context.session_id.clone(),
            turn_id: self.context.turn_id.clone(),
            agent_id: self.context.agent_id.clone(),
            epoch: self.context.epoch,
            effect_id: effect.id.clone(),
            invocation_id: effect.invocation_id.clone(),
            prompt: prompt.clone(),
        };
        let deltas = Arc::new(Deltas { core: Arc::clone(&self.core), effect: effect.clone(), abort: abort.clone() });
        let told = abort.clone();
        let outcome = tokio::select! {
            biased;
            outcome = self.gates.model.call(&call, deltas, told) => outcome,
            _ = abort.aborted() => None,
        };
        let ended = match outcome {
            Some(outcome) => Ended::Value(EffectOutcome::Model(outcome)),
            None if abort.kind().is_some() => Ended::Dropped,
            None => failed_within(effect, "the model gate gave no answer"),
        };
        arrival(effect, ended)
    }

    async fn call_tool(&self, effect: &Effect, request: &ToolRequest, abort: Abort) -> Arrival {
        if let Some(refusal) = request.refusal() {
            return arrival(effect, Ended::Value(EffectOutcome::Tool(refusal)));
        }
        match request.target {
            ToolTarget::Workspace(tool) => self.call_workspace(effect, request, tool, abort).await,
            ToolTarget::Http => self.call_http(effect, request, abort).await,
            ToolTarget::Skill(tool) => self.call_skill(effect, request, tool, abort).await,
            ToolTarget::Unavailable | ToolTarget::UnknownTool | ToolTarget::MalformedInput | ToolTarget::Denied => {
                arrival(effect, failed_within(effect, "nothing carries this tool out"))
            }
        }
    }

    async fn call_http(&self, effect: &Effect, request: &ToolRequest, abort: Abort) -> Arrival {
        let call = HttpToolCall {
            session_id: self.context.session_id.clone(),
            turn_id: self.context.turn_id.clone(),
            agent_id: self.context.agent_id.clone(),
            epoch: self.context.epoch,
            effect_id: effect.id.clone(),
            request_hash: effect.request_hash.clone(),
            manifest: Arc::clone(&self.context.manifest),
            tool_name: request.tool_name.clone(),
            input: request.input.clone(),
        };
        let ended = match self.gates.http_tools.call(call, abort).await {
            HttpToolAnswer::Done(outcome) => Ended::Value(EffectOutcome::Tool(outcome)),
            HttpToolAnswer::Lost { message } => Ended::Lost { message },
            HttpToolAnswer::Aborted => Ended::Lost { message: format!("{} was stopped", request.tool_name) },
        };
        arrival(effect, ended)
    }

    async fn call_skill(&self, effect: &Effect, request: &ToolRequest, tool: SkillTool, mut abort: Abort) -> Arrival {
        let call = skills::call(&*self.gates.blobs, &self.context.manifest, tool, &request.input);
        let ended = tokio::select! {
            biased;
            outcome = call => Ended::Value(EffectOutcome::Tool(outcome)),
            _ = abort.aborted() => Ended::Dropped,
        };
        arrival(effect, ended)
    }

    async fn call_workspace(
        &self,
        effect: &Effect,
        request: &ToolRequest,
        tool: WorkspaceTool,
        abort: Abort,
    ) -> Arrival {
        let Some(workspace) = &self.context.workspace else {
            let refusal = ToolOutcome::failed("tool.unavailable", "The session has no workspace.");
            return arrival(effect, Ended::Value(EffectOutcome::Tool(refusal)));
        };
        let call = WorkspaceCall {
            claim: Some(RunClaim {
                session_id: self.context.session_id.clone(),
                turn_id: self.context.turn_id.clone(),
                epoch: self.context.epoch,
            }),
            owner: workspace.owner.clone(),
            key: workspace.key.clone(),
            spec: workspace.spec.clone(),
            tool,
            input: request.input.clone(),
        };
        let answer = self.gates.workspaces.call(call, abort).await;
        let ended = workspace_ended(tool, answer.outcome);
        Arrival { effect_id: effect.id.clone(), ended, events: answer.events }
    }
}

fn arrival(effect: &Effect, ended: Ended) -> Arrival {
    Arrival { effect_id: effect.id.clone(), ended, events: Vec::new() }
}

/// What became of a workspace call. Only tools that read may turn a lost answer into a definite failure
/// (sandbox-and-definitions a3, I3).
fn workspace_ended(tool: WorkspaceTool, outcome: WorkspaceOutcome) -> Ended {
    match (outcome, tool.is_read_only()) {
        (WorkspaceOutcome::Done(outcome), _) => Ended::Value(EffectOutcome::Tool(outcome)),
        (WorkspaceOutcome::Uncertain { message }, false) => Ended::Lost { message },
        (WorkspaceOutcome::Uncertain { message }, true) => {
            Ended::Value(EffectOutcome::Tool(ToolOutcome::failed("sandbox.error", message)))
        }
        (WorkspaceOutcome::Aborted, false) => Ended::Lost { message: format!("{} was stopped", tool.as_str()) },
        (WorkspaceOutcome::Aborted, true) => Ended::Dropped,
    }
}

/// What an effect comes to when its executor fails without an answer.
fn failed_within(effect: &Effect, message: &str) -> Ended {
    match (effect.request.kind(), Repeatable::of(effect)) {
        (EffectKind::Model, _) => Ended::Value(EffectOutcome::Model(ModelOutcome::Failed(ModelFailure {
            code: ModelFailureCode::Transient,
            message: message.to_owned(),
            retryable: true,
            usage: None,
            model: None,
        }))),
        (EffectKind::Tool, Repeatable::Yes) => {
            let reads_skill = match &effect.request {
                EffectRequest::Tool(request) => request.target.runs_at() == RunsAt::Runtime,
                EffectRequest::Model(_) | EffectRequest::Summary(_) => false,
            };
            let code = if reads_skill { UNAVAILABLE } else { "sandbox.error" };
            Ended::Value(EffectOutcome::Tool(ToolOutcome::failed(code, message)))
        }
        (EffectKind::Tool, Repeatable::Held | Repeatable::No)
        | (EffectKind::Delegation | EffectKind::Agent | EffectKind::Steer, _) => {
            Ended::Lost { message: message.to_owned() }
        }
    }
}

/// Passes on the pieces of an answer, until the call is to end.
struct Deltas {
    core: Arc<dyn RunCore>,
    effect: Effect,
    abort: Abort,
}

impl DeltaSink for Deltas {
    fn delta(&self, delta: Delta) {
        // Nobody is shown a summary that is being made.
        let is_shown = matches!(self.effect.request, EffectRequest::Model(_));
        if is_shown && self.abort.kind().is_none() {
            self.core.delta(&self.effect, delta);
        }
    }
}
