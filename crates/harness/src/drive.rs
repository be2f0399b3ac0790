//! The loop of a run: what the engine wants is committed as intents, carried out, and its outcomes are committed with
//! what is wanted next.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::effect::{Effect, EffectOutcome};
use nylorun_domain::id::EffectId;
use nylorun_domain::transcript::{Input, MAX_EDIT_LEN};
use nylorun_engine::{Run, Start};
use nylorun_ports::abort::{Abort, AbortKind};
use nylorun_ports::run::{
    CoreError, EffectReport, EffectResult, IntentAnswer, Next, RecordedOutcome, RunCore, RunEnd, TurnOutput, TurnStart,
    YieldAfter,
};
use nylorun_wire::transcript::entry_len;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::executors::{Arrival, Ended, Executors, InFlight, Kept, RunContext};
use crate::fit::StepRoom;
use crate::in_process::Gates;

/// Messages that a segment read, each with the model call before which it did, in order.
type Steers = VecDeque<(EffectId, Vec<Input>)>;

/// One run.
pub(crate) struct Driver {
    pub(crate) run: Run,
    pub(crate) core: Arc<dyn RunCore>,
    pub(crate) abort: Abort,
    pub(crate) executors: Executors,
    pub(crate) arrivals: mpsc::UnboundedReceiver<Arrival>,
    /// Effects that are being carried out.
    pub(crate) in_flight: HashMap<EffectId, InFlight>,
    /// Outcomes to be committed, in the order in which they arrived.
    pub(crate) reports: Vec<EffectReport>,
    /// Outcomes that the journal shipped with the run.
    recorded: HashMap<EffectId, RecordedOutcome>,
    /// Messages that the journal shipped with the run.
    steered: Steers,
    /// Effects that have no intent yet.
    wants: Vec<Effect>,
    /// What is left for the results of the current step.
    room: StepRoom,
    yield_after: YieldAfter,
    begun_at: Instant,
}

impl Driver {
    /// A run of `start`.
    pub(crate) fn new(gates: Gates, start: TurnStart, core: Arc<dyn RunCore>, abort: Abort) -> Self {
        let (sender, arrivals) = mpsc::unbounded_channel();
        let context = RunContext {
            session_id: start.session_id.clone(),
            agent_id: start.agent_id.clone(),
            turn_id: start.turn_id.clone(),
            epoch: start.epoch,
            workspace: start.workspace,
            manifest: Arc::clone(&start.manifest),
        };
        let (recorded, steered) = sort_out(start.outcomes);
        let run = Run::new(Start {
            session_id: start.session_id,
            agent_id: start.agent_id,
            turn_id: start.turn_id,
            segment: start.segment,
            manifest: start.manifest,
            input: start.input,
            transcript: start.transcript,
        });
        Self {
            run,
            executors: Executors::new(gates, Arc::clone(&core), context, sender),
            core,
            abort,
            arrivals,
            in_flight: HashMap::new(),
            reports: Vec::new(),
            recorded,
            steered,
            wants: Vec::new(),
            room: StepRoom::WHOLE,
            yield_after: start.yield_after,
            begun_at: Instant::now(),
        }
    }

    /// Runs until the output is committed, or the run ends otherwise.
    pub(crate) async fn drive(mut self) -> RunEnd {
        let end = self.run_steps().await;
        end.unwrap_or_else(|error| {
            self.executors.abort_all(match error {
                CoreError::OwnershipLost => AbortKind::OwnershipLost,
                CoreError::TurnCancelled => AbortKind::Cancel,
                CoreError::EffectDrift(_) | CoreError::Unavailable(_) | CoreError::Refused(_) => AbortKind::Deadline,
            });
            RunEnd::Released(error)
        })
    }

    async fn run_steps(&mut self) -> Result<RunEnd, CoreError> {
        loop {
            self.replay();
            self.check_still_ours()?;
            if self.run.output().is_some() {
                return self.settle().await;
            }
            if self.abort.kind().is_some() {
                return self.stop().await;
            }
            if !self.wants.is_empty() {
                self.begin().await?;
            } else if !self.reports.is_empty() {
                self.commit_outcomes().await?;
            } else {
                self.wait().await;
            }
            self.take_arrived();
        }
    }

