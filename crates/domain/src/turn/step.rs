//! One step of a turn: outcomes in hand and what comes next, as one change (ARCHITECTURE.md, Where one message goes).

use std::collections::HashMap;

use super::doubt::doubt;
use crate::change::{EffectChange, EffectRow, EffectTool, SessionChange, Stamp};
use crate::checkpoint::Wait;
use crate::effect::{EffectOutcome, EffectStatus, Intent, IntentRequest};
use crate::event::{Payload, Source};
use crate::id::{EffectId, TurnId};
use crate::model::{ModelFailureCode, ModelOutcome};
use crate::queue::QueuedMessage;
use crate::segment::{EffectReport, EffectResult, IntentAnswer, Next, TurnEnd};
use crate::usage::{Completed, Repetition, UsageRow};

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

    /// The same run's journal, read again: somebody may have settled uncertain effects meanwhile.
    #[must_use]
    pub fn refreshed(self, rows: Vec<EffectRow>) -> Self {
        Self { repeated: self.repeated, ..Self::of(rows) }
    }

    /// The row of this effect.
    pub(super) fn row(&self, id: &EffectId) -> Option<&EffectRow> {
        self.rows.get(id)
    }

    /// Takes note of a row.
    pub(super) fn put(&mut self, row: EffectRow) {
        self.rows.insert(row.id.clone(), row);
    }

    /// Its rows, in no order.
    pub fn rows(&self) -> impl Iterator<Item = &EffectRow> {
        self.rows.values()
    }
}

/// What others left for the turn while it ran, as read under the row that the step is decided upon.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// The open questions of the turn, with the answers that are not used yet. Only a pause needs them.
    pub waits: Vec<Wait>,
    /// The messages that wait, in order. Only a model call and the end of a turn need them.
    pub queued: Vec<QueuedMessage>,
}

