//! A run on core's side: who holds it, and what its harness asks on its behalf.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nylorun_domain::effect::{EffectKind, EffectOutcome};
use nylorun_domain::id::EffectId;
use nylorun_domain::workspace::{WorkspaceEvent, WorkspaceRecord};
use nylorun_engine::Toolbox;
use nylorun_ports::abort::{Abort, AbortKind};
use nylorun_ports::run::{
    CoreError, EffectReport, EffectResult, IntentAnswer, Next, RunCore, RunEnd, TurnOutput, TurnStart,
};
use nylorun_wire::harness::effect::{EffectScope, IntentRequested};
use nylorun_wire::harness::event::EventReported;
use nylorun_wire::harness::frame::{ApiError, ErrorCode};
use nylorun_wire::harness::lease::Renewed;
use nylorun_wire::harness::method::OutputMethod;
use nylorun_wire::harness::outcome::{Became, IntentReply, OutcomeReply, OutcomeReported, Rejoin};
use nylorun_wire::harness::output::OutputReply;
use tokio::sync::watch;

use crate::channel::Channel;
use crate::refusal::to_api;
use crate::start::scope;

/// Most events that wait for one outcome. A call of a tool leaves two or three.
const MAX_EVENTS: usize = 256;

/// A run that is offered, taken, or over.
pub(super) struct Run {
    id: String,
    start: TurnStart,
    scope: EffectScope,
    tools: Toolbox,
    core: Arc<dyn RunCore>,
    abort: Abort,
    stage: watch::Sender<Stage>,
    /// Held over each commit: a run's steps are one after the other.
    journal: tokio::sync::Mutex<Journal>,
    output: Mutex<Option<Output>>,
}

/// How far a run is.
#[derive(Clone)]
pub(super) enum Stage {
    /// It waits for a harness, or is on its way to one.
    Offered,
    /// A harness has it.
    Taken {
        /// Over this channel.
        channel: Channel,
    },
    /// Its output is being settled: nothing else ends it now.
    Settling,
    /// It is over.
    Ended(RunEnd),
}

/// What a run has asked and reported.
#[derive(Default)]
struct Journal {
    effects: HashMap<EffectId, Standing>,
    /// Events that wait for the outcome that they belong to, to be committed with it.
    events: Vec<WorkspaceEvent>,
    record: Option<WorkspaceRecord>,
}

/// Where an effect of a run stands.
enum Standing {
    /// It is being carried out.
    Begun(EffectKind),
    /// It was reported, and this was answered.
    Reported(OutcomeReply),
}

/// The first output of a run, and what it was answered, once it was. A repetition waits for the same answer.
#[derive(Clone)]
struct Output {
    method: OutputMethod,
    answer: watch::Receiver<Option<Result<(), ApiError>>>,
}

