//! What the sweep and the end of the process ask for: stop, settle records, reconcile, remove, close (environments 3,
//! rules 3-7).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nylorun_domain::time::Millis;
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceRecord, WorkspaceState};
use nylorun_ports::backends::{Backend, BackendError};
use nylorun_ports::workspaces::{LogError, WorkspaceChange};

use super::events::StateEvent;
use super::lanes::Lane;
use super::{Inner, Lifetime, Space, State, Visit, WorkspaceManager};

/// Why a workspace could not be removed. It may be tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoveError {
    /// The backend that holds it is not in this build.
    #[error("this build has no backend {0}")]
    NoBackend(String),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The records are not available.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl WorkspaceManager {
    /// Stops the workspaces that nobody calls and whose last use is at least their idle time before `now`. Files stay.
    pub async fn stop_idle(&self, now: Millis) {
        for space in self.0.held() {
            // Nobody there means also that nobody can come before the stop is done: it holds the lanes.
            let Some(visit) = self.0.enter_if_empty(&space.key) else { continue };
            let mut state = visit.space.state.lock().await;
            let idle_since = state.last_used.zip(state.idle_ms).map(|(used, idle_ms)| used.plus(idle_ms));
            if state.live.is_some() && idle_since.is_none_or(|at| at <= now) {
                self.0.stop(&space.key, &mut state).await;
            }
            drop(state);
            drop(visit);
            self.0.forget_if_unused(&space.key);
        }
    }

    /// Marks as stopped the records that say otherwise and whose compute this process does not hold.
    pub async fn after_restart(&self) {
        let records = match self.0.records().await {
            Ok(records) => records,
            Err(error) => return tracing::warn!(%error, "workspace records were not settled"),
        };
        for record in records.into_iter().filter(|record| record.state != WorkspaceState::Stopped) {
            // Somebody there opens it, or has opened it: never by force on what lives here.
            let Some(visit) = self.0.enter_if_empty(&record.key) else { continue };
            if visit.space.state.lock().await.live.is_none()
                && let Err(error) = self.0.record_stop(&record.key).await
            {
                tracing::warn!(key = record.key.as_str(), %error, "a workspace record was not settled");
            }
            drop(visit);
            self.0.forget_if_unused(&record.key);
        }
    }

    /// Once per process: removes workspaces whose owner is gone, and those without a record. Never for an ephemeral
    /// runtime.
    pub async fn reconcile(&self) {
        if self.0.lifetime == Lifetime::Ephemeral || self.0.reconciled.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Err(error) = self.0.reconcile().await {
            // Nothing is removed in doubt; the next sweep tries again.
            self.0.reconciled.store(false, Ordering::SeqCst);
            tracing::warn!(%error, "workspaces were not reconciled");
        }
    }

    /// Removes a workspace with its files and its record, after the calls that are queued on it.
    pub async fn remove(&self, key: &WorkspaceKey) -> Result<(), RemoveError> {
        let visit = self.0.enter(key, Lane::Alone);
        visit.turn().await;
        let removed = self.0.delete(&visit, None).await;
        drop(visit);
        self.0.forget_if_unused(key);
        removed
    }

    /// Ends: no new call starts, running ones get `grace` and are then killed. A durable workspace is stopped, an
    /// ephemeral one is deleted.
    pub async fn close(&self, grace: Duration) {
        self.0.closing.store(true, Ordering::SeqCst);
        // Calls that wait for a workspace to become free give up.
        self.0.left.notify_waiters();
        let drained = tokio::time::timeout(grace, self.0.drained()).await;
        if drained.is_err() {
            tracing::warn!("workspace calls still ran at the end of the grace period and are killed");
        }
        for space in self.0.held() {
            let mut state = space.state.lock().await;
            self.0.stop(&space.key, &mut state).await;
            drop(state);
            if self.0.lifetime == Lifetime::Ephemeral
                && let Err(error) = self.remove(&space.key).await
            {
                tracing::warn!(key = space.key.as_str(), %error, "an ephemeral workspace was left behind");
            }
        }
    }
}

impl Inner {
    pub(super) fn held(&self) -> Vec<Arc<Space>> {
        self.spaces().values().cloned().collect()
    }

    /// Waits until nobody visits any workspace.
    async fn drained(&self) {
        loop {
            let left = self.left.notified();
            tokio::pin!(left);
            left.as_mut().enable();
            if self.held().iter().all(|space| space.lanes.is_empty()) {
                return;
            }
            left.await;
        }
    }

