//! What observers of a session hear while it happens. The record is the truth; this only saves them from asking again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nylorun_domain::id::SessionId;
use nylorun_store::StoredEvent;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Frames that an observer may fall behind before it reads the record instead.
const CAPACITY: usize = 1024;

/// Something that happened in a session. Cheap to clone: followers share one encoding.
#[derive(Clone, Debug)]
pub enum LiveFrame {
    /// An event was committed.
    Event(Arc<StoredEvent>),
    /// A piece of an answer that is being made: the JSON of a `message.delta`.
    Delta(Arc<str>),
}

/// The sessions that somebody observes in this process. A session that nobody observes costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<Mutex<HashMap<SessionId, Sender<LiveFrame>>>>);

/// One observer of one session.
#[derive(Debug)]
pub struct Observer {
    live: Live,
    session: SessionId,
    receiver: Receiver<LiveFrame>,
}

/// What an observer hears next.
#[derive(Clone, Debug)]
pub enum Heard {
    /// A frame.
    Frame(LiveFrame),
    /// The observer fell behind, and frames were dropped: read the record.
    Behind,
}

impl Live {
    /// Begins to observe a session. Events committed from now on are heard; read the record for those before.
    pub fn observe(&self, session: &SessionId) -> Observer {
        let mut sessions = self.sessions();
        let sender = sessions.entry(session.clone()).or_insert_with(|| broadcast::channel(CAPACITY).0);
        Observer { live: self.clone(), session: session.clone(), receiver: sender.subscribe() }
    }

    /// Tells of committed events.
    pub fn events(&self, session: &SessionId, events: &[Arc<StoredEvent>]) {
        if let Some(sender) = self.sender(session) {
            for event in events {
                // An error means that the last observer has just left.
                let _ = sender.send(LiveFrame::Event(Arc::clone(event)));
            }
        }
    }

    /// Tells of a delta, which is only encoded when somebody observes.
    pub fn delta(&self, session: &SessionId, encode: impl FnOnce() -> String) {
        if let Some(sender) = self.sender(session) {
            let _ = sender.send(LiveFrame::Delta(encode().into()));
        }
    }

    fn sender(&self, session: &SessionId) -> Option<Sender<LiveFrame>> {
        self.sessions().get(session).cloned()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Sender<LiveFrame>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer {
    /// Waits for what happens next.
    pub async fn next(&mut self) -> Heard {
        match self.receiver.recv().await {
            Ok(frame) => Heard::Frame(frame),
            Err(RecvError::Lagged(_) | RecvError::Closed) => Heard::Behind,
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let mut sessions = self.live.sessions();
        // This observer still counts as one.
        if sessions.get(&self.session).is_some_and(|sender| sender.receiver_count() <= 1) {
            sessions.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use nylorun_domain::id::SessionId;

    use super::{CAPACITY, Heard, Live, LiveFrame};

    fn session() -> SessionId {
        SessionId::from_trusted("s1")
    }

    #[tokio::test]
    async fn observers_share_frames_and_the_last_one_leaves_nothing_behind() {
        let live = Live::default();
        let mut first = live.observe(&session());
        let mut second = live.observe(&session());
        live.delta(&session(), || "{}".to_owned());
        for observer in [&mut first, &mut second] {
            assert!(matches!(observer.next().await, Heard::Frame(LiveFrame::Delta(text)) if &*text == "{}"));
        }
        drop(first);
        assert_eq!(live.sessions().len(), 1);
        drop(second);
        assert_eq!(live.sessions().len(), 0);
        live.delta(&session(), || unreachable!("nobody observes"));
    }

    #[tokio::test]
    async fn who_falls_behind_is_told() {
        let live = Live::default();
        let mut slow = live.observe(&session());
        for _ in 0..=CAPACITY {
            live.delta(&session(), || "{}".to_owned());
        }
        assert!(matches!(slow.next().await, Heard::Behind));
    }
}