impl Run {
    pub(super) fn new(id: String, start: TurnStart, core: Arc<dyn RunCore>, abort: Abort) -> Self {
        Self {
            id,
            scope: scope(&start),
            tools: Toolbox::new(&start.manifest),
            start,
            core,
            abort,
            stage: watch::Sender::new(Stage::Offered),
            journal: tokio::sync::Mutex::default(),
            output: Mutex::default(),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn start(&self) -> &TurnStart {
        &self.start
    }

    pub(super) fn stage(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Takes note that its harness has it.
    pub(super) fn taken(&self, channel: Channel) {
        self.stage.send_if_modified(|stage| match stage {
            Stage::Offered => {
                *stage = Stage::Taken { channel };
                true
            }
            Stage::Taken { .. } | Stage::Settling | Stage::Ended(_) => false,
        });
    }

    /// Ends it, unless it is over or its output decides how. Answers where it stood.
    pub(super) fn end(&self, end: RunEnd) -> Stage {
        let mut before = None;
        self.stage.send_if_modified(|stage| {
            before = Some(stage.clone());
            match stage {
                Stage::Offered | Stage::Taken { .. } => {
                    *stage = Stage::Ended(end.clone());
                    true
                }
                Stage::Settling | Stage::Ended(_) => false,
            }
        });
        before.unwrap_or(Stage::Ended(end))
    }

    fn check_open(&self) -> Result<(), ApiError> {
        match &*self.stage.borrow() {
            Stage::Offered | Stage::Taken { .. } => Ok(()),
            Stage::Settling | Stage::Ended(_) => Err(not_held(&self.id)),
        }
    }

    /// Commits a step. A refusal after which the run cannot go on ends it.
    async fn commit(&self, reports: Vec<EffectReport>, next: Next) -> Result<Vec<IntentAnswer>, ApiError> {
        self.check_open()?;
        self.core.commit(reports, next).await.map_err(|error| {
            match &error {
                CoreError::OwnershipLost
                | CoreError::TurnCancelled
                | CoreError::Unavailable(_)
                | CoreError::Refused(_) => {
                    self.end(RunEnd::Released(error.clone()));
                }
                CoreError::EffectDrift(_) => {}
            }
            to_api(&error)
        })
    }

    /// `effect.intent`
    pub(super) async fn intend(&self, wanted: &IntentRequested) -> Result<IntentReply, ApiError> {
        let effect = &wanted.effect;
        if !effect.is_of(&self.scope) {
            return Err(invalid(format!("effect {} is of another session, turn or agent", effect.effect_id)));
        }
        match effect.kind {
            // It was hashed with its prompt, which stays away.
            EffectKind::Model => {}
            EffectKind::Tool | EffectKind::Delegation | EffectKind::Agent | EffectKind::Steer => {
                if effect.hash() != wanted.request_hash.as_str() {
                    return Err(invalid(format!("requestHash is not the hash of effect {}", effect.effect_id)));
                }
            }
        }
        let intent = effect.intent(&wanted.request_hash, |name| self.tools.target(name))?;
        let mut journal = self.journal.lock().await;
        let answers = self.commit(Vec::new(), Next::Intents(vec![intent])).await?;
        match answers.into_iter().next() {
            Some(IntentAnswer::Execute) => {
                journal.effects.insert(effect.effect_id.clone(), Standing::Begun(effect.kind));
                Ok(IntentReply::Execute(Rejoin::No))
            }
            Some(IntentAnswer::Completed(outcome)) => Ok(IntentReply::Completed(Box::new(outcome))),
            Some(IntentAnswer::Uncertain) => Ok(IntentReply::Uncertain),
            Some(IntentAnswer::Steered(inputs)) => {
                let read = EffectOutcome::Steer { model: effect.effect_id.clone(), inputs };
                Ok(IntentReply::Completed(Box::new(read)))
            }
            None => Err(ApiError::new(ErrorCode::Internal, "the runtime did not answer the intent")),
        }
    }

    /// `effect.outcome`
    pub(super) async fn report(&self, reported: OutcomeReported) -> Result<OutcomeReply, ApiError> {
        let OutcomeReported { effect_id, became, .. } = reported;
        let mut journal = self.journal.lock().await;
        let kind = match journal.effects.get(&effect_id) {
            Some(Standing::Begun(kind)) => *kind,
            Some(Standing::Reported(reply)) => return Ok(reply.clone()),
            None => return Err(invalid(format!("effect {effect_id} was not begun by this run"))),
        };
        let (result, reply) = match became {
            Became::Value(outcome) if kind_of(&outcome) == kind => {
                (EffectResult::Value(outcome.clone()), OutcomeReply::Completed(Box::new(outcome)))
            }
            Became::Value(_) => return Err(invalid(format!("effect {effect_id} is of kind {}", kind.as_str()))),
            Became::Error(message) => (EffectResult::Lost { message }, OutcomeReply::Uncertain),
        };
        let events = std::mem::take(&mut journal.events);
        let report = EffectReport { effect_id: effect_id.clone(), result, events, record: journal.record.take() };
        self.commit(vec![report], Next::Nothing).await?;
        journal.effects.insert(effect_id, Standing::Reported(reply.clone()));
        Ok(reply)
    }

    /// `event`: only of this run's own session, turn and workspace (engine a.11, rule 7).
    pub(super) async fn note(&self, reported: EventReported) -> Result<(), ApiError> {
        let (session, turn) = (&self.scope.session_id, &self.scope.turn_id);
        if (&reported.session_id, reported.turn_id.as_ref()) != (session, Some(turn)) {
            return Err(invalid("the event is of another session or turn".to_owned()));
        }
        let own_key = self.start.workspace.as_ref().map(|workspace| &workspace.key);
        if let Some(WorkspaceRecord { key, session_id, .. }) = &reported.record
            && (session_id != session || Some(key) != own_key)
        {
            return Err(invalid("the record is of another workspace".to_owned()));
        }
        let mut journal = self.journal.lock().await;
        self.check_open()?;
        if journal.events.len() == MAX_EVENTS {
            return Err(invalid(format!("{MAX_EVENTS} events wait for the outcome that they belong to")));
        }
        journal.events.push(reported.event);
        if reported.record.is_some() {
            journal.record = reported.record;
        }
        Ok(())
    }

    /// `lease.renew`
    pub(super) fn renew(&self) -> Renewed {
        match self.abort.kind() {
            Some(AbortKind::OwnershipLost) => Renewed::Lost,
            Some(AbortKind::Shutdown | AbortKind::Deadline | AbortKind::Cancel) | None => {
                Renewed::Held { token: None, token_expires_at: None }
            }
        }
    }

    /// An output. The first ends the run; the same again gets the same answer.
    pub(super) async fn settle(
        self: &Arc<Self>,
        method: OutputMethod,
        output: TurnOutput,
    ) -> Result<OutputReply, ApiError> {
        let mut answer = match self.first_output(method)? {
            First::Yes(sender, answer) => {
                let run = Arc::clone(self);
                // A task of its own: a harness that leaves meanwhile does not stop it half way.
                tokio::spawn(async move { sender.send_replace(Some(run.commit_output(output).await)) });
                answer
            }
            First::No(answer) => answer,
        };
        let settled = answer.wait_for(Option::is_some).await.ok().and_then(|settled| settled.clone());
        let lost = || Err(ApiError::new(ErrorCode::Internal, "settling stopped by an internal fault"));
        settled.unwrap_or_else(lost).map(|()| OutputReply { cursor: None })
    }

    fn first_output(&self, method: OutputMethod) -> Result<First, ApiError> {
        let mut output = self.output();
        if let Some(first) = &*output {
            return if first.method == method { Ok(First::No(first.answer.clone())) } else { Err(not_held(&self.id)) };
        }
        let is_first = self.stage.send_if_modified(|stage| match stage {
            Stage::Offered | Stage::Taken { .. } => {
                *stage = Stage::Settling;
                true
            }
            Stage::Settling | Stage::Ended(_) => false,
        });
        if !is_first {
            return Err(not_held(&self.id));
        }
        let (sender, answer) = watch::channel(None);
        *output = Some(Output { method, answer: answer.clone() });
        Ok(First::Yes(sender, answer))
    }

    async fn commit_output(&self, output: TurnOutput) -> Result<(), ApiError> {
        let journal = self.journal.lock().await;
        if !journal.events.is_empty() {
            tracing::warn!(run = self.id, "workspace events that belong to no outcome are dropped");
        }
        let settled = self.core.commit(Vec::new(), Next::Output(output)).await;
        let end = match &settled {
            Ok(_) => RunEnd::Settled,
            Err(error) => RunEnd::Released(error.clone()),
        };
        self.stage.send_replace(Stage::Ended(end));
        settled.map(drop).map_err(|error| to_api(&error))
    }

    fn output(&self) -> MutexGuard<'_, Option<Output>> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an output is a run's first.
enum First {
    Yes(watch::Sender<Option<Result<(), ApiError>>>, watch::Receiver<Option<Result<(), ApiError>>>),
    No(watch::Receiver<Option<Result<(), ApiError>>>),
}

/// Waits until a harness has the run; `Err` is how it ended before.
pub(super) async fn taken(stage: &mut watch::Receiver<Stage>) -> Result<Channel, RunEnd> {
    match stage.wait_for(|stage| !matches!(stage, Stage::Offered)).await.as_deref() {
        Ok(Stage::Taken { channel }) => Ok(channel.clone()),
        Ok(Stage::Ended(end)) => Err(end.clone()),
        Ok(Stage::Offered | Stage::Settling) | Err(_) => Err(RunEnd::ConnectionLost),
    }
}

/// Waits until the run is over, and answers how.
pub(super) async fn ended(stage: &mut watch::Receiver<Stage>) -> RunEnd {
    match stage.wait_for(|stage| matches!(stage, Stage::Ended(_))).await.as_deref() {
        Ok(Stage::Ended(end)) => end.clone(),
        Ok(Stage::Offered | Stage::Taken { .. } | Stage::Settling) | Err(_) => RunEnd::ConnectionLost,
    }
}

fn kind_of(outcome: &EffectOutcome) -> EffectKind {
    match outcome {
        EffectOutcome::Model(_) | EffectOutcome::Summary { .. } => EffectKind::Model,
        EffectOutcome::Tool(_) | EffectOutcome::Asked { .. } => EffectKind::Tool,
        EffectOutcome::Steer { .. } => EffectKind::Steer,
    }
}

pub(super) fn not_held(run_id: &str) -> ApiError {
    ApiError::new(ErrorCode::RunNotHeld, format!("this connection does not hold run {run_id}"))
}

pub(super) fn invalid(problem: String) -> ApiError {
    ApiError::new(ErrorCode::Invalid, problem)
}
