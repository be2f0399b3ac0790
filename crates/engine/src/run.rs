//! The state machine: one segment of a turn.

use std::sync::Arc;

use nylorun_domain::effect::{Effect, EffectKind, EffectOutcome, EffectRequest};
use nylorun_domain::id::{AgentId, EffectId, InvocationId, SessionId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::manifest::AgentManifest;
use nylorun_domain::model::{Candidate, ModelFailureCode, ModelOutcome};
use nylorun_domain::segment::{TurnEnd, TurnOutput};
use nylorun_domain::transcript::{Edit, Entry, Input};

use crate::calls::CallIds;
use crate::conversation::Conversation;
use crate::plan::{CallState, Plan, Standing};
use crate::request::{Scope, StepCall};
use crate::toolbox::Toolbox;
use crate::turn_output;

/// Most model calls of one segment. A turn that wants more fails `turn.step_limit`, so that no loop is endless.
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
    /// What began the segment.
    pub input: Input,
    /// The model's history before the turn.
    pub transcript: Vec<Entry>,
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
    scope: Scope,
    toolbox: Toolbox,
    output_schema: Option<Json>,
    conversation: Conversation,
    call_ids: CallIds,
    entries_before: usize,
    entries: Vec<Entry>,
    step: u32,
    phase: Phase,
    wants: Vec<Effect>,
}

#[derive(Debug)]
enum Phase {
    /// A model call is open.
    Model { effect_id: EffectId, invocation_id: InvocationId },
    /// Tool calls are open.
    Tools(Plan),
    /// Nothing is open any more.
    Ended(TurnOutput),
}

impl Run {
    /// Begins a segment. It wants its first model call at once.
    pub fn new(start: Start) -> Self {
        let scope = Scope::new(&start);
        let (effect_id, invocation_id) = scope.call(EffectKind::Model, 0, StepCall::Model);
        let mut run = Self {
            scope,
            toolbox: Toolbox::new(&start.manifest),
            output_schema: start.manifest.output_schema.clone(),
            call_ids: CallIds::of(&start.transcript),
            entries_before: start.transcript.len(),
            conversation: Conversation::new(&start.manifest, start.transcript),
            entries: Vec::new(),
            step: 0,
            phase: Phase::Model { effect_id, invocation_id },
            wants: Vec::new(),
        };
        run.add(Entry::Input(start.input));
        run.ask_model();
        run
    }

