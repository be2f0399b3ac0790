//! Telling running work to end, and why.

use tokio::sync::watch;

/// Why work is to end (engine b.4). Each is treated in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortKind {
    /// The turn was cancelled: results are discarded.
    Cancel,
    /// The turn ran out of time: the segment settles.
    Deadline,
    /// The process stops: nothing is settled, outcomes in hand are recorded.
    Shutdown,
    /// Another owner has the session: nothing is written.
    OwnershipLost,
}

/// The side that ends the work. The first kind given stays.
#[derive(Clone, Debug)]
pub struct AbortHandle(watch::Sender<Option<AbortKind>>);

/// The side that is told.
#[derive(Clone, Debug)]
pub struct Abort(watch::Receiver<Option<AbortKind>>);

/// A connected pair.
pub fn abort_pair() -> (AbortHandle, Abort) {
    let (sender, receiver) = watch::channel(None);
    (AbortHandle(sender), Abort(receiver))
}

impl AbortHandle {
    /// Ends the work, unless it was ended already.
    pub fn abort(&self, kind: AbortKind) {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(kind);
            }
            first
        });
    }
}

impl Abort {
    /// One that never aborts: for work that nothing can end.
    pub fn never() -> Self {
        abort_pair().1
    }

    /// Why the work is to end, if it is.
    pub fn kind(&self) -> Option<AbortKind> {
        *self.0.borrow()
    }

    /// Waits until the work is to end. For ever, when the other side is gone without a word.
    pub async fn aborted(&mut self) -> AbortKind {
        loop {
            if let Some(kind) = *self.0.borrow_and_update() {
                return kind;
            }
            if self.0.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