    /// The records of this tenant's workspaces.
    async fn records(&self) -> Result<Vec<WorkspaceRecord>, LogError> {
        let mut records = self.log.records().await?;
        records.retain(|record| record.key.as_str().starts_with(&self.prefix));
        Ok(records)
    }

    /// Ends the compute, and says so.
    pub(super) async fn stop(&self, key: &WorkspaceKey, state: &mut State) {
        let Some(live) = state.live.take() else { return };
        live.handle.stop().await;
        if let Err(error) = self.record_stop(key).await {
            // The record still says that it runs; a later sweep settles it.
            tracing::warn!(key = key.as_str(), %error, "the stop of a workspace was not recorded");
        }
    }

    /// Marks the record as stopped, unless it is gone or says so.
    async fn record_stop(&self, key: &WorkspaceKey) -> Result<(), LogError> {
        let record = self.log.record(key).await?.filter(|record| record.state != WorkspaceState::Stopped);
        let Some(record) = record else { return Ok(()) };
        let isolation = self.backend(&record.backend).map(|backend| backend.isolation());
        let event = StateEvent {
            image: Some(record.image.clone()).filter(|image| !image.is_empty()),
            ..StateEvent::named(WorkspaceState::Stopped, &record.backend, isolation)
        };
        let session_id = record.session_id.clone();
        // A start that never came to an end leaves its times, which say so: see `has_run` in `open`.
        let never_ran = record.updated_at == record.created_at;
        let updated_at = if never_ran { record.updated_at } else { self.log.now().max(record.updated_at) };
        let record = WorkspaceRecord { state: WorkspaceState::Stopped, updated_at, ..record };
        self.log.write(WorkspaceChange { session_id, claim: None, event: event.into(), record: Some(record) }).await
    }

    fn backend(&self, name: &str) -> Option<&Arc<dyn Backend>> {
        self.backends.all().iter().find(|backend| backend.name() == name)
    }

    async fn reconcile(self: &Arc<Self>) -> Result<(), RemoveError> {
        let records = self.records().await?;
        // With no record ever made, nothing is probed or looked for.
        if records.is_empty() {
            return Ok(());
        }
        for record in &records {
            if !self.log.owner_exists(record).await? {
                self.remove_unless_live(&record.key, None).await?;
            }
        }
        let used: Vec<_> = self
            .backends
            .all()
            .iter()
            .filter(|backend| records.iter().any(|record| record.backend == backend.name()))
            .collect();
        for backend in used {
            for key in backend.list(&self.prefix).await? {
                // A backend that lists more than it was asked for must not lead to a removal.
                if key.as_str().starts_with(&self.prefix) && self.log.record(&key).await?.is_none() {
                    self.remove_unless_live(&key, Some(backend)).await?;
                }
            }
        }
        Ok(())
    }

    /// Removes a workspace that nobody here uses; `holder` holds it when there is no record to say so.
    async fn remove_unless_live(
        self: &Arc<Self>,
        key: &WorkspaceKey,
        holder: Option<&Arc<dyn Backend>>,
    ) -> Result<(), RemoveError> {
        let Some(visit) = self.enter_if_empty(key) else { return Ok(()) };
        let removed = if visit.space.state.lock().await.live.is_some() {
            Ok(())
        } else {
            tracing::info!(key = key.as_str(), "a workspace without an owner is removed");
            self.delete(&visit, holder).await
        };
        drop(visit);
        self.forget_if_unused(key);
        removed
    }

    /// Deletes compute, files and record, in this order: what is interrupted is found again by its record.
    async fn delete(&self, visit: &Visit, holder: Option<&Arc<dyn Backend>>) -> Result<(), RemoveError> {
        let key = &visit.space.key;
        let mut state = visit.space.state.lock().await;
        if let Some(live) = state.live.take() {
            live.handle.stop().await;
        }
        *state = State::default();
        let record = self.log.record(key).await?;
        let holder = match &record {
            Some(record) => {
                let named = self.backend(&record.backend);
                Some(named.ok_or_else(|| RemoveError::NoBackend(record.backend.clone()))?)
            }
            None => holder,
        };
        if let Some(backend) = holder {
            backend.remove(key).await?;
        }
        if record.is_some() {
            self.log.forget(key).await?;
        }
        Ok(())
    }
}