    /// The effects to begin now. Each is given once; they may run at the same time.
    pub fn wants(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.wants)
    }

    /// Takes an effect's outcome, new or replayed, and answers it as it is to be recorded: a model's tool calls get
    /// ids that are unique in the session. Recorded outcomes are taken back unchanged.
    pub fn resolve(&mut self, id: &EffectId, outcome: EffectOutcome) -> Result<EffectOutcome, ResolveError> {
        match outcome {
            EffectOutcome::Model(outcome) => self.model_answered(id, outcome).map(EffectOutcome::Model),
            EffectOutcome::Tool(outcome) => {
                self.tool_answered(id, CallState::Done(outcome.clone()))?;
                Ok(EffectOutcome::Tool(outcome))
            }
        }
    }

    /// Takes note that an effect may or may not have happened. The run ends uncertain once nothing else is open.
    pub fn uncertain(&mut self, id: &EffectId) -> Result<(), ResolveError> {
        match &self.phase {
            Phase::Model { effect_id, .. } if effect_id == id => {
                self.end(TurnEnd::Uncertain);
                Ok(())
            }
            Phase::Tools(_) => self.tool_answered(id, CallState::Uncertain),
            Phase::Model { .. } | Phase::Ended(_) => Err(ResolveError::NotOpen(id.clone())),
        }
    }

    /// Ends the run now, whatever is open: uncertain when an effect is, else failed. A run that ended stays as it is.
    pub fn give_up(&mut self, code: &str, message: impl Into<String>) {
        let end = match &self.phase {
            Phase::Ended(_) => return,
            Phase::Tools(plan) if plan.has_uncertain() => TurnEnd::Uncertain,
            Phase::Tools(_) | Phase::Model { .. } => failed(code, message),
        };
        self.end(end);
    }

    /// How the run ended, once it has. Only a completed turn leaves a trace in the transcript (engine b.12, rule 21):
    /// one edit, which may be larger than the record takes (see [`Edit::split`]).
    pub fn output(&self) -> Option<&TurnOutput> {
        match &self.phase {
            Phase::Ended(output) => Some(output),
            Phase::Model { .. } | Phase::Tools(_) => None,
        }
    }

    fn ask_model(&mut self) {
        if self.step == MAX_STEPS {
            let message = format!("The turn wanted more than {MAX_STEPS} model calls.");
            return self.end(failed("turn.step_limit", message));
        }
        self.step += 1;
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
            Phase::Model { .. } | Phase::Tools(_) | Phase::Ended(_) => return Err(ResolveError::NotOpen(id.clone())),
        };
        self.wants.clear();
        match outcome {
            ModelOutcome::Failed(failure) => {
                self.end(failed(&model_code(failure.code), failure.message.clone()));
                Ok(ModelOutcome::Failed(failure))
            }
            ModelOutcome::Completed(candidate) => {
                let candidate = self.call_ids.name_calls(candidate, &invocation_id);
                self.add(Entry::Candidate { invocation_id, candidate: candidate.clone() });
                self.follow(&candidate);
                Ok(ModelOutcome::Completed(candidate))
            }
        }
    }

    /// What follows an answer: its tools, or the end of the turn.
    fn follow(&mut self, candidate: &Candidate) {
        let effects = self.tool_effects(candidate);
        if effects.is_empty() {
            return self.finish(candidate);
        }
        self.phase = Phase::Tools(Plan::new(&effects));
        self.wants = effects;
    }

    fn tool_effects(&self, candidate: &Candidate) -> Vec<Effect> {
        let calls = candidate.tool_calls().enumerate();
        let effects = calls.map(|(index, call)| {
            let request = self.toolbox.request(call);
            let (id, invocation_id) = self.scope.call(EffectKind::Tool, self.step, StepCall::Tool(index));
            let request_hash = self.scope.tool_hash(&id, &invocation_id, self.step, &request);
            Effect { id, invocation_id, request: EffectRequest::Tool(request), request_hash }
        });
        effects.collect()
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

    fn tool_answered(&mut self, id: &EffectId, state: CallState) -> Result<(), ResolveError> {
        let plan = match &mut self.phase {
            Phase::Tools(plan) => plan,
            Phase::Model { effect_id, .. } if effect_id == id => return Err(ResolveError::OtherKind(id.clone())),
            Phase::Model { .. } | Phase::Ended(_) => return Err(ResolveError::NotOpen(id.clone())),
        };
        plan.settle(id, state)?;
        self.wants.retain(|effect| effect.id != *id);
        match plan.standing() {
            Standing::Open => {}
            Standing::Uncertain => self.end(TurnEnd::Uncertain),
            Standing::Done(results) => {
                self.add(Entry::ToolResults(results));
                self.ask_model();
            }
        }
        Ok(())
    }

    fn add(&mut self, entry: Entry) {
        self.conversation.push(entry.clone());
        self.entries.push(entry);
    }

    fn end(&mut self, end: TurnEnd) {
        self.wants.clear();
        let edits = match end {
            TurnEnd::Completed { .. } => vec![Edit::append(self.entries_before, std::mem::take(&mut self.entries))],
            TurnEnd::Failed { .. } | TurnEnd::Uncertain => Vec::new(),
        };
        self.phase = Phase::Ended(TurnOutput { end, edits });
    }
}

fn failed(code: &str, message: impl Into<String>) -> TurnEnd {
    TurnEnd::Failed { code: code.to_owned(), message: message.into() }
}

fn model_code(code: ModelFailureCode) -> String {
    format!("model.{}", code.as_str())
}
