//! One step of a turn: outcomes in hand and what comes next, as one change (architecture, "One port call carries both halves").

use std::collections::HashMap;

use crate::change::{EffectChange, EffectRow, EffectTool, SessionChange, Stamp};
use crate::effect::{Effect, EffectOutcome, EffectRequest, EffectStatus};
use crate::event::{Payload, Source};
use crate::id::{EffectId, TurnId};
use crate::json::Json;
use crate::model::ModelOutcome;
use crate::session::Status;
use crate::transcript::Edit;
use crate::usage::{Completed, Repetition, UsageRow};
use crate::workspace::{WorkspaceEvent, WorkspaceRecord};

/// The journal of the active segment, as its owner knows it. Only the owner writes it, so it need not be read again.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    rows: HashMap<EffectId, EffectRow>,
    /// Model calls that run again: what they use is counted as a repetition.
    repeated: Vec<EffectId>,
}

impl Journal {
    /// The journal of these rows.
    pub fn of(rows: Vec<EffectRow>) -> Self {
        Self { rows: rows.into_iter().map(|row| (row.id.clone(), row)).collect(), repeated: Vec::new() }
    }

    /// Its rows, in no order.
    pub fn rows(&self) -> impl Iterator<Item = &EffectRow> {
        self.rows.values()
    }
}

/// What a harness reports of one effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The effect.
    pub effect_id: EffectId,
    /// What became of it.
    pub result: ReportResult,
    /// What happened to the workspace meanwhile.
    pub workspace: WorkspaceReport,
}

/// What became of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportResult {
    /// A definite outcome.
    Value(EffectOutcome),
    /// Its answer was lost.
    Lost {
        /// What is known.
        message: String,
    },
}

/// What a workspace call leaves to be recorded with its outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkspaceReport {
    /// Events, in order.
    pub events: Vec<WorkspaceEvent>,
    /// The record, when the call changed it.
    pub record: Option<WorkspaceRecord>,
}

/// What is wanted next.
#[derive(Clone, Debug, PartialEq)]
pub enum StepNext<'a> {
    /// Nothing new.
    Nothing,
    /// These effects.
    Intents(&'a [Effect]),
    /// The segment ended.
    Output {
        /// How.
        end: &'a StepEnd,
        /// Edits of the transcript.
        edits: &'a [Edit],
    },
}

/// How a segment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// The turn is done.
    Completed {
        /// Its output.
        output: Json,
    },
    /// The turn failed.
    Failed {
        /// A dotted word.
        code: String,
        /// What happened.
        message: String,
    },
    /// The turn waits for an effect to be settled.
    Uncertain,
}

/// A step that was decided.
#[derive(Clone, Debug)]
pub struct Step {
    /// What to commit.
    pub change: SessionChange,
    /// The journal after the commit.
    pub journal: Journal,
    /// For each wanted effect, whether it is to run, or what it gave.
    pub answers: Vec<Answer>,
}

/// The answer to one wanted effect (engine a.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Run it now.
    Execute,
    /// It has its outcome.
    Completed(EffectOutcome),
    /// It may or may not have happened.
    Uncertain,
}

/// Why a step is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The turn is not active any more.
    #[error("the turn was cancelled")]
    TurnCancelled,
    /// The same effect id came with another request.
    #[error("effect {0} asks for something else than before")]
    EffectDrift(EffectId),
    /// An outcome for an effect that has no intent.
    #[error("effect {0} has no intent")]
    UnknownEffect(EffectId),
}

/// Decides one step of `turn` upon `change`, which begins as the session's row, or as its take that is not yet committed.
pub fn step(
    change: SessionChange,
    turn: &TurnId,
    journal: &Journal,
    reports: Vec<Report>,
    next: StepNext<'_>,
    stamp: &Stamp<'_>,
) -> Result<Step, StepError> {
    if change.session.active_turn_id.as_ref() != Some(turn) {
        return Err(StepError::TurnCancelled);
    }
    let keep = match next {
        StepNext::Nothing | StepNext::Intents(_) | StepNext::Output { end: StepEnd::Uncertain, .. } => Keep::Outcomes,
        StepNext::Output { end: StepEnd::Completed { .. } | StepEnd::Failed { .. }, .. } => Keep::Nothing,
    };
    let mut step = Step { change, journal: journal.clone(), answers: Vec::new() };
    for report in reports {
        step.record(turn, report, keep, stamp)?;
    }
    match next {
        StepNext::Nothing => {}
        StepNext::Intents(effects) => step.intend(turn, effects, stamp)?,
        StepNext::Output { end, edits } => step.settle(turn, end, edits, stamp),
    }
    Ok(step)
}

