//! Resetting the tenant (api 3): sessions, workspaces or both are removed; agents, keys, model and settings stay.
//!
//! Each session goes in one transaction, after its workspace: whatever ends a reset halfway, no session is half there,
//! and no file of one that is gone waits for the next session of its id. So a reset that did not end is repeated.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nylorun_domain::id::SessionId;
use nylorun_domain::json::Text;
use nylorun_domain::turn::{Cancel, CommandHead};
use nylorun_domain::workspace::WorkspaceKey;
use nylorun_ports::abort::{Abort, AbortHandle, AbortKind, abort_pair};
use nylorun_ports::workspaces::RemovalError;
use nylorun_store::Removal;
use nylorun_turns::{CommitError, uuid};
use nylorun_wire::tenant::{ActiveWork, Reset, ResetScope};
use tokio::time::{Instant, sleep};

use crate::{App, Error};

/// How long a reset waits for work to end (api 3).
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Sessions that are read at once.
const PAGE: i64 = 200;

/// Whether a reset runs in this process, and the tool calls of the application that one may end.
pub(crate) struct Resets(Mutex<State>);

struct State {
    now: Now,
    calls: (AbortHandle, Abort),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Now {
    Quiet,
    Resetting,
}

/// A reset that runs, until this is dropped.
struct Running<'r>(&'r Resets);

impl Default for Resets {
    fn default() -> Self {
        Self(Mutex::new(State { now: Now::Quiet, calls: abort_pair() }))
    }
}

impl Resets {
    /// Refuses work that a reset would remove, while one runs.
    pub(crate) fn refuse_work(&self) -> Result<(), Error> {
        match self.state().now {
            Now::Quiet => Ok(()),
            Now::Resetting => Err(Error::Resetting),
        }
    }

    /// What tells a tool call of the application that a reset ends it.
    pub(crate) fn calls(&self) -> Abort {
        self.state().calls.1.clone()
    }

    fn begin(&self) -> Option<Running<'_>> {
        let mut state = self.state();
        if state.now == Now::Resetting {
            return None;
        }
        state.now = Now::Resetting;
        Some(Running(self))
    }

    fn end_calls(&self) {
        self.state().calls.0.abort(AbortKind::Cancel);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Calls that come from now on are not ended by what ended the earlier ones.
        *self.0.state() = State { now: Now::Quiet, calls: abort_pair() };
    }
}

impl App {
    /// Removes what the scope names, after the work that runs has ended or was cancelled. Meanwhile no work begins in
    /// this process.
    pub async fn reset(&self, reset: Reset) -> Result<(), Error> {
        let running = self.resets().begin();
        let _running = running.ok_or_else(|| Error::conflict("a reset is running already: wait until it has ended"))?;
        tracing::info!(scope = reset.scope.as_str(), active_work = reset.active_work.as_str(), "resetting the tenant");
        match reset.active_work {
            ActiveWork::Drain => self.drain().await?,
            ActiveWork::Cancel => self.cancel_work().await?,
        }
        match reset.scope {
            ResetScope::Sessions => self.remove_sessions().await?,
            ResetScope::Sandboxes => self.remove_workspaces().await?,
            ResetScope::All => {
                self.remove_sessions().await?;
                self.remove_workspaces().await?;
            }
        }
        tracing::info!(scope = reset.scope.as_str(), "the tenant was reset");
        Ok(())
    }

    /// Waits until no turn is to be advanced and no call of the application runs. Turns that wait for somebody are no
    /// work.
    async fn drain(&self) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            let is_quiet =
                self.store().session_live("", 1).await?.is_empty() && self.store().direct_call_list().await?.is_empty();
            if is_quiet {
                return Ok(());
            }
            if begun.elapsed() >= PATIENCE {
                return Err(Error::conflict(format!(
                    "work still runs after {} s, and nothing was removed: reset again later, or with activeWork cancel",
                    PATIENCE.as_secs()
                )));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Cancels the turns that run and the calls of the application, and waits for what this process ran of them. What
    /// does not end in time, or runs elsewhere, writes nothing more: its session's row changes, or is gone.
    async fn cancel_work(&self) -> Result<(), Error> {
        let mut after = String::new();
        loop {
            let page = self.store().session_live(&after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.as_str().to_owned();
            for session in &page {
                self.cancel_turn(session).await?;
            }
        }
        self.resets().end_calls();
        let begun = Instant::now();
        while self.parts().scheduler.advancing() > 0 {
            if begun.elapsed() >= PATIENCE {
                tracing::warn!("cancelled turns did not end in time; the reset goes on");
                return Ok(());
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    async fn cancel_turn(&self, id: &SessionId) -> Result<(), Error> {
        let head = CommandHead {
            request_id: "reset".to_owned(),
            idempotency_key: format!("reset:{}", uuid()),
            body_hash: String::new(),
        };
        let said = Cancel { head, reason: Some(Text::from("the tenant is being reset")) };
        loop {
            let Some(session) = self.store().session_get(id).await? else { return Ok(()) };
            if session.active_turn_id.is_none() {
                return Ok(());
            }
            match self.committer().commit(&self.decide_cancel(&session, said.clone()).await?).await {
                Ok(()) => {
                    self.parts().scheduler.cancel(id);
                    return Ok(());
                }
                Err(CommitError::Stale) => {}
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
    }

    /// Removes all sessions that are there when this comes to them.
    async fn remove_sessions(&self) -> Result<(), Error> {
        let mut after = String::new();
        loop {
            let page = self.store().session_ids(&after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.as_str().to_owned();
            for session in &page {
                self.remove_session(session).await?;
            }
        }
        Ok(self.store().crossing_delete_orphans().await?)
    }

    /// Removes a session after those that share its workspace, so that no session is left without the one that owns
    /// its files.
    async fn remove_session(&self, id: &SessionId) -> Result<(), Error> {
        loop {
            for sharer in self.store().session_sharers(id, PAGE).await? {
                self.remove_one(&sharer).await?;
            }
            match self.remove_one(id).await? {
                Removal::Removed => return Ok(()),
                // Somebody began to share its workspace meanwhile.
                Removal::Kept => {}
            }
        }
    }

    async fn remove_one(&self, id: &SessionId) -> Result<Removal, Error> {
        let Some(session) = self.store().session_get(id).await? else { return Ok(Removal::Removed) };
        if session.sharers > 0 {
            return Ok(Removal::Kept);
        }
        let key = WorkspaceKey::of_session(self.tenant_id(), id);
        if self.store().workspace_get(&key).await?.is_some() {
            self.parts().removal.remove(&key).await?;
        }
        Ok(self.committer().delete(&session).await?)
    }

    async fn remove_workspaces(&self) -> Result<(), Error> {
        for record in self.store().workspace_list().await? {
            self.parts().removal.remove(&record.key).await?;
        }
        Ok(())
    }
}

impl From<RemovalError> for Error {
    fn from(error: RemovalError) -> Self {
        Self::Unavailable { message: error.to_string() }
    }
}
