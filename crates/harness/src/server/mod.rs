//! Core's end of the Harness API (engine a.7): it offers runs to whoever leases them, and answers for each run in the
//! place of the runtime.

mod connection;
mod run;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nylorun_domain::id::TenantId;
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::{Abort, AbortKind};
use nylorun_ports::frames::FramePort;
use nylorun_ports::run::{CoreError, Harness, RunCore, RunEnd, TurnStart};
use nylorun_wire::harness::lease::CancelRun;
use nylorun_wire::harness::shape::encode;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::channel::{Channel, Checks};
use crate::refusal::reason_of;
use connection::Connection;
use run::{Run, Stage};
use state::State;

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct HarnessServerConfig {
    /// The tenant whose turns it offers.
    pub tenant: TenantId,
    /// The backend that workspaces are wanted on; `None` when the harness chooses.
    pub backend: Option<String>,
    /// How often harnesses are to renew their runs: a third of an owner's lease (engine b.4).
    pub renew_every: Duration,
    /// How long an offered run waits for a harness (engine a.7).
    pub offer_wait: Duration,
    /// How long a run may take to end after its deadline, before it is abandoned (engine b.4).
    pub grace: Duration,
    /// Makes the ids of runs: random, never the same twice.
    pub fresh_id: fn() -> String,
}

impl HarnessServerConfig {
    /// The usual times.
    pub fn new(tenant: TenantId, fresh_id: fn() -> String) -> Self {
        Self {
            tenant,
            backend: None,
            renew_every: Duration::from_secs(10),
            offer_wait: Duration::from_secs(10),
            grace: Duration::from_secs(30),
            fresh_id,
        }
    }
}

/// Offers runs to connected harnesses, and stands in for them towards the scheduler. Cheap to clone.
#[derive(Clone)]
pub struct HarnessServer(Arc<Inner>);

struct Inner {
    config: HarnessServerConfig,
    state: Mutex<State>,
    /// How many leases wait for a run.
    waiting: watch::Sender<usize>,
}

impl HarnessServer {
    /// A server that no harness is connected to yet.
    pub fn new(config: HarnessServerConfig) -> Self {
        Self(Arc::new(Inner { config, state: Mutex::default(), waiting: watch::Sender::new(0) }))
    }

    /// Serves a harness over this connection, until either side closes it. `checks` says whether what is sent is
    /// checked.
    pub fn connect(&self, port: FramePort, checks: Checks) {
        let mut state = self.state();
        let id = state.next_connection();
        // Under the lock: a request that comes at once finds its connection.
        let channel = Channel::open(port, checks, Arc::new(Connection::new(self.clone(), id)));
        if state.is_closed() {
            return channel.close("core stops");
        }
        state.connected(id, channel.clone());
        drop(state);
        let server = self.clone();
        tokio::spawn(async move {
            let reason = channel.closed().await;
            tracing::info!(connection = id, reason, "a harness is gone");
            server.state().disconnected(id);
            server.count_leases();
        });
    }

    /// Waits until a harness waits for a run.
    pub async fn ready(&self) {
        // The sender is kept by this very server.
        let mut waiting = self.0.waiting.subscribe();
        let _gone = waiting.wait_for(|waiting| *waiting > 0).await;
    }

