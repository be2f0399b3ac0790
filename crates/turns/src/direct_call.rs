//! How calls of the application end in the record: with their outcome, or lost with the process that ran them.

use nylorun_domain::direct_call::{DirectCall, end, lost};
use nylorun_domain::id::WorkerId;
use nylorun_domain::workspace::WorkspaceEvent;
use nylorun_store::StoreError;

use crate::clock::{now, stamp};
use crate::committer::{CommitError, Committer};

impl Committer {
    /// Records what became of a call that had an intent, unless somebody has done so already: a call ends once.
    pub async fn direct_call_end(&self, call: &DirectCall, events: &[WorkspaceEvent]) -> Result<(), StoreError> {
        loop {
            // The session before the call: whoever ends the call changes the session too, so that a commit upon what
            // was read before that is refused.
            let Some(session) = self.store().session_get(&call.session_id).await? else { return Ok(()) };
            if self.store().direct_call_get(&call.session_id, &call.id).await?.is_none() {
                return Ok(());
            }
            let Some(change) = end(&session, Some(call), events.to_vec(), &stamp()) else {
                return Ok(());
            };
            match self.commit(&change).await {
                Ok(()) => return Ok(()),
                Err(CommitError::Stale) => {}
                Err(CommitError::Store(error)) => return Err(error),
            }
        }
    }
}

/// Says of calls whose process is gone that nobody knows whether they happened. Those of this process are its own
/// business.
pub(crate) async fn end_lost_calls(committer: &Committer, worker: &WorkerId) -> Result<(), StoreError> {
    for call in committer.store().direct_call_list().await? {
        if call.worker != *worker && committer.store().worker_is_gone(&call.worker).await? {
            committer.direct_call_end(&call, &[lost(&call, now())]).await?;
        }
    }
    Ok(())
}