    /// Resolves what the engine wants and the journal shipped, as far as that goes.
    fn replay(&mut self) {
        self.wants.append(&mut self.run.wants());
        self.replay_steers();
        while let Some(at) = self.wants.iter().position(|effect| self.recorded.contains_key(&effect.id)) {
            let effect = self.wants.remove(at);
            match self.recorded.remove(&effect.id) {
                Some(recorded) if recorded.request_hash == effect.request_hash => {
                    if let (Kept::Fitted, EffectOutcome::Tool(outcome)) = (Kept::of(&effect), &recorded.outcome) {
                        self.room.spend(outcome);
                    }
                    self.resolve(&effect.id, recorded.outcome);
                }
                Some(_) => self.drifted(&effect.id),
                None => {}
            }
            self.wants.append(&mut self.run.wants());
            self.replay_steers();
        }
    }

    /// Reads messages again before the model calls before which they were read.
    fn replay_steers(&mut self) {
        while let Some(inputs) = self.next_steer() {
            let Some(effect) = self.wants.pop() else { return };
            self.steer(&effect.id, inputs);
            self.wants.append(&mut self.run.wants());
        }
    }

    /// What was read before the one effect that is wanted now.
    fn next_steer(&mut self) -> Option<Vec<Input>> {
        let [effect] = &self.wants[..] else { return None };
        let at = self.steered.iter().position(|(model, _)| *model == effect.id)?;
        self.steered.remove(at).map(|(_, inputs)| inputs)
    }

    fn steer(&mut self, id: &EffectId, inputs: Vec<Input>) {
        if let Err(error) = self.run.steer(id, inputs) {
            self.faulted(&error.to_string());
        }
    }

    /// Ends the run when its turn was cancelled or its session has another owner: then nothing more is written.
    pub(crate) fn check_still_ours(&self) -> Result<(), CoreError> {
        match self.abort.kind() {
            Some(AbortKind::Cancel) => Err(CoreError::TurnCancelled),
            Some(AbortKind::OwnershipLost) => Err(CoreError::OwnershipLost),
            Some(AbortKind::Shutdown | AbortKind::Deadline) | None => Ok(()),
        }
    }

    /// Commits the outcomes in hand with the intents of what is wanted next, and begins that.
    async fn begin(&mut self) -> Result<(), CoreError> {
        let effects = std::mem::take(&mut self.wants);
        let reports = std::mem::take(&mut self.reports);
        let answers = match self.core.commit(reports, Next::Intents(effects.iter().map(Effect::intent).collect())).await
        {
            Ok(answers) => answers,
            Err(CoreError::EffectDrift(id)) => {
                self.drifted(&id);
                return Ok(());
            }
            Err(
                error @ (CoreError::OwnershipLost
                | CoreError::TurnCancelled
                | CoreError::Unavailable(_)
                | CoreError::Refused(_)),
            ) => return Err(error),
        };
        self.check_still_ours()?;
        self.watch_budget();
        if answers.len() != effects.len() {
            self.faulted("the runtime did not answer every intent");
            return Ok(());
        }
        let mut granted = Vec::new();
        for (effect, answer) in effects.into_iter().zip(answers) {
            match answer {
                IntentAnswer::Execute => granted.push(effect),
                IntentAnswer::Completed(outcome) => {
                    self.resolve(&effect.id, outcome);
                }
                IntentAnswer::Uncertain => self.uncertain(&effect.id),
                IntentAnswer::Steered(inputs) => self.steer(&effect.id, inputs),
            }
        }
        self.in_flight.extend(granted.iter().map(|effect| (effect.id.clone(), InFlight::of(effect))));
        self.executors.begin(granted);
        Ok(())
    }

    /// Commits outcomes of parallel effects while others still run.
    pub(crate) async fn commit_outcomes(&mut self) -> Result<(), CoreError> {
        self.core.commit(std::mem::take(&mut self.reports), Next::Nothing).await?;
        Ok(())
    }

    /// Commits the outcomes in hand with the run's output.
    pub(crate) async fn settle(&mut self) -> Result<RunEnd, CoreError> {
        let Some(output) = self.run.output() else { return Ok(RunEnd::Stopped) };
        let edits = output.edits.iter().cloned().flat_map(|edit| edit.split(MAX_EDIT_LEN, entry_len)).collect();
        let output = TurnOutput { end: output.end.clone(), edits };
        self.core.commit(std::mem::take(&mut self.reports), Next::Output(output)).await?;
        Ok(RunEnd::Settled)
    }