    /// Closes all connections, and offers nothing more.
    pub fn close(&self) {
        let channels = self.state().close();
        channels.iter().for_each(|channel| channel.close("core stops"));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_leases(&self) {
        let waiting = self.state().waiting();
        self.0.waiting.send_replace(waiting);
    }

    /// Waits for a harness to take the run; `Err` is how the run ended without one.
    async fn until_taken(&self, run: &Arc<Run>, abort: &mut Abort) -> Result<Channel, RunEnd> {
        let mut stage = run.stage();
        let end = tokio::select! {
            biased;
            taken = run::taken(&mut stage) => return taken,
            kind = abort.aborted() => ended_in_queue(kind, abort),
            () = tokio::time::sleep(self.0.config.offer_wait) => {
                let wait_ms = self.0.config.offer_wait.as_millis();
                RunEnd::Released(CoreError::Unavailable(format!("no harness took the turn within {wait_ms} ms")))
            }
        };
        // Handed over at this very moment: then it ends as a taken one does.
        if self.state().withdraw(run) { Err(end) } else { run::taken(&mut stage).await }
    }

    /// Waits for a taken run to end, and tells its harness when it is to.
    async fn until_ended(&self, run: &Arc<Run>, channel: &Channel, abort: &mut Abort) -> RunEnd {
        let mut stage = run.stage();
        let mut told: Option<AbortKind> = None;
        let mut grace_ends_at: Option<Instant> = None;
        loop {
            let kind = tokio::select! {
                biased;
                end = run::ended(&mut stage) => return end,
                kind = more_urgent(abort, told) => kind,
                () = until(grace_ends_at) => {
                    tracing::warn!(run = run.id(), "a harness does not end its run, which is abandoned");
                    run.end(RunEnd::ConnectionLost);
                    // An output that is being settled still decides how it ends.
                    grace_ends_at = None;
                    continue;
                }
            };
            // A deadline after a shutdown ends its grace; alone it is the turn's own. The harness has to hear both.
            let first = abort.first_kind().filter(|first| told.is_none() && *first != kind);
            for kind in first.into_iter().chain([kind]) {
                let cancel = CancelRun { run_id: run.id().to_owned(), reason: reason_of(kind), message: None };
                channel.notify(CancelRun::METHOD, encode(&cancel));
            }
            told = Some(kind);
            match kind {
                // Nothing that the harness still does may count.
                AbortKind::Cancel => drop(run.end(RunEnd::Released(CoreError::TurnCancelled))),
                AbortKind::OwnershipLost => drop(run.end(RunEnd::Released(CoreError::OwnershipLost))),
                AbortKind::Deadline => grace_ends_at = Some(Instant::now() + self.0.config.grace),
                AbortKind::Shutdown => {}
            }
        }
    }
}

/// How a run ends that nobody took before it was told to.
fn ended_in_queue(kind: AbortKind, abort: &Abort) -> RunEnd {
    match (kind, abort.first_kind()) {
        (AbortKind::Cancel, _) => RunEnd::Released(CoreError::TurnCancelled),
        (AbortKind::OwnershipLost, _) => RunEnd::Released(CoreError::OwnershipLost),
        (AbortKind::Deadline, Some(AbortKind::Deadline)) => {
            RunEnd::Released(CoreError::Unavailable("no harness took the turn before its deadline".to_owned()))
        }
        (AbortKind::Shutdown | AbortKind::Deadline, _) => RunEnd::Stopped,
    }
}

async fn more_urgent(abort: &mut Abort, told: Option<AbortKind>) -> AbortKind {
    match told {
        None => abort.aborted().await,
        Some(told) => abort.aborted_beyond(told).await,
    }
}

/// Waits until then; for ever without a time.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

impl Harness for HarnessServer {
    fn run(&self, start: TurnStart, core: Arc<dyn RunCore>, abort: Abort) -> BoxFuture<'_, RunEnd> {
        Box::pin(async move {
            let mut abort = abort;
            let run = Arc::new(Run::new((self.0.config.fresh_id)(), start, core, abort.clone()));
            let _offer = Offer { server: self, run: &run };
            if !self.state().offer(&run) {
                return RunEnd::Released(CoreError::Unavailable("the harness server is closed".to_owned()));
            }
            self.count_leases();
            match self.until_taken(&run, &mut abort).await {
                Ok(channel) => self.until_ended(&run, &channel, &mut abort).await,
                Err(end) => end,
            }
        })
    }
}

/// A run that is offered or taken. When nobody waits for its end any more, nothing may come of it.
struct Offer<'a> {
    server: &'a HarnessServer,
    run: &'a Arc<Run>,
}

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        if let Stage::Taken { channel, .. } = self.run.end(RunEnd::Released(CoreError::OwnershipLost)) {
            let reason = reason_of(AbortKind::OwnershipLost);
            let cancel = CancelRun { run_id: self.run.id().to_owned(), reason, message: None };
            channel.notify(CancelRun::METHOD, encode(&cancel));
        }
        self.server.state().forget(self.run);
    }
}
