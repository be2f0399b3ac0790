//! Settling an uncertain effect: somebody says what became of it, and the turn goes on (decisions, Settling).

use super::message::wake;
use super::{CommandHead, Refusal};
use crate::change::{EffectChange, EffectRow, SessionChange, Stamp, WakeReason};
use crate::effect::{EffectKind, EffectOutcome, EffectStatus};
use crate::event::{Payload, Source};
use crate::json::Json;
use crate::session::{Session, Status};
use crate::tool::ToolOutcome;

/// A request to settle one effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettleEffect {
    /// What every command carries.
    pub head: CommandHead,
    /// What became of the effect.
    pub outcome: SettleOutcome,
}

/// What somebody says became of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettleOutcome {
    /// It gave this.
    Value(Json),
    /// It failed, for this reason.
    Error(String),
    /// It did not happen, or may happen twice: run it again.
    Retry,
}

/// Settles `effect`. `others` says how many other effects of its turn are still uncertain.
pub fn settle_effect(
    session: &Session,
    effect: &EffectRow,
    others: usize,
    settle: SettleEffect,
    stamp: &Stamp<'_>,
) -> Result<SessionChange, Refusal> {
    if effect.status != EffectStatus::Uncertain {
        return Err(Refusal::NotUncertain { id: effect.id.clone(), status: effect.status.as_str() });
    }
    let is_active = session.active_turn_id.as_ref() == Some(&effect.turn_id);
    if settle.outcome == SettleOutcome::Retry && !is_active {
        return Err(Refusal::TurnEnded(effect.id.clone()));
    }
    let outcome = outcome_of(effect, settle.outcome)?;
    let mut change = SessionChange::of(session);
    let turn_id = Some(effect.turn_id.clone());
    let payload = Payload::EffectSettled {
        request_id: settle.head.request_id.clone(),
        idempotency_key: settle.head.idempotency_key.clone(),
        effect_id: effect.id.clone(),
        outcome: outcome.clone().map(EffectOutcome::Tool),
    };
    let seq = change.event(Source::Api, turn_id.clone(), payload, stamp);
    change.command = Some(settle.head.record(is_active.then(|| effect.turn_id.clone()), seq, stamp.now));
    match outcome {
        Some(outcome) => {
            let kept = is_active.then(|| EffectOutcome::Tool(outcome.clone()));
            change.effects.push(EffectChange::Complete { id: effect.id.clone(), outcome: kept });
            if let Some(tool) = &effect.tool {
                let payload = Payload::ToolCompleted {
                    call_id: tool.call_id.clone(),
                    invocation_id: effect.invocation_id.clone(),
                    capability_id: tool.capability_id.clone(),
                    tool_name: tool.name.clone(),
                    outcome,
                };
                change.event(Source::Loop, turn_id, payload, stamp);
            }
        }
        None => change.effects.push(EffectChange::Forget { id: effect.id.clone() }),
    }
    if is_active && others == 0 && session.status == Status::Uncertain {
        change.session.status = Status::Runnable;
        change.wake = wake(session, WakeReason::Settle, stamp);
    }
    Ok(change)
}

/// `None`: run it again.
fn outcome_of(effect: &EffectRow, said: SettleOutcome) -> Result<Option<ToolOutcome>, Refusal> {
    match (effect.kind, said) {
        (_, SettleOutcome::Retry) => Ok(None),
        (EffectKind::Tool, SettleOutcome::Value(output)) => Ok(Some(ToolOutcome::Completed { output })),
        (EffectKind::Tool, SettleOutcome::Error(message)) => Ok(Some(ToolOutcome::failed("tool.settled", message))),
        (EffectKind::Model | EffectKind::Delegation | EffectKind::Agent, _) => {
            Err(Refusal::OnlyRetry(effect.id.clone()))
        }
    }
}
