//! The state machine: one segment of a turn.

use std::sync::Arc;

use nylorun_domain::checkpoint::{SavedCall, State};
use nylorun_domain::effect::{Effect, EffectKind, EffectOutcome, EffectRequest, ToolRequest};
use nylorun_domain::id::{AgentId, EffectId, InvocationId, SessionId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::manifest::{AgentManifest, Approval};
use nylorun_domain::model::{Candidate, ModelFailureCode, ModelOutcome, ToolCall};
use nylorun_domain::segment::{SegmentInput, TurnEnd, TurnOutput};
use nylorun_domain::transcript::{Entry, Input, Line};

use crate::calls::CallIds;
use crate::compaction::Compacting;
use crate::conversation::Conversation;
use crate::history::History;
use crate::plan::{CallState, Plan, Planned, Standing};
use crate::request::{Scope, StepCall};
use crate::toolbox::{Requested, Toolbox};
use crate::turn_output;

/// Most model calls of one turn. A turn that wants more fails `turn.step_limit`, so that no loop is endless.
pub const MAX_STEPS: u32 = 500;

/// What a run starts from (engine b.1).
#[derive(Clone, Debug)]
pub struct Start {
    /// The session.
    pub session_id: SessionId,
    /// Its agent.
    pub agent_id: AgentId,
    /// The turn.
    pub turn_id: TurnId,
    /// The stretch of the turn, from 0.
    pub segment: u32,
    /// The turn's manifest.
    pub manifest: Arc<AgentManifest>,
    /// What begins the segment.
    pub input: SegmentInput,
    /// The model's history before the segment.
    pub transcript: Arc<Vec<Line>>,
}

/// Why an outcome is refused. Each is a fault of the caller, or a damaged journal; the run stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The run does not wait for this effect.
    #[error("the run does not wait for effect {0}")]
    NotOpen(EffectId),
    /// A tool's outcome for a model call, or the reverse.
    #[error("the outcome of effect {0} is of another kind")]
    OtherKind(EffectId),
}

/// One segment of a turn.
#[derive(Debug)]
pub struct Run {
    pub(crate) scope: Scope,
    pub(crate) toolbox: Toolbox,
    output_schema: Option<Json>,
    pub(crate) conversation: Conversation,
    pub(crate) call_ids: CallIds,
    pub(crate) history: History,
    /// Model calls of the turn so far.
    pub(crate) step: u32,
    /// Model calls of the turn before this segment.
    steps_before: u32,
    boundary: Boundary,
    pub(crate) overflow: Overflow,
    pub(crate) phase: Phase,
    pub(crate) wants: Vec<Effect>,
}

#[derive(Debug)]
pub(crate) enum Phase {
    /// A model call is open.
    Model { effect_id: EffectId, invocation_id: InvocationId },
    /// A model call for a summary of older history is open.
    Summary { effect_id: EffectId, compacting: Box<Compacting> },
    /// Tool calls are open.
    Tools(Plan),
    /// Nothing is open any more.
    Ended(TurnOutput),
}

impl Phase {
    /// Between two phases.
    pub(crate) fn idle() -> Self {
        Self::Tools(Plan::new(Vec::new()))
    }
}

/// What happens when all results of a step are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Boundary {
    /// The next step begins.
    GoOn,
    /// The segment ends.
    Yield,
}

/// Whether the running step was compacted because it did not fit: that is done once, until a model call succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    NotYet,
    Compacted,
}

