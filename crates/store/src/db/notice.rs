//! Notices from other processes on the same PostgreSQL database.

use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A payload that some process announced, this one included.
    Message {
        /// The channel.
        channel: String,
        /// The payload.
        payload: String,
    },
    /// Payloads may have been lost before this: read the state again.
    Gap,
}

/// The notices of a listener, which stops when this is dropped.
#[derive(Debug)]
pub struct Notices {
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// On SQLite no other process announces anything.
    Silent,
    Server {
        notices: mpsc::Receiver<Notice>,
        task: AbortHandle,
    },
}

impl Notices {
    pub(super) fn silent() -> Self {
        Self { source: Source::Silent }
    }

    pub(super) fn new(notices: mpsc::Receiver<Notice>, task: AbortHandle) -> Self {
        Self { source: Source::Server { notices, task } }
    }

    /// The next notice; waits for one. May be dropped while it waits without losing any.
    pub async fn next(&mut self) -> Notice {
        let next = match &mut self.source {
            Source::Silent => None,
            Source::Server { notices, .. } => notices.recv().await,
        };
        match next {
            Some(notice) => notice,
            // The listening task ends only with the runtime.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        match &self.source {
            Source::Silent => {}
            Source::Server { task, .. } => task.abort(),
        }
    }
}
