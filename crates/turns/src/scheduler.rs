//! The in-process scheduler: at most one advance a session at a time; wakes that come meanwhile merge into one more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nylorun_domain::change::SessionChange;
use nylorun_domain::id::{SessionId, WorkerId};
use nylorun_domain::segment::YieldAfter;
use nylorun_ports::abort::{Abort, AbortHandle, AbortKind, abort_pair};
use nylorun_ports::run::Harness;
use tokio::sync::{Notify, Semaphore};

use crate::advance::{Advanced, Advancer};
use crate::begun::Begun;
use crate::committer::Committer;
use crate::for_good::pause_after;
use crate::load::Manifests;
use crate::log;
use crate::transcripts::Transcripts;

/// How the scheduler behaves.
#[derive(Clone, Debug)]
pub struct SchedulerConfig {
    /// Most advances at once; more sessions wait their turn.
    pub max_advances: usize,
    /// Longest time that one advance may take before its segment must settle (engine b.4: 50 min).
    pub advance_deadline: Duration,
    /// How long an advance gets to settle after its deadline before it is abandoned (engine b.4: 30 s). What it was
    /// doing is then judged as after a crash.
    pub deadline_grace: Duration,
    /// After how much a segment gives its place to others and goes on as the next one (engine b.4).
    pub yield_after: YieldAfter,
    /// How long running commands get at a stop before they are killed (decisions, Stop).
    pub stop_grace: Duration,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            max_advances: 512,
            advance_deadline: Duration::from_secs(50 * 60),
            deadline_grace: Duration::from_secs(30),
            yield_after: YieldAfter::default(),
            stop_grace: Duration::from_secs(30),
        }
    }
}

/// Runs advances in this process. Cheap to clone.
#[derive(Clone)]
pub struct Scheduler(Arc<Inner>);

struct Inner {
    advancer: Advancer,
    config: SchedulerConfig,
    places: Semaphore,
    sessions: Mutex<Sessions>,
    /// Told when the last advance has ended.
    idle: Notify,
}

#[derive(Default)]
struct Sessions {
    is_stopping: Stopping,
    running: HashMap<SessionId, Running>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stopping {
    #[default]
    No,
    Yes,
}

struct Running {
    abort: AbortHandle,
    again: Again,
}

enum Again {
    No,
    /// A wake came while the session was being advanced; the newest turn that it began, if it did.
    Yes(Option<Box<Begun>>),
}

impl Scheduler {
    /// A scheduler whose advances are owned by `worker` and run by `harness`.
    pub fn new(committer: Committer, harness: Arc<dyn Harness>, worker: WorkerId, config: SchedulerConfig) -> Self {
        let places = Semaphore::new(config.max_advances);
        let (manifests, transcripts) = (Manifests::default(), Transcripts::default());
        let yield_after = config.yield_after;
        let advancer = Advancer { committer, harness, worker, manifests, transcripts, yield_after };
        Self(Arc::new(Inner { advancer, config, places, sessions: Mutex::default(), idle: Notify::new() }))
    }

    /// Asks for the session to be advanced. Asking twice is the same as once.
    pub fn wake(&self, session: &SessionId) {
        self.schedule(session, None);
    }

    /// Asks for the session of a committed change to be advanced. A turn that it began is not read back.
    pub fn wake_after(&self, change: &SessionChange) {
        self.schedule(&change.session.id, Begun::by(change).map(Box::new));
    }

    fn schedule(&self, session: &SessionId, begun: Option<Box<Begun>>) {
        let abort = {
            let mut sessions = self.sessions();
            if sessions.is_stopping == Stopping::Yes {
                // The durable wake stays: the next process finds it.
                return;
            }
            if let Some(running) = sessions.running.get_mut(session) {
                let earlier = match std::mem::replace(&mut running.again, Again::No) {
                    Again::Yes(earlier) => earlier,
                    Again::No => None,
                };
                running.again = Again::Yes(begun.or(earlier));
                return;
            }
            let (handle, abort) = abort_pair();
            sessions.running.insert(session.clone(), Running { abort: handle, again: Again::No });
            abort
        };
        let scheduler = self.clone();
        let session = session.clone();
        tokio::spawn(async move { scheduler.advance_until_done(&session, begun, abort).await });
    }

    /// Tells a running advance that its turn was cancelled. The cancel itself is committed already.
    pub fn cancel(&self, session: &SessionId) {
        if let Some(running) = self.sessions().running.get(session) {
            running.abort.abort(AbortKind::Cancel);
        }
    }

