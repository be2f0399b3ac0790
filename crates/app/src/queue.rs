//! Messages that wait in a session (`docs/decisions/0016-queue-and-steer.md`).

use nylorun_domain::caller::Caller;
use nylorun_domain::id::{MessageId, SessionId};
use nylorun_domain::queue::QueuedMessage;
use nylorun_domain::session::Session;
use nylorun_domain::turn::remove_queued;
use nylorun_turns::{CommitError, stamp};

use crate::{App, Error};

impl App {
    /// Takes back a message that still waits.
    pub async fn queue_remove(&self, caller: &Caller, id: &SessionId, message: &MessageId) -> Result<(), Error> {
        loop {
            let session = self.session(caller, id).await?;
            let queued = self.queued(&session).await?;
            let queued = queued.iter().find(|queued| queued.id == *message);
            let queued = queued.ok_or_else(|| {
                Error::not_found(format!("No message {message} waits: it was read, began its turn, or was removed"))
            })?;
            match self.committer().commit(&remove_queued(&session, queued, &stamp())).await {
                Ok(()) => return Ok(()),
                Err(CommitError::Stale) => {}
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
    }

    /// The messages that wait in the session, in the order in which they are taken.
    pub(crate) async fn queued(&self, session: &Session) -> Result<Vec<QueuedMessage>, Error> {
        if session.queued == 0 {
            return Ok(Vec::new());
        }
        Ok(self.store().queue_list(&session.id).await?)
    }
}
