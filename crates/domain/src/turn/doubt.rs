//! Effects without an outcome: which of them may have happened, and how the journal and the record say so.

use crate::change::{EffectChange, EffectRow, SessionChange, Stamp};
use crate::effect::{EffectKind, EffectStatus, RunsAt, may_have_changed, may_run_again};
use crate::event::{Payload, Source};
use crate::usage::{Completed, Repetition, UsageRow};

impl EffectRow {
    /// Whether this effect may simply run again when its answer was lost.
    pub fn may_run_again(&self) -> bool {
        may_run_again(self.kind, self.place())
    }

    /// Whether this effect, should it have run, may have changed something outside.
    pub fn may_have_changed(&self) -> bool {
        may_have_changed(self.kind, self.place())
    }

    fn place(&self) -> Option<(RunsAt, &str)> {
        self.tool.as_ref().map(|tool| (tool.runs_at, tool.name.as_str()))
    }
}

/// Marks an effect of which nobody knows whether it happened, and says which it is.
pub(super) fn doubt(change: &mut SessionChange, effect: &EffectRow, message: &str, stamp: &Stamp<'_>) {
    change.effects.push(EffectChange::Uncertain { id: effect.id.clone(), error: message.to_owned() });
    let payload = Payload::EffectUncertain {
        effect_id: effect.id.clone(),
        invocation_id: effect.invocation_id.clone(),
        tool: effect.tool.clone(),
        message: message.to_owned(),
    };
    change.event(Source::Loop, Some(effect.turn_id.clone()), payload, stamp);
}

/// Closes the journal of a turn that ends while effects are in flight: what may have changed something outside is
/// uncertain, all else is given up.
///
/// An effect that only reads cannot have done harm, and nothing will ask for it any more: to call it uncertain would
/// make somebody look for what is not there.
pub(super) fn abandon<'a>(
    change: &mut SessionChange,
    effects: impl IntoIterator<Item = &'a EffectRow>,
    message: &str,
    stamp: &Stamp<'_>,
) {
    for effect in effects {
        match effect.status {
            EffectStatus::Invoking if effect.may_have_changed() => doubt(change, effect, message, stamp),
            EffectStatus::Invoking | EffectStatus::Queued | EffectStatus::Pending => {
                change.effects.push(EffectChange::Cancel { id: effect.id.clone() });
                let row = cut_off_call(change, effect, stamp);
                change.usage.extend(row);
            }
            EffectStatus::Completed | EffectStatus::Uncertain | EffectStatus::Cancelled => {}
        }
    }
}

/// The ledger's row of a model call that its turn's end cut off: it may have been paid for, and nobody knows how much.
fn cut_off_call(change: &SessionChange, effect: &EffectRow, stamp: &Stamp<'_>) -> Option<UsageRow> {
    let was_sent = effect.kind == EffectKind::Model && effect.status == EffectStatus::Invoking;
    was_sent.then(|| UsageRow {
        id: (stamp.uuid)(),
        effect_id: effect.id.clone(),
        session_id: effect.session_id.clone(),
        turn_id: effect.turn_id.clone(),
        agent_id: change.session.agent_id.clone(),
        model: None,
        completed: Completed::Failed,
        repetition: Repetition::First,
        usage: None,
        at: stamp.now,
    })
}
