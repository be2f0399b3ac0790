//! The workspace manager's log, kept in the store: its records, and its events in the owning session's record.

use nylorun_domain::change::SessionChange;
use nylorun_domain::event::{Payload, Source};
use nylorun_domain::time::Millis;
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceRecord};
use nylorun_ports::BoxFuture;
use nylorun_ports::workspaces::{LogError, RunClaim, WorkspaceChange, WorkspaceLog};

use crate::clock::{now, stamp};
use crate::committer::{Committer, Updated};

/// Keeps workspace records in the store.
#[derive(Clone, Debug)]
pub struct StoreWorkspaceLog(Committer);

impl StoreWorkspaceLog {
    /// A log that commits through `committer`.
    pub fn new(committer: Committer) -> Self {
        Self(committer)
    }

    async fn write_change(&self, change: WorkspaceChange) -> Result<(), LogError> {
        let (own, sharer) = match &change.claim {
            Some(claim) if claim.session_id == change.session_id => (Some(claim), None),
            claim => (None, claim.as_ref()),
        };
        if let Some(claim) = sharer {
            self.check_sharer(claim).await?;
        }
        let updated = self.0.update(&change.session_id, |session| {
            // A run that lost its session must not write to it any more.
            if own.is_some_and(|claim| claim.epoch < session.epoch) {
                return Err(LogError::OwnershipLost);
            }
            let mut update = SessionChange::of(session);
            let payload = Payload::Workspace(change.event.clone());
            // It is true of the workspace whatever became of the turn, but a turn's end is the last that it says.
            // The turn of a session that shares the workspace is none of this session's.
            let turn_id = own.map(|claim| claim.turn_id.clone());
            let turn_id = turn_id.filter(|turn| session.active_turn_id.as_ref() == Some(turn));
            update.event(Source::Loop, turn_id, payload, &stamp());
            update.workspaces.extend(change.record.clone());
            Ok(Some(update))
        });
        match updated.await.map_err(unavailable)? {
            Updated::Committed(_) | Updated::Unchanged(_) | Updated::Missing => Ok(()),
            Updated::Refused(error) => Err(error),
        }
    }

    /// Whether a run still holds its session, which shares the workspace. Its epoch fences the workspace as it fences
    /// the session.
    async fn check_sharer(&self, claim: &RunClaim) -> Result<(), LogError> {
        let session = self.0.store().session_get(&claim.session_id).await.map_err(unavailable)?;
        match session {
            Some(session) if session.epoch <= claim.epoch => Ok(()),
            Some(_) | None => Err(LogError::OwnershipLost),
        }
    }
}

fn unavailable(error: impl std::fmt::Display) -> LogError {
    LogError::Unavailable(error.to_string())
}

impl WorkspaceLog for StoreWorkspaceLog {
    fn record(&self, key: &WorkspaceKey) -> BoxFuture<'_, Result<Option<WorkspaceRecord>, LogError>> {
        let key = key.clone();
        Box::pin(async move { self.0.store().workspace_get(&key).await.map_err(unavailable) })
    }

    fn records(&self) -> BoxFuture<'_, Result<Vec<WorkspaceRecord>, LogError>> {
        Box::pin(async move { self.0.store().workspace_list().await.map_err(unavailable) })
    }

    fn write(&self, change: WorkspaceChange) -> BoxFuture<'_, Result<(), LogError>> {
        Box::pin(self.write_change(change))
    }

    fn forget(&self, key: &WorkspaceKey) -> BoxFuture<'_, Result<(), LogError>> {
        let key = key.clone();
        Box::pin(async move { self.0.store().workspace_delete(&key).await.map_err(unavailable) })
    }

    fn owner_exists(&self, record: &WorkspaceRecord) -> BoxFuture<'_, Result<bool, LogError>> {
        let session = record.session_id.clone();
        Box::pin(async move {
            let session = self.0.store().session_get(&session).await.map_err(unavailable)?;
            Ok(session.is_some())
        })
    }

    fn now(&self) -> Millis {
        now()
    }
}