impl Run {
    /// Begins a segment. It wants its first effects at once.
    pub fn new(start: Start) -> Self {
        let scope = Scope::new(&start);
        let (effect_id, invocation_id) = scope.call(EffectKind::Model, 0, StepCall::Model);
        let (turn_start, steps) = match &start.input {
            SegmentInput::Message(_) => (start.transcript.len(), 0),
            SegmentInput::Resume { state, .. } => (state.turn_start, state.steps),
        };
        let mut run = Self {
            scope,
            toolbox: Toolbox::new(&start.manifest),
            output_schema: start.manifest.output_schema.clone(),
            call_ids: CallIds::of(&start.transcript),
            conversation: Conversation::new(&start.manifest, &start.transcript),
            history: History::new(start.transcript, turn_start),
            step: steps,
            steps_before: steps,
            boundary: Boundary::GoOn,
            overflow: Overflow::NotYet,
            phase: Phase::Model { effect_id, invocation_id },
            wants: Vec::new(),
        };
        match start.input {
            SegmentInput::Message(input) => {
                run.add(Entry::Input(input));
                run.ask_model();
            }
            SegmentInput::Resume { state, answers } => run.resume(state.calls, &answers),
        }
        run
    }

    /// Model calls of this segment so far.
    pub fn steps(&self) -> u32 {
        self.step - self.steps_before
    }

    /// Ends the segment once all results of the running step are there, instead of asking the model again. Must not be
    /// told before every recorded outcome was given back: a replay has to come as far as the run before it.
    pub fn yield_at_boundary(&mut self) {
        self.boundary = Boundary::Yield;
    }