/// A step that was decided.
#[derive(Clone, Debug)]
pub struct Step {
    /// What to commit.
    pub change: SessionChange,
    /// The journal after the commit.
    pub journal: Journal,
    /// For each wanted effect, whether it is to run, or what it gave.
    pub answers: Vec<IntentAnswer>,
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

/// Decides one step of `turn` upon `change`, which begins as the session's row, or as its take that is not yet
/// committed.
pub fn step(
    change: SessionChange,
    turn: &TurnId,
    journal: &Journal,
    reports: Vec<EffectReport>,
    next: &Next,
    beside: &Beside,
    stamp: &Stamp<'_>,
) -> Result<Step, StepError> {
    if change.session.active_turn_id.as_ref() != Some(turn) {
        return Err(StepError::TurnCancelled);
    }
    let keep = match next {
        Next::Nothing | Next::Intents(_) => Keep::Outcomes,
        Next::Output(output) => match output.end {
            TurnEnd::Uncertain => Keep::Outcomes,
            TurnEnd::Completed { .. } | TurnEnd::Failed { .. } | TurnEnd::Yielded { .. } | TurnEnd::Paused { .. } => {
                Keep::Nothing
            }
        },
    };
    let mut step = Step { change, journal: journal.clone(), answers: Vec::new() };
    for report in reports {
        step.record(turn, report, keep, stamp)?;
    }
    match next {
        Next::Nothing => {}
        Next::Intents(effects) => {
            if !step.steer(turn, effects, beside, stamp) {
                step.intend(turn, effects, stamp)?;
            }
        }
        Next::Output(output) => step.settle(turn, output, beside, stamp),
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
    fn record(&mut self, turn: &TurnId, report: EffectReport, keep: Keep, stamp: &Stamp<'_>) -> Result<(), StepError> {
        let Some(row) = self.journal.rows.get(&report.effect_id).cloned() else {
            return Err(StepError::UnknownEffect(report.effect_id));
        };
        for event in report.events {
            self.change.event(Source::Loop, Some(turn.clone()), Payload::Workspace(event), stamp);
        }
        self.change.workspaces.extend(report.record);
        match report.result {
            EffectResult::Value(outcome) => self.complete(turn, row, outcome, keep, stamp),
            EffectResult::Lost { message } => {
                doubt(&mut self.change, &row, &message, stamp);
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
        if let EffectOutcome::Model(model) | EffectOutcome::Summary { outcome: model, .. } = &outcome
            && was_made(model)
        {
            let usage = self.usage(turn, &row, model, stamp);
            self.change.usage.push(usage);
        }
        if let Some(payload) = outcome_payload(&row, outcome.clone()) {
            self.change.event(Source::Loop, Some(turn.clone()), payload, stamp);
        }
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

    fn intend(&mut self, turn: &TurnId, effects: &[Intent], stamp: &Stamp<'_>) -> Result<(), StepError> {
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
            if answer == IntentAnswer::Execute && !inserted.iter().any(|row| row.id == effect.id) {
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
    fn complete_unavailable(&mut self, turn: &TurnId, effect: &Intent, answer: IntentAnswer, stamp: &Stamp<'_>) {
        let IntentAnswer::Completed(outcome) = answer else { return };
        let Some(row) = self.journal.rows.get(&effect.id) else { return };
        if row.status == EffectStatus::Invoking {
            self.complete(turn, row.clone(), outcome, Keep::Outcomes, stamp);
        }
    }

    fn new_row(&self, turn: &TurnId, effect: &Intent) -> EffectRow {
        let tool = match &effect.request {
            IntentRequest::Model | IntentRequest::Summary => None,
            IntentRequest::Tool(tool) => Some(EffectTool {
                call_id: tool.call_id.clone(),
                name: tool.tool_name.clone(),
                capability_id: tool.capability_id.clone(),
                runs_at: tool.target.runs_at(),
                subject: tool.subject_in_doubt(),
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
}

/// Whether a call was made at all: one that a budget refused is none, and stands in no bill.
fn was_made(outcome: &ModelOutcome) -> bool {
    match outcome {
        ModelOutcome::Completed(_) => true,
        ModelOutcome::Failed(failure) => failure.code != ModelFailureCode::BudgetExhausted,
    }
}

/// The event that the first recording of an outcome writes; none for a part of a summary.
fn outcome_payload(row: &EffectRow, outcome: EffectOutcome) -> Option<Payload> {
    let invocation_id = row.invocation_id.clone();
    Some(match (outcome, &row.tool) {
        (EffectOutcome::Model(ModelOutcome::Completed(candidate)), _) => {
            Payload::MessageAssistant { invocation_id, candidate }
        }
        (
            EffectOutcome::Model(ModelOutcome::Failed(failure))
            | EffectOutcome::Summary { outcome: ModelOutcome::Failed(failure), .. },
            _,
        ) => Payload::ModelFailed { invocation_id, failure },
        (EffectOutcome::Summary { outcome: ModelOutcome::Completed(_), compacted }, _) => {
            Payload::ContextCompacted { invocation_id, compacted: compacted? }
        }
        // The turn's pause says what is asked.
        (EffectOutcome::Asked { .. }, _) => return None,
        (EffectOutcome::Tool(outcome), Some(tool)) => Payload::ToolCompleted {
            call_id: tool.call_id.clone(),
            invocation_id,
            capability_id: tool.capability_id.clone(),
            tool_name: tool.name.clone(),
            outcome,
        },
        (EffectOutcome::Tool(_), None) | (EffectOutcome::Steer { .. }, _) => Payload::EffectUncertain {
            effect_id: row.id.clone(),
            invocation_id,
            tool: None,
            message: "the journal does not name the tool of this outcome".to_owned(),
        },
    })
}

fn answer_of(row: &EffectRow) -> IntentAnswer {
    match (row.status, &row.outcome) {
        (EffectStatus::Completed, Some(outcome)) => IntentAnswer::Completed(outcome.clone()),
        (EffectStatus::Invoking, _) if row.may_run_again() => IntentAnswer::Execute,
        (
            EffectStatus::Completed
            | EffectStatus::Invoking
            | EffectStatus::Uncertain
            | EffectStatus::Queued
            | EffectStatus::Pending
            | EffectStatus::Cancelled,
            _,
        ) => IntentAnswer::Uncertain,
    }
}

fn answer_of_new(effect: &Intent) -> IntentAnswer {
    match &effect.request {
        IntentRequest::Model | IntentRequest::Summary => IntentAnswer::Execute,
        IntentRequest::Tool(tool) => match tool.refusal() {
            Some(refusal) => IntentAnswer::Completed(EffectOutcome::Tool(refusal)),
            None => IntentAnswer::Execute,
        },
    }
}
