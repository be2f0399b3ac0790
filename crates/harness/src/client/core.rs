//! Core as a run sees it over a channel: one request for each outcome, each wanted effect, and the output.

use nylorun_domain::effect::{Effect, EffectOutcome, Intent};
use nylorun_domain::workspace::WorkspaceEvent;
use nylorun_ports::BoxFuture;
use nylorun_ports::models::Delta;
use nylorun_ports::run::{CoreError, EffectReport, EffectResult, IntentAnswer, Next, RunCore, TurnOutput};
use nylorun_wire::harness::effect::{EffectIntent, EffectScope, IntentRequested, RequestHash};
use nylorun_wire::harness::event::EventReported;
use nylorun_wire::harness::outcome::{Became, IntentReply, OutcomeReported};
use nylorun_wire::harness::output::{RunOutput, RunResult};
use nylorun_wire::harness::shape::encode;

use crate::channel::Channel;
use crate::refusal::from_api;

/// The runtime's side of one run, at the other end of a channel.
pub(super) struct ChannelCore {
    channel: Channel,
    run_id: String,
    scope: EffectScope,
}

impl ChannelCore {
    pub(super) fn new(channel: Channel, run_id: String, scope: EffectScope) -> Self {
        Self { channel, run_id, scope }
    }

    /// A step, request by request. Outcomes go before what follows from them, so that the journal and the record are
    /// those of the same step by reference.
    async fn step(&self, reports: Vec<EffectReport>, next: Next) -> Result<Vec<IntentAnswer>, CoreError> {
        for report in reports {
            self.report(report).await?;
        }
        let mut answers = Vec::new();
        match next {
            Next::Nothing => {}
            Next::Intents(intents) => {
                for intent in intents {
                    answers.push(self.intend(&intent).await?);
                }
            }
            Next::Output(output) => self.settle(output).await?,
        }
        Ok(answers)
    }

    async fn report(&self, report: EffectReport) -> Result<(), CoreError> {
        let EffectReport { effect_id, result, events, mut record } = report;
        // The record goes with the last change of state, which is what it says.
        let is_state = |event: &WorkspaceEvent| matches!(event, WorkspaceEvent::State { .. });
        let last = events.iter().rposition(is_state);
        for (at, event) in events.into_iter().enumerate() {
            let reported = EventReported {
                run_id: Some(self.run_id.clone()),
                session_id: self.scope.session_id.clone(),
                turn_id: Some(self.scope.turn_id.clone()),
                event,
                record: if Some(at) == last { record.take() } else { None },
            };
            self.channel.call(&reported).await.map_err(|error| from_api(error, Some(&effect_id)))?;
        }
        let became = match result {
            EffectResult::Value(outcome) => Became::Value(outcome),
            EffectResult::Lost { message } => Became::Error(message),
        };
        let reported = OutcomeReported { run_id: self.run_id.clone(), effect_id, became };
        self.channel.call(&reported).await.map(drop).map_err(|error| from_api(error, Some(&reported.effect_id)))
    }

    async fn intend(&self, intent: &Intent) -> Result<IntentAnswer, CoreError> {
        let wanted = IntentRequested {
            run_id: self.run_id.clone(),
            effect: EffectIntent::of(intent, &self.scope),
            request_hash: RequestHash::from_trusted(intent.request_hash.as_str()),
        };
        match self.channel.call(&wanted).await.map_err(|error| from_api(error, Some(&intent.id)))? {
            IntentReply::Execute(_) => Ok(IntentAnswer::Execute),
            IntentReply::Completed(outcome) => Ok(match *outcome {
                EffectOutcome::Steer { inputs, .. } => IntentAnswer::Steered(inputs),
                outcome @ (EffectOutcome::Model(_)
                | EffectOutcome::Summary { .. }
                | EffectOutcome::Tool(_)
                | EffectOutcome::Asked { .. }) => IntentAnswer::Completed(outcome),
            }),
            IntentReply::Uncertain => Ok(IntentAnswer::Uncertain),
            IntentReply::Pending => {
                Err(CoreError::Unavailable(format!("effect {} is pending, and nothing of this turn can be", intent.id)))
            }
        }
    }

    async fn settle(&self, output: TurnOutput) -> Result<(), CoreError> {
        let (method, output) = RunOutput::of(&self.run_id, RunResult::Output(output));
        let settled = self.channel.request(method.as_str(), encode(&output)).await;
        settled.map(drop).map_err(|error| from_api(error, None))
    }
}

impl RunCore for ChannelCore {
    fn commit(&self, reports: Vec<EffectReport>, next: Next) -> BoxFuture<'_, Result<Vec<IntentAnswer>, CoreError>> {
        Box::pin(self.step(reports, next))
    }

    /// The API has no message for pieces of an answer: they end here.
    fn delta(&self, _effect: &Effect, _delta: Delta) {}
}