/// Whether recorded outcomes may be replayed.
#[derive(Clone, Copy)]
enum Keep {
    Outcomes,
    Nothing,
}

impl Step {
    fn record(&mut self, turn: &TurnId, report: Report, keep: Keep, stamp: &Stamp<'_>) -> Result<(), StepError> {
        let Some(row) = self.journal.rows.get(&report.effect_id).cloned() else {
            return Err(StepError::UnknownEffect(report.effect_id));
        };
        for event in report.workspace.events {
            self.change.event(Source::Loop, Some(turn.clone()), Payload::Workspace(event), stamp);
        }
        self.change.workspaces.extend(report.workspace.record);
        match report.result {
            ReportResult::Value(outcome) => self.complete(turn, row, outcome, keep, stamp),
            ReportResult::Lost { message } => {
                self.change.effects.push(EffectChange::Uncertain { id: row.id.clone(), error: message.clone() });
                let payload = Payload::EffectUncertain { effect_id: row.id.clone(), message };
                self.change.event(Source::Loop, Some(turn.clone()), payload, stamp);
                self.journal.rows.insert(row.id.clone(), EffectRow { status: EffectStatus::Uncertain, ..row });
            }
        }
        Ok(())
    }

    fn complete(&mut self, turn: &TurnId, row: EffectRow, outcome: EffectOutcome, keep: Keep, stamp: &Stamp<'_>) {
        let kept = match keep {
            Keep::Outcomes => Some(outcome.clone()),
            Keep::Nothing => None,
        };
        self.change.effects.push(EffectChange::Complete { id: row.id.clone(), outcome: kept });
        if let EffectOutcome::Model(model) = &outcome {
            let usage = self.usage(turn, &row, model, stamp);
            self.change.usage.push(usage);
        }
        self.change.event(Source::Loop, Some(turn.clone()), outcome_payload(&row, outcome.clone()), stamp);
        let row = EffectRow { status: EffectStatus::Completed, outcome: Some(outcome), ..row };
        self.journal.rows.insert(row.id.clone(), row);
    }

    fn usage(&self, turn: &TurnId, row: &EffectRow, outcome: &ModelOutcome, stamp: &Stamp<'_>) -> UsageRow {
        let (completed, model, usage) = match outcome {
            ModelOutcome::Completed(candidate) => {
                (Completed::Completed, Some(candidate.model.clone()), candidate.usage)
            }
            ModelOutcome::Failed(failure) => (Completed::Failed, failure.model.clone(), failure.usage),
        };
        let repetition =
            if self.journal.repeated.contains(&row.id) { Repetition::Duplicate } else { Repetition::First };
        UsageRow {
            id: (stamp.uuid)(),
            effect_id: row.id.clone(),
            session_id: row.session_id.clone(),
            turn_id: turn.clone(),
            agent_id: self.change.session.agent_id.clone(),
            model,
            completed,
            repetition,
            usage,
            at: stamp.now,
        }
    }

    fn intend(&mut self, turn: &TurnId, effects: &[Effect], stamp: &Stamp<'_>) -> Result<(), StepError> {
        let mut inserted = Vec::new();
        for effect in effects {
            let answer = match self.journal.rows.get(&effect.id) {
                Some(row) if row.request_hash != effect.request_hash => {
                    return Err(StepError::EffectDrift(effect.id.clone()));
                }
                Some(row) => answer_of(row),
                None => {
                    let row = self.new_row(turn, effect);
                    let answer = answer_of_new(effect);
                    inserted.push(row.clone());
                    self.journal.rows.insert(row.id.clone(), row);
                    answer
                }
            };
            if answer == Answer::Execute && !inserted.iter().any(|row| row.id == effect.id) {
                self.journal.repeated.push(effect.id.clone());
            }
            self.answers.push(answer);
        }
        if !inserted.is_empty() {
            self.change.effects.push(EffectChange::Insert(inserted));
        }
        for (effect, answer) in effects.iter().zip(self.answers.clone()) {
            self.complete_unavailable(turn, effect, answer, stamp);
        }
        Ok(())
    }

    /// A tool that nothing can run completes with its intent (engine a.10).
    fn complete_unavailable(&mut self, turn: &TurnId, effect: &Effect, answer: Answer, stamp: &Stamp<'_>) {
        let Answer::Completed(outcome) = answer else { return };
        let Some(row) = self.journal.rows.get(&effect.id) else { return };
        if row.status == EffectStatus::Invoking {
            self.complete(turn, row.clone(), outcome, Keep::Outcomes, stamp);
        }
    }