    /// Gives up every advance without another write: this process may not be the owner any more. The sweep finds what
    /// is left.
    pub fn abandon(&self) {
        for running in self.sessions().running.values() {
            running.abort.abort(AbortKind::OwnershipLost);
        }
    }

    /// Gives back the memory of sessions that have not been talked to for a while.
    pub(crate) fn expire_transcripts(&self) {
        self.0.advancer.transcripts.expire(std::time::Instant::now());
    }

    /// Whether this process advances the session now.
    pub fn is_advancing(&self, session: &SessionId) -> bool {
        self.sessions().running.contains_key(session)
    }

    /// How many sessions this process advances now.
    pub fn advancing(&self) -> usize {
        self.sessions().running.len()
    }

    /// Stops: no new advance begins; running ones record what they have and give their sessions back.
    pub async fn stop(&self) {
        self.abort_all(AbortKind::Shutdown);
        if tokio::time::timeout(self.0.config.stop_grace, self.until_idle()).await.is_err() {
            self.abort_all(AbortKind::Deadline);
            self.until_idle().await;
        }
    }

    fn abort_all(&self, kind: AbortKind) {
        let mut sessions = self.sessions();
        sessions.is_stopping = Stopping::Yes;
        for running in sessions.running.values() {
            running.abort.abort(kind);
        }
    }

    async fn until_idle(&self) {
        loop {
            let idle = self.0.idle.notified();
            if self.sessions().running.is_empty() {
                return;
            }
            idle.await;
        }
    }

    async fn advance_until_done(&self, session: &SessionId, mut begun: Option<Box<Begun>>, mut abort: Abort) {
        let mut looks = 0_u32;
        loop {
            let advanced = match self.0.places.acquire().await {
                Ok(_place) => self.advance_once(session, begun.take(), abort.clone()).await,
                Err(_closed) => Advanced::Done,
            };
            let wait = match advanced {
                Advanced::Done => None,
                // One that was told to end does not look again: it would be told the same.
                Advanced::Again if abort.kind().is_none() => continue,
                Advanced::Again => None,
                // A round of its own: its deadline and its abort begin anew.
                Advanced::GoesOn => {
                    self.ask_again(session);
                    None
                }
                Advanced::RetryAfter(wait) => Some(wait),
                Advanced::Stuck => {
                    looks = looks.saturating_add(1);
                    Some(pause_after(looks))
                }
            };
            if let Some(wait) = wait {
                tokio::select! {
                    () = tokio::time::sleep(wait) => continue,
                    _ = abort.aborted() => {}
                }
            }
            looks = 0;
            match self.next_round(session) {
                Some(next) => (begun, abort) = next,
                None => return,
            }
        }
    }

    fn ask_again(&self, session: &SessionId) {
        if let Some(running) = self.sessions().running.get_mut(session)
            && let Again::No = running.again
        {
            running.again = Again::Yes(None);
        }
    }

    async fn advance_once(&self, session: &SessionId, begun: Option<Box<Begun>>, abort: Abort) -> Advanced {
        let advance = self.0.advancer.advance(session, begun.map(|begun| *begun), abort);
        tokio::pin!(advance);
        tokio::select! {
            advanced = &mut advance => return advanced,
            () = tokio::time::sleep(self.0.config.advance_deadline) => {}
        }
        if let Some(running) = self.sessions().running.get(session) {
            running.abort.abort(AbortKind::Deadline);
        }
        match tokio::time::timeout(self.0.config.deadline_grace, advance).await {
            Ok(advanced) => advanced,
            Err(_) => {
                log::abandoned(session);
                Advanced::GoesOn
            }
        }
    }

    /// Ends the session's advance, unless a wake came meanwhile: then what it began and a fresh abort for one more
    /// round.
    fn next_round(&self, session: &SessionId) -> Option<(Option<Box<Begun>>, Abort)> {
        let mut sessions = self.sessions();
        let again = sessions.running.remove(session).map_or(Again::No, |running| running.again);
        match again {
            Again::Yes(begun) if sessions.is_stopping == Stopping::No => {
                let (handle, abort) = abort_pair();
                sessions.running.insert(session.clone(), Running { abort: handle, again: Again::No });
                Some((begun, abort))
            }
            Again::Yes(_) | Again::No => {
                if sessions.running.is_empty() {
                    self.0.idle.notify_waiters();
                }
                None
            }
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner of this process's advances.
    pub fn worker(&self) -> &WorkerId {
        &self.0.advancer.worker
    }

    pub(crate) fn committer(&self) -> &Committer {
        &self.0.advancer.committer
    }
}
