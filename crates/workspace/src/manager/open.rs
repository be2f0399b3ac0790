//! Opening a workspace for the calls that need it (environments 3; sandbox-and-definitions a5).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::workspace::{WorkspaceEvent, WorkspaceRecord, WorkspaceSpec, WorkspaceState};
use nylorun_ports::backends::{Backend, BackendError, WorkspaceHandle};
use nylorun_ports::workspaces::{LogError, WorkspaceChange, WorkspaceOutcome};

use super::events::StateEvent;
use super::slots::{Patience, Slot};
use super::{Caller, Inner, Live, Space, State};

impl Inner {
    /// The open handle of a workspace; opens it when there is none. Calls that need it at the same time share one
    /// opening. While no more workspaces may run, it waits with `patience`.
    pub(super) async fn handle(
        self: &Arc<Self>,
        space: &Space,
        caller: &Caller,
        patience: &Patience,
    ) -> Result<Arc<dyn WorkspaceHandle>, WorkspaceOutcome> {
        let tries_before = space.tries.load(Ordering::SeqCst);
        let mut state = self.wait(patience, space.state.lock()).await?;
        if let Some(live) = state.live.as_ref().filter(|live| live.handle.is_alive()) {
            return Ok(Arc::clone(&live.handle));
        }
        if space.tries.load(Ordering::SeqCst) > tries_before
            && let Some(failure) = &state.failure
        {
            return Err(WorkspaceOutcome::Done(failure.clone()));
        }
        let slot = self.slot_for(&mut state, patience).await?;
        let opened = self.open(space, &mut state, slot, caller).await;
        state.failure = match &opened {
            Err(WorkspaceOutcome::Done(failure)) => Some(failure.clone()),
            Ok(_) | Err(WorkspaceOutcome::Uncertain { .. } | WorkspaceOutcome::Aborted) => None,
        };
        space.tries.fetch_add(1, Ordering::SeqCst);
        opened
    }

    async fn open(
        &self,
        space: &Space,
        state: &mut State,
        slot: Slot,
        caller: &Caller,
    ) -> Result<Arc<dyn WorkspaceHandle>, WorkspaceOutcome> {
        if self.is_closing() {
            return Err(WorkspaceOutcome::Aborted);
        }
        let before = self.log.record(&space.key).await.map_err(|error| not_recorded(&error))?;
        let backend = self.backend_for(before.as_ref(), &caller.spec).await?;
        let creating = self.creating(space, before.as_ref(), backend.as_ref(), caller);
        let event = StateEvent {
            reattach: before.is_some(),
            ..StateEvent::of(WorkspaceState::Creating, backend.as_ref(), &caller.spec)
        };
        // The record comes first: what is made without one could never be found again.
        let change = caller.change(event.into(), creating.clone());
        self.log.write(change).await.map_err(|error| not_recorded(&error))?;
        match backend.open(&space.key, &caller.spec).await {
            Err(error) => Err(self.record_failed_start(backend.as_ref(), creating, caller, &error).await),
            Ok(opened) => {
                let is_lost = opened.created && before.as_ref().is_some_and(has_run);
                let event = StateEvent {
                    lost: is_lost.then(|| "its files were gone and it was made anew, empty".to_owned()),
                    ..StateEvent::of(WorkspaceState::Running, backend.as_ref(), &caller.spec)
                };
                let handle = self.record_start(event, creating, caller, opened.handle).await?;
                state.idle_ms.get_or_insert(caller.spec.idle_ms);
                state.live = Some(Live { handle: Arc::clone(&handle), slot });
                Ok(handle)
            }
        }
    }

    /// Says that the workspace runs, before anything runs in it. Where that cannot be recorded it is stopped again.
    async fn record_start(
        &self,
        event: StateEvent,
        creating: WorkspaceRecord,
        caller: &Caller,
        handle: Arc<dyn WorkspaceHandle>,
    ) -> Result<Arc<dyn WorkspaceHandle>, WorkspaceOutcome> {
        let updated_at = self.log.now().max(creating.created_at.plus(1));
        let record = WorkspaceRecord { state: WorkspaceState::Running, updated_at, ..creating };
        if let Err(error) = self.log.write(caller.change(event.into(), record)).await {
            handle.stop().await;
            return Err(not_recorded(&error));
        }
        Ok(handle)
    }

