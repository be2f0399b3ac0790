//! A harness as a client of core (engine a.9): it leases runs, keeps them alive, and gives them back.

mod core;
mod run;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::id::TenantId;
use nylorun_domain::json::Json;
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::{Abort, AbortHandle, AbortKind, abort_pair};
use nylorun_ports::frames::FramePort;
use nylorun_ports::run::Harness;
use nylorun_wire::harness::API;
use nylorun_wire::harness::frame::{ApiError, ErrorCode};
use nylorun_wire::harness::hello::{Capabilities, Hello, Welcome};
use nylorun_wire::harness::lease::{CancelRun, Lease, Leased, Slots};
use nylorun_wire::harness::method::HarnessRequest;
use nylorun_wire::harness::shape::decode;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::channel::{Channel, Checks, Handled, Handler, Messages};
use crate::refusal::kind_of;
use run::Running;

/// How long after a refused lease the next is asked for.
const RETRY: Duration = Duration::from_millis(100);

/// How a harness presents itself.
#[derive(Clone, Debug)]
pub struct HarnessClientConfig {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Most runs at once; `None` for no limit.
    pub max_runs: Option<NonZeroU32>,
    /// Whether it checks what it sends.
    pub checks: Checks,
}

/// A harness that is connected to core.
#[derive(Debug)]
pub struct HarnessClient {
    stop: watch::Sender<Wanted>,
    task: JoinHandle<()>,
}

/// What is wanted of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Runs,
    Rest,
}

impl HarnessClient {
    /// Takes runs over this connection, and runs them by `harness`.
    pub fn start(port: FramePort, harness: Arc<dyn Harness>, config: HarnessClientConfig) -> Self {
        let (stop, wanted) = watch::channel(Wanted::Runs);
        let channel = Channel::open(port, config.checks, Arc::new(NoWorkspaces));
        Self { stop, task: tokio::spawn(serve(channel, harness, config, wanted)) }
    }

    /// Takes no more runs, gives back those that it has, and closes the connection: after `limit` at the latest.
    pub async fn stop(mut self, limit: Duration) {
        self.stop.send_replace(Wanted::Rest);
        if tokio::time::timeout(limit, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }

    /// Waits until its connection is gone and its runs have ended.
    pub async fn ended(&mut self) {
        // A task that was aborted has ended too.
        let _aborted = (&mut self.task).await;
    }
}

/// Core asks for workspaces only of a harness that declared them, and this one does not.
struct NoWorkspaces;

impl Handler for NoWorkspaces {
    fn handle(&self, method: String, params: Json, _abort: Abort) -> BoxFuture<'_, Handled> {
        let result = match HarnessRequest::read(&method, params.as_str()) {
            Ok(_) => Err(ApiError::new(ErrorCode::Unavailable, "this harness serves no workspaces")),
            Err(error) => Err(error.into()),
        };
        Box::pin(std::future::ready(result.into()))
    }
}

async fn serve(
    channel: Channel,
    harness: Arc<dyn Harness>,
    config: HarnessClientConfig,
    mut wanted: watch::Receiver<Wanted>,
) {
    let messages = channel.messages();
    let capabilities = Capabilities { workspace: None };
    let hello = Hello { api: API, name: config.name.clone(), version: config.version.clone(), capabilities };
    let welcome = tokio::select! {
        welcome = channel.call(&hello) => welcome,
        _ = wanted.wait_for(|wanted| *wanted == Wanted::Rest) => return channel.close("the harness stops"),
    };
    match welcome {
        Ok(welcome) if welcome.api == API => {
            let client = Client::new(channel.clone(), harness, config, welcome);
            client.take_runs(messages, wanted).await;
            channel.close("the harness stops");
        }
        Ok(welcome) => {
            tracing::error!(core = welcome.api, ours = API, "core speaks another version of the Harness API");
            channel.close("another version of the Harness API");
        }
        Err(error) => {
            tracing::error!(%error, "core refuses this harness");
            channel.close("refused");
        }
    }
}

