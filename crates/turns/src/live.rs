//! What observers of a session hear while it happens. The record is the truth; this only saves them from asking again.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use nylorun_domain::id::{InvocationId, SessionId};
use nylorun_store::StoredEvent;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender, WeakSender};

/// Frames that an observer may fall behind before it reads the record instead.
const CAPACITY: usize = 1024;

/// Something on its way to everybody who observes a session. The frame in which it is sent is made by the first who
/// sends it, and shared by all others: a thousand followers cost one encoding.
#[derive(Debug)]
pub struct Shared<T> {
    told: T,
    frame: OnceLock<Bytes>,
    /// Counts the frames that are made.
    made: Arc<AtomicU64>,
}

impl<T> Shared<T> {
    /// The frame in which it is sent; `encode` runs for the first of all who share it.
    pub fn frame(&self, encode: impl FnOnce(&T) -> Bytes) -> Bytes {
        let make = || {
            self.made.fetch_add(1, Relaxed);
            encode(&self.told)
        };
        self.frame.get_or_init(make).clone()
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.told
    }
}

/// Something that happened in a session.
#[derive(Clone, Debug)]
enum LiveFrame {
    /// An event was committed.
    Event(Arc<Shared<StoredEvent>>),
    /// A piece of an answer that is being made.
    Delta(Arc<Shared<LiveDelta>>),
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
    pub body: String,
}

/// The sessions that somebody observes in this process. A session that nobody observes costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Live {
    observed: Arc<Mutex<HashMap<SessionId, Sender<LiveFrame>>>>,
    frames: Arc<AtomicU64>,
}

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
    Event(Arc<Shared<StoredEvent>>),
    /// A piece of an answer.
    Delta(Arc<Shared<LiveDelta>>),
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
                let _ = sender.send(LiveFrame::Event(self.share(StoredEvent::clone(event))));
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
            let delta = LiveDelta { invocation_id: invocation_id.clone(), body: encode() };
            let _ = sender.send(LiveFrame::Delta(self.share(delta)));
        }
    }

    /// How many frames were made since the process started: of an event that all followers hear, one.
    pub fn frames_made(&self) -> u64 {
        self.frames.load(Relaxed)
    }

    fn share<T>(&self, told: T) -> Arc<Shared<T>> {
        Arc::new(Shared { told, frame: OnceLock::new(), made: Arc::clone(&self.frames) })
    }

    fn sender(&self, session: &SessionId) -> Option<Sender<LiveFrame>> {
        self.sessions().get(session).cloned()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Sender<LiveFrame>>> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// An event that this observer read from the record instead: its frame is its own.
    pub fn read(&self, event: StoredEvent) -> Arc<Shared<StoredEvent>> {
        self.live.share(event)
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
    use std::sync::Arc;

    use bytes::Bytes;
    use nylorun_domain::event::Visibility;
    use nylorun_domain::id::{InvocationId, SessionId};
    use nylorun_domain::time::Millis;
    use nylorun_store::StoredEvent;

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
            assert!(matches!(observer.next().await, Heard::Delta(delta) if delta.body == "{}"));
        }
        drop(first);
        assert_eq!(live.sessions().len(), 1);
        drop(second);
        assert_eq!(live.sessions().len(), 0);
        live.delta(&session(), &InvocationId::from_trusted("i1"), || unreachable!("nobody observes"));
    }

    #[tokio::test]
    async fn the_frame_of_an_event_is_made_once_for_all_who_hear_it() {
        let live = Live::default();
        let mut observers: Vec<_> = (0..100).map(|_| live.observe(&session())).collect();
        let (kind, body, visibility) = ("turn.failed".into(), "{}".into(), Visibility::Public);
        live.events(&session(), &[Arc::new(StoredEvent { seq: 0, kind, visibility, body, committed_at: Millis(0) })]);
        let mut places = Vec::new();
        for observer in &mut observers {
            let Heard::Event(event) = observer.next().await else { unreachable!("an event was told") };
            let frame = event.frame(|event| Bytes::from(format!("data: {}\n\n", event.body)));
            assert_eq!(frame, "data: {}\n\n");
            places.push(frame.as_ptr());
        }
        places.dedup();
        assert_eq!((places.len(), live.frames_made()), (1, 1));
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
