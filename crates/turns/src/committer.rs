//! The one way to commit a session's change: store it, then tell observers. What follows a commit is derived from it.

use nylorun_domain::change::SessionChange;
use nylorun_domain::id::SessionId;
use nylorun_domain::session::Session;
use nylorun_domain::time::Millis;
use nylorun_store::{AgedSession, Removal, STALE_SESSION, Store, StoreError, WORKSPACE_HELD, WriteError};

use crate::live::Live;
use crate::log;

/// Why a change was not committed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The session changed meanwhile: load it and decide again.
    #[error("the session changed meanwhile")]
    Stale,
    /// The store failed. Whether the change was applied is known to be: no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Tries of a commit whose answer is lost with its connection.
const TRIES: u32 = 3;

/// Why one try of a commit failed.
enum Lost {
    /// Its answer was lost, and the row does not show it.
    NotSeen(StoreError),
    /// It is known not to have happened.
    Failed(CommitError),
}

/// Commits changes of sessions.
#[derive(Clone, Debug)]
pub struct Committer {
    store: Store,
    live: Live,
}

impl Committer {
    /// A committer that tells observers through `live`.
    pub fn new(store: Store, live: Live) -> Self {
        Self { store, live }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Where observers hear.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Commits one change and tells its observers.
    pub async fn commit(&self, change: &SessionChange) -> Result<(), CommitError> {
        let mut tried = 0;
        loop {
            tried += 1;
            match self.try_commit(change).await {
                // The row is as it was. Should the lost commit still happen, its revision stops the repetition.
                Err(Lost::NotSeen(error)) if tried < TRIES => {
                    tracing::warn!(session = %change.session.id, %error, "a commit was lost and is sent again");
                }
                Err(Lost::NotSeen(error)) => return Err(CommitError::Store(error)),
                Err(Lost::Failed(error)) => return Err(error),
                Ok(()) => {
                    log::committed(change);
                    return Ok(());
                }
            }
        }
    }

    async fn try_commit(&self, change: &SessionChange) -> Result<(), Lost> {
        let events = match self.store.session_commit(change).await {
            Ok(events) => events,
            Err(WriteError::Guard(STALE_SESSION | WORKSPACE_HELD) | WriteError::Duplicate { .. }) => {
                return Err(Lost::Failed(CommitError::Stale));
            }
            Err(WriteError::Guard(guard)) => {
                tracing::error!(%guard, "a change of a session failed a guard that it does not have");
                return Err(Lost::Failed(CommitError::Stale));
            }
            Err(WriteError::Db(error)) => return Err(Lost::Failed(CommitError::Store(error.into()))),
            Err(WriteError::Unknown(error)) => return self.look_again(change, error.into()).await,
        };
        self.live.events(&change.session.id, &events);
        Ok(())
    }

    /// The commit's answer was lost: the event that it would have written last tells whether it happened.
    async fn look_again(&self, change: &SessionChange, error: StoreError) -> Result<(), Lost> {
        let failed = |error: StoreError| Lost::Failed(CommitError::Store(error));
        let session = self.store.session_get(&change.session.id).await.map_err(failed)?;
        let Some(session) = session else { return Err(failed(error)) };
        if session.rev == change.before_rev {
            return Err(Lost::NotSeen(error));
        }
        let happened = match change.events.last() {
            Some(event) => {
                let stored = self.store.event_get(&session.id, event.seq).await.map_err(failed)?;
                stored.is_some_and(|stored| stored.body.contains(event.id.as_str()))
            }
            None => session == change.session,
        };
        if !happened {
            return Err(Lost::Failed(CommitError::Stale));
        }
        self.live.gap(&session.id);
        Ok(())
    }

    /// Removes a session with all that belongs to it, and ends what observes it. A run of it writes nothing more: its
    /// next commit finds no row. One whose workspace others share is kept.
    pub async fn delete(&self, session: &Session) -> Result<Removal, WriteError> {
        let removal = self.store.session_delete(session).await?;
        Ok(self.ended(&session.id, removal))
    }

    /// Removes a session that is at rest and in which nothing happened since `cutoff`, and ends what observes it.
    pub async fn expire(&self, session: &AgedSession, cutoff: Millis) -> Result<Removal, WriteError> {
        let removal = self.store.session_expire(session, cutoff).await?;
        Ok(self.ended(&session.id, removal))
    }

    fn ended(&self, id: &SessionId, removal: Removal) -> Removal {
        match removal {
            Removal::Removed => self.live.end(id),
            Removal::Kept => {}
        }
        removal
    }

    /// Decides and commits until the decision meets the row that it was made on. `decide` answers `None` to leave it.
    pub async fn update<E>(
        &self,
        id: &SessionId,
        decide: impl Fn(&Session) -> Result<Option<SessionChange>, E>,
    ) -> Result<Updated<E>, StoreError> {
        loop {
            let Some(session) = self.store.session_get(id).await? else { return Ok(Updated::Missing) };
            let change = match decide(&session) {
                Ok(Some(change)) => change,
                Ok(None) => return Ok(Updated::Unchanged(Box::new(session))),
                Err(refusal) => return Ok(Updated::Refused(refusal)),
            };
            match self.commit(&change).await {
                Ok(()) => return Ok(Updated::Committed(Box::new(change))),
                Err(CommitError::Stale) => {}
                Err(CommitError::Store(error)) => return Err(error),
            }
        }
    }
}

/// What became of an update.
#[derive(Clone, Debug)]
pub enum Updated<E> {
    /// There is no such session.
    Missing,
    /// The decision was to do nothing.
    Unchanged(Box<Session>),
    /// The decision refused.
    Refused(E),
    /// The change was committed.
    Committed(Box<SessionChange>),
}