/// A client that was welcomed.
struct Client {
    channel: Channel,
    harness: Arc<dyn Harness>,
    max_runs: Option<NonZeroU32>,
    tenant: TenantId,
    renew_every: Duration,
    runs: HashMap<String, AbortHandle>,
    tasks: JoinSet<String>,
}

/// A lease that is being asked for.
type Asking = BoxFuture<'static, Result<Leased, ApiError>>;

impl Client {
    fn new(channel: Channel, harness: Arc<dyn Harness>, config: HarnessClientConfig, welcome: Welcome) -> Self {
        Self {
            channel,
            harness,
            max_runs: config.max_runs,
            tenant: welcome.tenant_id,
            renew_every: Duration::from_millis(welcome.renew_every_ms),
            runs: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Takes runs until it is to rest or the connection is gone, and then waits for those that it has.
    async fn take_runs(mut self, mut messages: Messages, mut wanted: watch::Receiver<Wanted>) {
        let channel = self.channel.clone();
        let mut asking: Option<Asking> = None;
        let mut is_resting = false;
        while !(is_resting && self.tasks.is_empty()) {
            if asking.is_none() && !is_resting {
                asking = self.ask(Duration::ZERO);
            }
            tokio::select! {
                biased;
                () = until_rest(&channel, &mut wanted), if !is_resting => {
                    is_resting = true;
                    asking = None;
                    self.runs.values().for_each(|run| run.abort(AbortKind::Shutdown));
                }
                // Before messages: a run that is told to end at once is known by then.
                leased = until_leased(&mut asking) => asking = match leased {
                    Ok(leased) => {
                        self.begin(leased);
                        None
                    }
                    Err(error) => {
                        tracing::debug!(%error, "no lease");
                        self.ask(RETRY)
                    }
                },
                Some((method, params)) = messages.recv() => self.heard(&method, &params),
                Some(ended) = self.tasks.join_next() => {
                    if let Ok(run_id) = ended {
                        self.runs.remove(&run_id);
                    }
                }
            }
        }
    }

    /// Asks for a run after this long, when there is room for one.
    fn ask(&self, after: Duration) -> Option<Asking> {
        let taken = u32::try_from(self.runs.len()).unwrap_or(u32::MAX);
        let slots = match self.max_runs {
            None => None,
            Some(most) => Some(NonZeroU32::new(most.get().saturating_sub(taken)).map(Slots)?),
        };
        let channel = self.channel.clone();
        Some(Box::pin(async move {
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            channel.call(&Lease { slots }).await
        }))
    }

    fn begin(&mut self, leased: Leased) {
        let run_id = leased.run.run_id.clone();
        let (handle, abort) = abort_pair();
        self.runs.insert(run_id.clone(), handle.clone());
        let running = Running { channel: self.channel.clone(), run_id, handle, abort, renew_every: self.renew_every };
        let (harness, tenant) = (Arc::clone(&self.harness), self.tenant.clone());
        self.tasks.spawn(running.run(harness, leased, tenant));
    }

    fn heard(&self, method: &str, params: &Json) {
        if method != CancelRun::METHOD {
            return;
        }
        match decode::<CancelRun>(params) {
            Ok(cancel) => {
                if let Some(run) = self.runs.get(&cancel.run_id) {
                    run.abort(kind_of(cancel.reason));
                }
            }
            Err(error) => tracing::debug!(%error, "a malformed message is dropped"),
        }
    }
}

/// Waits until the client is to rest, or its connection is gone.
async fn until_rest(channel: &Channel, wanted: &mut watch::Receiver<Wanted>) {
    let resting = async {
        if wanted.wait_for(|wanted| *wanted == Wanted::Rest).await.is_err() {
            // Whoever could ask for rest is gone; the connection still ends it.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = resting => {}
        _ = channel.closed() => {}
    }
}

async fn until_leased(asking: &mut Option<Asking>) -> Result<Leased, ApiError> {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}
