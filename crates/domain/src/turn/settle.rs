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

/// Where the turn of an effect stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// It waits for the effect.
    Yes,
    /// It has ended: whatever became of the effect, nothing goes on.
    No,
}

/// Settles `effect`. `others` says how many other effects of its turn are still uncertain.
///
/// An effect of an ended turn can be settled too, so that it is known and not counted any more. That is said in the
/// record and nothing else follows: the turn has no next step that could see an outcome.
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
    let waits = match &session.active_turn_id {
        Some(active) if *active == effect.turn_id => Waits::Yes,
        Some(_) | None => Waits::No,
    };
    let outcome = outcome_of(effect, waits, settle.outcome)?;
    let mut change = SessionChange::of(session);
    let payload = Payload::EffectSettled {
        request_id: settle.head.request_id.clone(),
        idempotency_key: settle.head.idempotency_key.clone(),
        effect_id: effect.id.clone(),
        outcome: outcome.clone().map(EffectOutcome::Tool),
    };
    let seq = change.event(Source::Api, Some(effect.turn_id.clone()), payload, stamp);
    let turn_id = match waits {
        Waits::Yes => Some(effect.turn_id.clone()),
        Waits::No => None,
    };
    change.command = Some(settle.head.record(turn_id, seq, stamp.now));
    match (waits, outcome) {
        (_, None) => change.effects.push(EffectChange::Forget { id: effect.id.clone() }),
        (Waits::Yes, Some(outcome)) => complete(&mut change, effect, outcome, stamp),
        (Waits::No, Some(_)) => change.effects.push(EffectChange::Complete { id: effect.id.clone(), outcome: None }),
    }
    if waits == Waits::Yes && others == 0 && session.status == Status::Uncertain {
        change.session.status = Status::Runnable;
        change.wake = wake(session, WakeReason::Settle, stamp);
    }
    Ok(change)
}

/// The turn goes on with this outcome as with one that the tool gave.
fn complete(change: &mut SessionChange, effect: &EffectRow, outcome: ToolOutcome, stamp: &Stamp<'_>) {
    let kept = Some(EffectOutcome::Tool(outcome.clone()));
    change.effects.push(EffectChange::Complete { id: effect.id.clone(), outcome: kept });
    let Some(tool) = &effect.tool else { return };
    let payload = Payload::ToolCompleted {
        call_id: tool.call_id.clone(),
        invocation_id: effect.invocation_id.clone(),
        capability_id: tool.capability_id.clone(),
        tool_name: tool.name.clone(),
        outcome,
    };
    change.event(Source::Loop, Some(effect.turn_id.clone()), payload, stamp);
}

/// `None`: run it again.
fn outcome_of(effect: &EffectRow, waits: Waits, said: SettleOutcome) -> Result<Option<ToolOutcome>, Refusal> {
    match (waits, effect.kind, said) {
        (Waits::Yes, _, SettleOutcome::Retry) => Ok(None),
        (Waits::No, _, SettleOutcome::Retry) => Err(Refusal::TurnEnded(effect.id.clone())),
        // Nothing goes on with it, so it is no answer that a model would have to have given.
        (Waits::No, _, SettleOutcome::Value(output)) | (Waits::Yes, EffectKind::Tool, SettleOutcome::Value(output)) => {
            Ok(Some(ToolOutcome::Completed { output }))
        }
        (Waits::No, _, SettleOutcome::Error(message))
        | (Waits::Yes, EffectKind::Tool, SettleOutcome::Error(message)) => {
            Ok(Some(ToolOutcome::failed("tool.settled", message)))
        }
        (Waits::Yes, EffectKind::Model | EffectKind::Delegation | EffectKind::Agent | EffectKind::Steer, _) => {
            Err(Refusal::OnlyRetry(effect.id.clone()))
        }
    }
}
