//! How many workspaces of a host run at once. Above that, the one that is idle longest is stopped for the next one;
//! when all are at work, calls wait in the order in which they came.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::abort::Abort;
use nylorun_ports::workspaces::WorkspaceOutcome;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::{Inner, State};

/// The right to run one workspace; dropping it gives it to the next.
pub(super) type Slot = OwnedSemaphorePermit;

/// The slots of this host.
pub(super) struct Slots {
    all: NonZeroU32,
    free: Arc<Semaphore>,
    /// Held by the first that waits, who alone looks for an idle workspace. It is passed on in the order of waiting.
    first: Mutex<()>,
}

impl Slots {
    pub(super) fn new(all: NonZeroU32) -> Self {
        let count = usize::try_from(all.get()).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { all, free: Arc::new(Semaphore::new(count)), first: Mutex::default() }
    }
}

/// How long a call waits for its workspace.
#[derive(Clone, Debug)]
pub(super) struct Patience {
    abort: Abort,
    time: Duration,
    until: Instant,
}

impl Patience {
    /// For `time` from now, or until `abort` is told anything.
    pub(super) fn new(abort: Abort, time: Duration) -> Self {
        Self { abort, time, until: Instant::now() + time }
    }
}

impl Inner {
    /// Waits with patience; whatever is waited for can be given up at any time. Nothing ran when it was.
    pub(super) async fn wait<T>(
        &self,
        patience: &Patience,
        awaited: impl Future<Output = T>,
    ) -> Result<T, WorkspaceOutcome> {
        let mut abort = patience.abort.clone();
        tokio::select! {
            biased;
            awaited = awaited => Ok(awaited),
            _ = abort.aborted() => Err(WorkspaceOutcome::Aborted),
            () = tokio::time::sleep_until(patience.until) => {
                let (all, seconds) = (self.slots.all, patience.time.as_secs());
                let message = format!(
                    "The workspace could not be started: {all} may run at once, and all were at work for {seconds} s. \
                     Try again later; the operator can raise NYLORUN_WORKSPACES_LIVE."
                );
                Err(WorkspaceOutcome::Done(ToolOutcome::failed("sandbox.start_failed", message)))
            }
        }
    }

    /// The slot in which a workspace is opened: the one that it still has, or the next free one.
    pub(super) async fn slot_for(
        self: &Arc<Self>,
        state: &mut State,
        patience: &Patience,
    ) -> Result<Slot, WorkspaceOutcome> {
        match state.live.take() {
            Some(dead) => {
                // No two processes serve one workspace.
                dead.handle.stop().await;
                Ok(dead.slot)
            }
            None => self.wait(patience, self.free_slot()).await?.ok_or(WorkspaceOutcome::Aborted),
        }
    }

    /// A slot, once this call is the first that waits and there is one; none when the manager closes.
    async fn free_slot(self: &Arc<Self>) -> Option<Slot> {
        let _first = self.slots.first.lock().await;
        loop {
            let left = self.left.notified();
            tokio::pin!(left);
            // Registered before looking: a visit that ends between the look and the wait is not missed.
            left.as_mut().enable();
            if self.is_closing() {
                return None;
            }
            if let Ok(slot) = Arc::clone(&self.slots.free).try_acquire_owned() {
                return Some(slot);
            }
            // A task of its own: a call that is given up meanwhile must not leave a stop half done.
            let stopping = tokio::spawn({
                let inner = Arc::clone(self);
                async move { inner.stop_longest_idle().await }
            });
            if !stopping.await.unwrap_or(false) {
                left.await;
            }
        }
    }

    /// Stops the workspace that nobody calls and whose last use is longest ago; whether there was one.
    async fn stop_longest_idle(self: &Arc<Self>) -> bool {
        let mut idle = Vec::new();
        for space in self.held() {
            // One that is locked is being opened or stopped.
            if let Ok(state) = space.state.try_lock()
                && state.live.is_some()
                && space.lanes.is_empty()
            {
                idle.push((state.last_used, Arc::clone(&space)));
            }
        }
        idle.sort_by_key(|(last_used, _)| *last_used);
        for (_, space) in idle {
            let Some(visit) = self.enter_if_empty(&space.key) else { continue };
            let mut state = visit.space.state.lock().await;
            let was_live = state.live.is_some();
            self.stop(&space.key, &mut state).await;
            drop(state);
            drop(visit);
            self.forget_if_unused(&space.key);
            if was_live {
                return true;
            }
        }
        false
    }
}