    /// The effects to begin now. Each is given once; they may run at the same time.
    pub fn wants(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.wants)
    }

    /// Takes an effect's outcome, new or replayed, and answers it as it is to be recorded: a model's tool calls get
    /// ids that are unique in the session. Recorded outcomes are taken back unchanged.
    pub fn resolve(&mut self, id: &EffectId, outcome: EffectOutcome) -> Result<EffectOutcome, ResolveError> {
        match outcome {
            EffectOutcome::Model(outcome) | EffectOutcome::Summary { outcome, .. } => match &self.phase {
                Phase::Summary { effect_id, .. } if effect_id == id => Ok(self.summary_answered(outcome)),
                Phase::Model { .. } | Phase::Summary { .. } | Phase::Tools(_) | Phase::Ended(_) => {
                    self.model_answered(id, outcome).map(EffectOutcome::Model)
                }
            },
            EffectOutcome::Tool(outcome) => {
                self.tool_answered(id, CallState::Done(outcome.clone()))?;
                Ok(EffectOutcome::Tool(outcome))
            }
            EffectOutcome::Asked { kind, prompt } => {
                self.tool_asked(id, kind.clone(), prompt.clone())?;
                Ok(EffectOutcome::Asked { kind, prompt })
            }
            EffectOutcome::Steer { .. } => Err(ResolveError::OtherKind(id.clone())),
        }
    }

    /// Lets the turn read messages before this model call, which has not begun: the call is wanted again, with another
    /// prompt. A replay has to be told the same before the same call.
    pub fn steer(&mut self, id: &EffectId, inputs: Vec<Input>) -> Result<(), ResolveError> {
        match &self.phase {
            Phase::Model { effect_id, .. } if effect_id == id => {}
            Phase::Model { .. } | Phase::Summary { .. } | Phase::Tools(_) | Phase::Ended(_) => {
                return Err(ResolveError::NotOpen(id.clone()));
            }
        }
        inputs.into_iter().for_each(|input| self.add(Entry::Input(input)));
        self.want_model();
        Ok(())
    }

    /// Takes note that an effect may or may not have happened. The run ends uncertain once nothing else is open.
    pub fn uncertain(&mut self, id: &EffectId) -> Result<(), ResolveError> {
        match &self.phase {
            Phase::Model { effect_id, .. } | Phase::Summary { effect_id, .. } if effect_id == id => {
                self.end(TurnEnd::Uncertain);
                Ok(())
            }
            Phase::Tools(_) => self.tool_answered(id, CallState::Uncertain),
            Phase::Model { .. } | Phase::Summary { .. } | Phase::Ended(_) => Err(ResolveError::NotOpen(id.clone())),
        }
    }

    /// Ends the run now, whatever is open: uncertain when an effect is, else failed. A run that ended stays as it is.
    pub fn give_up(&mut self, code: &str, message: impl Into<String>) {
        let end = match &self.phase {
            Phase::Ended(_) => return,
            Phase::Tools(plan) if plan.has_uncertain() => TurnEnd::Uncertain,
            Phase::Tools(_) | Phase::Model { .. } | Phase::Summary { .. } => failed(code, message),
        };
        self.end(end);
    }

    /// How the run ended, once it has. What the segment did to the transcript is at most one edit, which may be larger
    /// than the record takes (see [`Edit::split`](nylorun_domain::transcript::Edit::split)). A failed turn leaves no
    /// trace (engine b.12, rule 21), and a segment with an uncertain effect is replayed.
    pub fn output(&self) -> Option<&TurnOutput> {
        match &self.phase {
            Phase::Ended(output) => Some(output),
            Phase::Model { .. } | Phase::Summary { .. } | Phase::Tools(_) => None,
        }
    }

    /// Begins the next step, with a compaction before it when the conversation leaves no room for an answer.
    fn ask_model(&mut self) {
        if !self.compact_at_threshold() {
            self.begin_step();
        }
    }

    /// Asks the model.
    pub(crate) fn begin_step(&mut self) {
        if self.step == MAX_STEPS {
            let message = format!("The turn wanted more than {MAX_STEPS} model calls.");
            return self.end(failed("turn.step_limit", message));
        }
        self.step += 1;
        self.want_model();
    }

    /// Wants the model call of the running step.
    fn want_model(&mut self) {
        let (id, invocation_id) = self.scope.call(EffectKind::Model, self.step, StepCall::Model);
        let request = EffectRequest::Model(Arc::new(self.conversation.prompt()));
        let request_hash = self.scope.model_hash(&id, &invocation_id, self.conversation.digest());
        self.phase = Phase::Model { effect_id: id.clone(), invocation_id: invocation_id.clone() };
        self.wants = vec![Effect { id, invocation_id, request, request_hash }];
    }

    fn model_answered(&mut self, id: &EffectId, outcome: ModelOutcome) -> Result<ModelOutcome, ResolveError> {
        let invocation_id = match &self.phase {
            Phase::Model { effect_id, invocation_id } if effect_id == id => invocation_id.clone(),
            Phase::Tools(plan) if plan.has(id) => return Err(ResolveError::OtherKind(id.clone())),
            Phase::Summary { effect_id, .. } if effect_id == id => return Err(ResolveError::OtherKind(id.clone())),
            Phase::Model { .. } | Phase::Summary { .. } | Phase::Tools(_) | Phase::Ended(_) => {
                return Err(ResolveError::NotOpen(id.clone()));
            }
        };
        self.wants.clear();
        match outcome {
            ModelOutcome::Failed(failure) => {
                if !self.compact_after(failure.code) {
                    self.end(failed(&model_code(failure.code), failure.message.clone()));
                }
                Ok(ModelOutcome::Failed(failure))
            }
            ModelOutcome::Completed(candidate) => {
                self.overflow = Overflow::NotYet;
                let candidate = self.call_ids.name_calls(candidate, &invocation_id);
                self.add(Entry::Candidate { invocation_id, candidate: Arc::new(candidate.clone()) });
                self.follow(&candidate);
                Ok(ModelOutcome::Completed(candidate))
            }
        }
    }

    /// What follows an answer: its tools, or the end of the turn.
    fn follow(&mut self, candidate: &Candidate) {
        let calls: Vec<_> = candidate.tool_calls().cloned().collect();
        if calls.is_empty() {
            return self.finish(candidate);
        }
        let planned = calls.iter().enumerate().map(|(index, call)| self.plan_call(index, call)).collect();
        self.begin_plan(Plan::new(planned));
    }

    /// Begins a call, unless a person is asked first: then it does not become an effect yet (engine b.6, rule 9).
    fn plan_call(&mut self, index: usize, call: &ToolCall) -> Planned {
        let Requested { request, approval } = self.toolbox.request(call, self.step);
        let (_, invocation_id) = self.scope.call(EffectKind::Tool, self.step, StepCall::Tool(index));
        let (call_id, tool_name) = (request.call_id.clone(), request.tool_name.clone());
        let state = match approval {
            Approval::Never => CallState::Open(self.want_tool(invocation_id, request)),
            Approval::Always => CallState::Waiting(self.scope.approval(invocation_id, &request)),
        };
        Planned { call_id, tool_name, state }
    }

    /// Wants a tool's effect, and answers its id.
    pub(crate) fn want_tool(&mut self, invocation_id: InvocationId, request: ToolRequest) -> EffectId {
        let id = self.scope.effect_id(EffectKind::Tool, &invocation_id);
        let request_hash = self.scope.tool_hash(&id, &invocation_id, &request);
        self.wants.push(Effect { id: id.clone(), invocation_id, request: EffectRequest::Tool(request), request_hash });
        id
    }

    /// Waits for the calls of an answer, as far as there is something to wait for.
    pub(crate) fn begin_plan(&mut self, plan: Plan) {
        self.phase = Phase::Tools(plan);
        self.look_at_plan();
    }

    fn look_at_plan(&mut self) {
        let Phase::Tools(plan) = &self.phase else { return };
        match plan.standing() {
            Standing::Open => {}
            Standing::Uncertain => self.end(TurnEnd::Uncertain),
            Standing::Waiting => {
                let (interactions, calls) = (plan.interactions(), plan.save());
                self.end(TurnEnd::Paused { interactions, state: self.state(calls) });
            }
            Standing::Done(results) => {
                self.add(Entry::ToolResults(results));
                self.next_step();
            }
        }
    }

    /// All results of a step are there.
    pub(crate) fn next_step(&mut self) {
        match self.boundary {
            Boundary::GoOn => self.ask_model(),
            Boundary::Yield => self.end(TurnEnd::Yielded { state: self.state(Vec::new()) }),
        }
    }

    fn state(&self, calls: Vec<SavedCall>) -> State {
        State { turn_start: self.history.turn_start(), steps: self.step, calls }
    }

    fn finish(&mut self, candidate: &Candidate) {
        match turn_output::of(candidate, self.output_schema.as_ref()) {
            Ok(output) => {
                self.add(Entry::Final { output: output.clone() });
                self.end(TurnEnd::Completed { output });
            }
            Err(message) => self.end(failed(&model_code(ModelFailureCode::InvalidOutput), message)),
        }
    }

    pub(crate) fn tool_answered(&mut self, id: &EffectId, state: CallState) -> Result<(), ResolveError> {
        let plan = match &mut self.phase {
            Phase::Tools(plan) => plan,
            Phase::Model { effect_id, .. } | Phase::Summary { effect_id, .. } if effect_id == id => {
                return Err(ResolveError::OtherKind(id.clone()));
            }
            Phase::Model { .. } | Phase::Summary { .. } | Phase::Ended(_) => {
                return Err(ResolveError::NotOpen(id.clone()));
            }
        };
        plan.settle(id, state)?;
        self.wants.retain(|effect| effect.id != *id);
        self.look_at_plan();
        Ok(())
    }

    fn add(&mut self, entry: Entry) {
        let line = Line::from(entry);
        self.conversation.push(&line);
        self.history.push(line);
    }

    pub(crate) fn end(&mut self, end: TurnEnd) {
        self.wants.clear();
        let edits = match end {
            TurnEnd::Completed { .. } | TurnEnd::Yielded { .. } | TurnEnd::Paused { .. } => {
                self.history.edit().into_iter().collect()
            }
            TurnEnd::Failed { .. } | TurnEnd::Uncertain => Vec::new(),
        };
        self.phase = Phase::Ended(TurnOutput { end, edits });
    }
}

pub(crate) fn failed(code: &str, message: impl Into<String>) -> TurnEnd {
    TurnEnd::Failed { code: code.to_owned(), message: message.into() }
}

pub(crate) fn model_code(code: ModelFailureCode) -> String {
    format!("model.{}", code.as_str())
}