    fn new_row(&self, turn: &TurnId, effect: &Effect) -> EffectRow {
        let tool = match &effect.request {
            EffectRequest::Model(_) => None,
            EffectRequest::Tool(tool) => Some(EffectTool {
                call_id: tool.call_id.clone(),
                name: tool.tool_name.clone(),
                capability_id: tool.capability_id.clone(),
            }),
        };
        EffectRow {
            id: effect.id.clone(),
            session_id: self.change.session.id.clone(),
            turn_id: turn.clone(),
            segment: self.change.session.segment,
            kind: effect.request.kind(),
            invocation_id: effect.invocation_id.clone(),
            tool,
            request_hash: effect.request_hash.clone(),
            status: EffectStatus::Invoking,
            outcome: None,
            error: None,
        }
    }

    /// The settle table (engine b.4).
    fn settle(&mut self, turn: &TurnId, end: &StepEnd, edits: &[Edit], stamp: &Stamp<'_>) {
        for edit in edits {
            self.change.event(Source::Loop, Some(turn.clone()), Payload::TranscriptUpdated(edit.clone()), stamp);
        }
        let session = &mut self.change.session;
        session.owner = None;
        let (status, payload) = match end {
            StepEnd::Uncertain => {
                session.status = Status::Uncertain;
                return;
            }
            StepEnd::Completed { output } => (Status::Completed, Payload::TurnCompleted { output: output.clone() }),
            StepEnd::Failed { code, message } => {
                session.error = Some(message.clone());
                (Status::Failed, Payload::TurnFailed { code: code.clone(), message: message.clone() })
            }
        };
        session.status = status;
        session.active_turn_id = None;
        session.last_turn_id = Some(turn.clone());
        session.input_seq = None;
        session.turn_manifest_hash = None;
        self.change.event(Source::Loop, Some(turn.clone()), payload, stamp);
        self.slim_turn(turn);
    }

    /// Drops what earlier steps kept for a replay; this step's own outcomes were never kept.
    fn slim_turn(&mut self, turn: &TurnId) {
        let recorded_now = self.change.effects.iter().filter(|effect| matches!(effect, EffectChange::Complete { .. }));
        let completed = self.journal.rows.values().filter(|row| row.status == EffectStatus::Completed);
        if completed.count() > recorded_now.count() {
            self.change.effects.push(EffectChange::SlimTurn { turn_id: turn.clone() });
        }
    }
}

/// The event that the first recording of an outcome writes.
fn outcome_payload(row: &EffectRow, outcome: EffectOutcome) -> Payload {
    let invocation_id = row.invocation_id.clone();
    match (outcome, &row.tool) {
        (EffectOutcome::Model(ModelOutcome::Completed(candidate)), _) => {
            Payload::MessageAssistant { invocation_id, candidate }
        }
        (EffectOutcome::Model(ModelOutcome::Failed(failure)), _) => Payload::ModelFailed { invocation_id, failure },
        (EffectOutcome::Tool(outcome), Some(tool)) => Payload::ToolCompleted {
            call_id: tool.call_id.clone(),
            invocation_id,
            capability_id: tool.capability_id.clone(),
            tool_name: tool.name.clone(),
            outcome,
        },
        (EffectOutcome::Tool(_), None) => Payload::EffectUncertain {
            effect_id: row.id.clone(),
            message: "the journal does not name the tool of this outcome".to_owned(),
        },
    }
}

fn answer_of(row: &EffectRow) -> Answer {
    match (row.status, &row.outcome) {
        (EffectStatus::Completed, Some(outcome)) => Answer::Completed(outcome.clone()),
        (EffectStatus::Invoking, _) if row.may_run_again() => Answer::Execute,
        (
            EffectStatus::Completed
            | EffectStatus::Invoking
            | EffectStatus::Uncertain
            | EffectStatus::Queued
            | EffectStatus::Pending
            | EffectStatus::Cancelled,
            _,
        ) => Answer::Uncertain,
    }
}

fn answer_of_new(effect: &Effect) -> Answer {
    match &effect.request {
        EffectRequest::Model(_) => Answer::Execute,
        EffectRequest::Tool(tool) => match tool.refusal() {
            Some(refusal) => Answer::Completed(EffectOutcome::Tool(refusal)),
            None => Answer::Execute,
        },
    }
}