    /// Says that the workspace could not be started, and answers the outcome of the call that needed it.
    async fn record_failed_start(
        &self,
        backend: &dyn Backend,
        creating: WorkspaceRecord,
        caller: &Caller,
        error: &BackendError,
    ) -> WorkspaceOutcome {
        let event = StateEvent {
            error: Some(error.to_string()),
            ..StateEvent::of(WorkspaceState::Stopped, backend, &caller.spec)
        };
        // Its time stays: a workspace that never ran must not look as if it had (see `has_run`).
        let updated_at = if has_run(&creating) { self.log.now() } else { creating.updated_at };
        let record = WorkspaceRecord { state: WorkspaceState::Stopped, updated_at, ..creating };
        if let Err(error) = self.log.write(caller.change(event.into(), record)).await {
            // The record says that it is being made; a later sweep settles it.
            tracing::warn!(%error, "the failed start of a workspace was not recorded");
        }
        WorkspaceOutcome::Done(ToolOutcome::failed("sandbox.start_failed", start_failed(error)))
    }

    /// The backend of a workspace: the one that its record names, for life; else the chosen one.
    async fn backend_for(
        &self,
        record: Option<&WorkspaceRecord>,
        spec: &WorkspaceSpec,
    ) -> Result<Arc<dyn Backend>, WorkspaceOutcome> {
        let found = match record {
            Some(record) => self.backends.usable(&record.backend).await,
            None => self.backends.chosen().await,
        };
        let met = found.and_then(|backend| match backend.unmet(spec) {
            Some(unmet) => Err(unmet),
            None => Ok(backend),
        });
        met.map_err(|why| {
            let message = format!("No workspace can be opened: {why}. `nylorun doctor sandbox` lists the options.");
            WorkspaceOutcome::Done(ToolOutcome::failed("sandbox.unavailable", message))
        })
    }

    fn creating(
        &self,
        space: &Space,
        before: Option<&WorkspaceRecord>,
        backend: &dyn Backend,
        caller: &Caller,
    ) -> WorkspaceRecord {
        let now = self.log.now();
        WorkspaceRecord {
            key: space.key.clone(),
            session_id: before.map_or(&caller.owner, |record| &record.session_id).clone(),
            environment_id: before.and_then(|record| record.environment_id.clone()),
            backend: backend.name().to_owned(),
            image: caller.spec.image.clone().unwrap_or_default(),
            state: WorkspaceState::Creating,
            created_at: before.map_or(now, |record| record.created_at),
            updated_at: match before {
                Some(record) if has_run(record) => now.max(record.updated_at),
                Some(record) => record.created_at,
                None => now,
            },
        }
    }
}

impl Caller {
    fn change(&self, event: WorkspaceEvent, record: WorkspaceRecord) -> WorkspaceChange {
        let session_id = record.session_id.clone();
        WorkspaceChange { session_id, claim: self.claim.clone(), event, record: Some(record) }
    }
}

/// Whether the workspace of this record ever ran. Only a start moves `updated_at` past `created_at`, so a crash
/// between the record and the files is not taken for a loss of files.
fn has_run(record: &WorkspaceRecord) -> bool {
    record.updated_at > record.created_at
}

/// The outcome of a call whose workspace could not be recorded: nothing was made and nothing ran.
fn not_recorded(error: &LogError) -> WorkspaceOutcome {
    match error {
        LogError::OwnershipLost => WorkspaceOutcome::Aborted,
        LogError::Unavailable(_) => {
            WorkspaceOutcome::Done(ToolOutcome::failed("sandbox.start_failed", start_failed(error)))
        }
    }
}

fn start_failed(why: &dyn std::fmt::Display) -> String {
    format!("The workspace could not be started: {why}")
}
