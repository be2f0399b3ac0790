//! What observers of a session hear while it happens. The record is the truth; this only saves them from asking again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nylorun_domain::id::{InvocationId, SessionId};
use nylorun_store::StoredEvent;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender, WeakSender};

/// Frames that an observer may fall behind before it reads the record instead.
const CAPACITY: usize = 1024;

/// Something that happened in a session. Cheap to clone: followers share one encoding.
#[derive(Clone, Debug)]
enum LiveFrame {
    /// An event was committed.
    Event(Arc<StoredEvent>),
    /// A piece of an answer that is being made.
    Delta(LiveDelta),
    /// Events were committed that nobody was told of: read the record.
    Gap,
    /// The session is gone.
    Ended,
}

/// A piece of an answer that is being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveDelta {
    /// Which answer. Its pieces mean nothing once it is in the record.
    pub invocation_id: InvocationId,
    /// The JSON of a `message.delta`.
    pub body: Arc<str>,
}

/// The sessions that somebody observes in this process. A session that nobody observes costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<Mutex<HashMap<SessionId, Sender<LiveFrame>>>>);

/// One observer of one session.
#[derive(Debug)]
pub struct Observer {
    live: Live,
    session: SessionId,
    /// Tells this sender from that of another session of the same id, and keeps nothing open.
    sender: WeakSender<LiveFrame>,
    receiver: Receiver<LiveFrame>,
}

/// What an observer hears next.
#[derive(Clone, Debug)]
pub enum Heard {
    /// An event was committed.
    Event(Arc<StoredEvent>),
    /// A piece of an answer.
    Delta(LiveDelta),
    /// Frames were lost, or the observer fell behind: read the record.
    Behind,
    /// The session is gone with its record. Another one may be opened under its id: nothing of that is heard here.
    Ended,
}

impl Live {
    /// Begins to observe a session. Events committed from now on are heard; read the record for those before.
    pub fn observe(&self, session: &SessionId) -> Observer {
        let mut sessions = self.sessions();
        let sender = sessions.entry(session.clone()).or_insert_with(|| broadcast::channel(CAPACITY).0);
        let (sender, receiver) = (sender.downgrade(), sender.subscribe());
        Observer { live: self.clone(), session: session.clone(), sender, receiver }
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

    /// Tells that events were committed whose frames are lost.
    pub fn gap(&self, session: &SessionId) {
        if let Some(sender) = self.sender(session) {
            let _ = sender.send(LiveFrame::Gap);
        }
    }

    /// Tells that the session is gone. Who observes its id from now on observes another session.
    pub fn end(&self, session: &SessionId) {
        if let Some(sender) = self.sessions().remove(session) {
            // An error means that the last observer has just left.
            let _ = sender.send(LiveFrame::Ended);
        }
    }

    /// Tells of a delta, which is only encoded when somebody observes.
    pub fn delta(&self, session: &SessionId, invocation_id: &InvocationId, encode: impl FnOnce() -> String) {
        if let Some(sender) = self.sender(session) {
            let delta = LiveDelta { invocation_id: invocation_id.clone(), body: encode().into() };
            let _ = sender.send(LiveFrame::Delta(delta));
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
            Ok(LiveFrame::Gap) => Heard::Behind,
            Ok(LiveFrame::Ended) => Heard::Ended,
            Ok(LiveFrame::Event(event)) => Heard::Event(event),
            Ok(LiveFrame::Delta(delta)) => Heard::Delta(delta),
            Err(RecvError::Lagged(_)) => Heard::Behind,
            // Nobody can tell anything any more: only of a session that is gone.
            Err(RecvError::Closed) => Heard::Ended,
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let mut sessions = self.live.sessions();
        // This observer still counts as one, unless its session is gone and the id has another sender.
        let own = self.sender.upgrade();
        let is_ours = |sender: &Sender<LiveFrame>| own.as_ref().is_some_and(|own| own.same_channel(sender));
        if sessions.get(&self.session).is_some_and(|sender| is_ours(sender) && sender.receiver_count() <= 1) {
            sessions.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use nylorun_domain::id::{InvocationId, SessionId};

    use super::{CAPACITY, Heard, Live};

    fn session() -> SessionId {
        SessionId::from_trusted("s1")
    }

    fn delta(live: &Live) {
        live.delta(&session(), &InvocationId::from_trusted("i1"), || "{}".to_owned());
    }

    #[tokio::test]
    async fn observers_share_frames_and_the_last_one_leaves_nothing_behind() {
        let live = Live::default();
        let mut first = live.observe(&session());
        let mut second = live.observe(&session());
        delta(&live);
        for observer in [&mut first, &mut second] {
            assert!(matches!(observer.next().await, Heard::Delta(delta) if &*delta.body == "{}"));
        }
        drop(first);
        assert_eq!(live.sessions().len(), 1);
        drop(second);
        assert_eq!(live.sessions().len(), 0);
        live.delta(&session(), &InvocationId::from_trusted("i1"), || unreachable!("nobody observes"));
    }

    #[tokio::test]
    async fn who_falls_behind_is_told() {
        let live = Live::default();
        let mut slow = live.observe(&session());
        for _ in 0..=CAPACITY {
            delta(&live);
        }
        assert!(matches!(slow.next().await, Heard::Behind));
    }

    #[tokio::test]
    async fn who_observes_a_session_that_is_gone_is_told_and_hears_nothing_of_the_next() {
        let live = Live::default();
        let mut observer = live.observe(&session());
        delta(&live);
        live.end(&session());
        let mut next = live.observe(&session());
        delta(&live);
        assert!(matches!(observer.next().await, Heard::Delta(_)));
        assert!(matches!(observer.next().await, Heard::Ended));
        drop(observer);
        assert!(matches!(next.next().await, Heard::Delta(_)), "the next one is still told");
    }

    #[tokio::test]
    async fn a_lost_frame_sends_observers_to_the_record() {
        let live = Live::default();
        let mut observer = live.observe(&session());
        live.gap(&session());
        assert!(matches!(observer.next().await, Heard::Behind));
    }
}
