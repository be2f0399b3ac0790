//! Telling running work to end, and why.

use tokio::sync::watch;

/// Why work is to end (engine b.4). Each is treated in its own way. The later ones are the more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AbortKind {
    /// The process stops: nothing is settled, outcomes in hand are recorded.
    Shutdown,
    /// The turn ran out of time: the segment settles. After [`AbortKind::Shutdown`]: the grace is over.
    Deadline,
    /// The turn was cancelled: results are discarded.
    Cancel,
    /// Another owner has the session: nothing is written.
    OwnershipLost,
}

/// The side that ends the work.
#[derive(Clone, Debug)]
pub struct AbortHandle(watch::Sender<Option<Told>>);

/// The side that is told.
#[derive(Clone, Debug)]
pub struct Abort(watch::Receiver<Option<Told>>);

/// What was told: the first kind, and the most urgent since.
#[derive(Clone, Copy, Debug)]
struct Told {
    first: AbortKind,
    kind: AbortKind,
}

/// A connected pair.
pub fn abort_pair() -> (AbortHandle, Abort) {
    let (sender, receiver) = watch::channel(None);
    (AbortHandle(sender), Abort(receiver))
}

impl AbortHandle {
    /// Ends the work. A more urgent kind replaces a less urgent one; anything else changes nothing.
    pub fn abort(&self, kind: AbortKind) {
        self.0.send_if_modified(|told| {
            let first = told.map_or(kind, |told| told.first);
            let more_urgent = told.is_none_or(|told| kind > told.kind);
            if more_urgent {
                *told = Some(Told { first, kind });
            }
            more_urgent
        });
    }
}

impl Abort {
    /// One that never aborts: for work that nothing can end.
    pub fn never() -> Self {
        abort_pair().1
    }

    /// Why the work is to end, if it is: the most urgent kind told.
    pub fn kind(&self) -> Option<AbortKind> {
        self.0.borrow().map(|told| told.kind)
    }

    /// The kind that was told first: a [`AbortKind::Deadline`] that ends a shutdown's grace is not one of the turn.
    pub fn first_kind(&self) -> Option<AbortKind> {
        self.0.borrow().map(|told| told.first)
    }

    /// Waits until the work is to end. For ever, when the other side is gone without a word.
    pub async fn aborted(&mut self) -> AbortKind {
        self.until(|_| true).await
    }

    /// Waits until the work is to end for a more urgent reason than `kind`. For ever, when the other side is gone.
    pub async fn aborted_beyond(&mut self, kind: AbortKind) -> AbortKind {
        self.until(|now| now > kind).await
    }

    async fn until(&mut self, wanted: impl Fn(AbortKind) -> bool) -> AbortKind {
        loop {
            if let Some(told) = *self.0.borrow_and_update()
                && wanted(told.kind)
            {
                return told.kind;
            }
            if self.0.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AbortKind, abort_pair};

    #[tokio::test]
    async fn the_more_urgent_kind_stays_and_the_first_is_remembered() {
        let (handle, mut abort) = abort_pair();
        assert_eq!((abort.kind(), abort.first_kind()), (None, None));
        handle.abort(AbortKind::Shutdown);
        assert_eq!(abort.aborted().await, AbortKind::Shutdown);
        handle.abort(AbortKind::Deadline);
        handle.abort(AbortKind::Shutdown);
        assert_eq!(abort.aborted_beyond(AbortKind::Shutdown).await, AbortKind::Deadline);
        assert_eq!((abort.kind(), abort.first_kind()), (Some(AbortKind::Deadline), Some(AbortKind::Shutdown)));
    }
}
