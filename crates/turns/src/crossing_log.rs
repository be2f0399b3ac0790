//! Crossings of gates, kept in the store.

use nylorun_domain::id::EffectId;
use nylorun_domain::time::Millis;
use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::BoxFuture;
use nylorun_ports::crossings::{Crossed, Crossing, Crossings, CrossingsError};
use nylorun_store::{Store, TURN_NOT_HELD, WriteError};
use tokio::sync::Mutex;

use crate::clock::now;
use crate::sweep::Maintenance;

/// How long the crossings of an ended turn are kept (engine e.2).
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;
/// How often they are pruned.
const PRUNE_EVERY_MS: i64 = 60 * 60 * 1000;

/// Keeps crossings in the store.
#[derive(Debug)]
pub struct StoreCrossings {
    store: Store,
    pruned_at: Mutex<Millis>,
}

impl StoreCrossings {
    /// Crossings in this store.
    pub fn new(store: Store) -> Self {
        Self { store, pruned_at: Mutex::new(Millis(0)) }
    }

    async fn begin_or_look(&self, crossing: &Crossing) -> Result<Crossed, CrossingsError> {
        let Crossing { effect_id, request_hash, session_id, turn_id, epoch } = crossing;
        let begun = self.store.crossing_begin(effect_id, request_hash, (session_id, turn_id, *epoch), now()).await;
        match begun {
            Ok(()) => Ok(Crossed::Begun),
            Err(WriteError::Guard(TURN_NOT_HELD)) => Ok(Crossed::NotHeld),
            Err(WriteError::Duplicate { .. }) => self.look(crossing).await,
            // Nothing is sent when the answer to the commit is lost: the row may stand there, open.
            Err(error @ (WriteError::Guard(_) | WriteError::Unknown(_) | WriteError::Db(_))) => Err(unavailable(error)),
        }
    }

    async fn look(&self, crossing: &Crossing) -> Result<Crossed, CrossingsError> {
        let known = self.store.crossing_get(&crossing.effect_id).await.map_err(unavailable)?;
        Ok(match known {
            Some(row) if row.request_hash != crossing.request_hash => Crossed::OtherRequest,
            Some(row) => row.answer.map_or(Crossed::Open, Crossed::Answered),
            // It was there a moment ago: whoever removed it decides what happens next.
            None => Crossed::Open,
        })
    }
}

fn unavailable(error: impl std::fmt::Display) -> CrossingsError {
    CrossingsError(error.to_string())
}

impl Crossings for StoreCrossings {
    fn begin<'a>(&'a self, crossing: &'a Crossing) -> BoxFuture<'a, Result<Crossed, CrossingsError>> {
        Box::pin(self.begin_or_look(crossing))
    }

    fn settle<'a>(
        &'a self,
        effect_id: &'a EffectId,
        answer: &'a ToolOutcome,
    ) -> BoxFuture<'a, Result<(), CrossingsError>> {
        Box::pin(async move { self.store.crossing_settle(effect_id, answer, now()).await.map_err(unavailable) })
    }
}

impl Maintenance for StoreCrossings {
    fn sweep(&self, now: Millis) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut pruned_at = self.pruned_at.lock().await;
            if now < pruned_at.plus(PRUNE_EVERY_MS) {
                return;
            }
            match self.store.crossing_prune(now.plus(-KEPT_MS)).await {
                Ok(()) => *pruned_at = now,
                Err(error) => tracing::warn!(%error, "old crossings could not be dropped"),
            }
        })
    }
}