    async fn wait(&mut self) {
        if self.in_flight.is_empty() {
            return self.faulted("the run waits for nothing");
        }
        tokio::select! {
            biased;
            arrival = self.arrivals.recv() => {
                if let Some(arrival) = arrival {
                    self.take(arrival);
                }
            }
            _ = self.abort.aborted() => {}
        }
    }

    /// Takes what arrived meanwhile, so that it shares the next commit.
    pub(crate) fn take_arrived(&mut self) {
        while let Ok(arrival) = self.arrivals.try_recv() {
            self.take(arrival);
        }
    }

    /// A segment whose budget is used up ends at the next boundary, once everything recorded was replayed.
    fn watch_budget(&mut self) {
        let is_used_up = self.run.steps() >= self.yield_after.steps
            || self.begun_at.elapsed() >= Duration::from_millis(self.yield_after.ms);
        if self.recorded.is_empty() && self.steered.is_empty() && is_used_up {
            self.run.yield_at_boundary();
        }
    }

    /// Takes what became of an effect.
    pub(crate) fn take(&mut self, arrival: Arrival) {
        self.watch_budget();
        let Arrival { effect_id, ended, events } = arrival;
        let kept = self.in_flight.remove(&effect_id).map(|in_flight| in_flight.kept);
        let result = match self.fitted(ended, kept) {
            Ended::Value(outcome) => match self.resolve(&effect_id, outcome) {
                Some(outcome) => EffectResult::Value(outcome),
                None => return,
            },
            Ended::Lost { message } => {
                self.uncertain(&effect_id);
                EffectResult::Lost { message }
            }
            Ended::Dropped => return,
        };
        // The workspace's record is its manager's, which has written it.
        self.reports.push(EffectReport { effect_id, result, events, record: None });
    }

    /// What a tool gave, cut to the room of its step where the tool does not bound it itself.
    fn fitted(&mut self, ended: Ended, kept: Option<Kept>) -> Ended {
        match (ended, kept) {
            (Ended::Value(EffectOutcome::Tool(outcome)), Some(Kept::Fitted)) => {
                Ended::Value(EffectOutcome::Tool(self.room.fit(outcome)))
            }
            (ended, _) => ended,
        }
    }

    /// Gives the engine an outcome, and answers it as it is to be recorded.
    fn resolve(&mut self, id: &EffectId, outcome: EffectOutcome) -> Option<EffectOutcome> {
        if matches!(outcome, EffectOutcome::Model(_)) {
            self.room = StepRoom::WHOLE;
        }
        let resolved = self.run.resolve(id, outcome);
        resolved.map_err(|error| self.faulted(&error.to_string())).ok()
    }

    fn uncertain(&mut self, id: &EffectId) {
        if let Err(error) = self.run.uncertain(id) {
            self.faulted(&error.to_string());
        }
    }

    fn drifted(&mut self, id: &EffectId) {
        self.wants.clear();
        let message = format!("Effect {id} asks for something else than when it was recorded.");
        self.run.give_up("effect_drift", message);
    }

    /// Fails the turn for a fault of this program.
    fn faulted(&mut self, message: &str) {
        tracing::error!(message, "a run is at fault; its turn fails");
        self.wants.clear();
        self.run.give_up("internal", message);
    }
}

/// Divides what the journal shipped: outcomes of effects, and messages that were read.
fn sort_out(outcomes: Vec<RecordedOutcome>) -> (HashMap<EffectId, RecordedOutcome>, Steers) {
    let (mut recorded, mut steered) = (HashMap::new(), Vec::new());
    for outcome in outcomes {
        match outcome.outcome {
            EffectOutcome::Steer { model, inputs } => steered.push((outcome.effect_id, model, inputs)),
            EffectOutcome::Model(_)
            | EffectOutcome::Summary { .. }
            | EffectOutcome::Tool(_)
            | EffectOutcome::Asked { .. } => {
                recorded.insert(outcome.effect_id.clone(), outcome);
            }
        }
    }
    // The ids of one call's readings differ in the number at their end.
    steered.sort_by(|(a, ..), (b, ..)| (a.as_str().len(), a).cmp(&(b.as_str().len(), b)));
    (recorded, steered.into_iter().map(|(_, model, inputs)| (model, inputs)).collect())
}
