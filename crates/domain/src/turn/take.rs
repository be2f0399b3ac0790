//! Taking a session: lease, epoch, and what the owner before left running (engine b.4; decisions, Takeover).

use super::doubt::doubt;
use crate::change::{EffectRow, SessionChange, Stamp, WakeChange};
use crate::effect::EffectStatus;
use crate::id::WorkerId;
use crate::session::{Session, Status};

/// Who holds a session, as far as its taker can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody, or somebody who is known to be gone.
    Gone,
    /// Somebody who is alive.
    Alive,
}

/// What a take comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// Nothing is to be advanced.
    Nothing,
    /// Somebody else advances it.
    Busy,
    /// It is taken; the change is to be committed with the first intents.
    Taken(Box<SessionChange>),
    /// What was running may or may not have happened: the turn waits to be settled.
    Uncertain(Box<SessionChange>),
}

/// Decides whether `worker` may advance the session. `effects` are the rows of its active turn.
pub fn take(session: &Session, owner: Owner, effects: &[EffectRow], worker: &WorkerId, stamp: &Stamp<'_>) -> Take {
    match session.status {
        Status::Runnable | Status::Running => {}
        Status::Idle
        | Status::Waiting
        | Status::Paused
        | Status::Uncertain
        | Status::Completed
        | Status::Failed
        | Status::Cancelled => return Take::Nothing,
    }
    match owner {
        Owner::Alive => return Take::Busy,
        Owner::Gone => {}
    }
    let mut change = SessionChange::of(session);
    change.session.epoch += 1;
    change.wake = WakeChange::Clear;
    if mark_uncertain(&mut change, effects, stamp) {
        change.session.status = Status::Uncertain;
        change.session.owner = None;
        return Take::Uncertain(Box::new(change));
    }
    change.session.status = Status::Running;
    change.session.owner = Some(worker.clone());
    Take::Taken(Box::new(change))
}

/// Gives a session back without settling anything: the process stops. What was still running and may not run again is
/// uncertain.
pub fn release(session: &Session, effects: &[EffectRow], stamp: &Stamp<'_>) -> SessionChange {
    let mut change = SessionChange::of(session);
    change.session.owner = None;
    change.session.status =
        if mark_uncertain(&mut change, effects, stamp) { Status::Uncertain } else { Status::Runnable };
    change
}

/// Marks what was running and may not simply run again. Answers whether the turn has an uncertain effect.
fn mark_uncertain(change: &mut SessionChange, effects: &[EffectRow], stamp: &Stamp<'_>) -> bool {
    const MESSAGE: &str = "the run that made it ended before its outcome was recorded";
    let mut uncertain = false;
    for effect in effects {
        match effect.status {
            EffectStatus::Uncertain => uncertain = true,
            EffectStatus::Invoking if !effect.may_run_again() => {
                uncertain = true;
                doubt(change, effect, MESSAGE, stamp);
            }
            EffectStatus::Invoking
            | EffectStatus::Queued
            | EffectStatus::Pending
            | EffectStatus::Completed
            | EffectStatus::Cancelled => {}
        }
    }
    uncertain
}
