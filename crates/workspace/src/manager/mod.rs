//! The workspace manager (environments 3): opens workspaces for the calls that need them, keeps calls in their lanes,
//! stops what is idle and removes what nobody owns. It reaches no store and owns no timer.

mod call;
mod choice;
mod events;
mod lanes;
mod open;
mod reads;
mod slots;
mod sweep;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nylorun_domain::id::{SessionId, TenantId};
use nylorun_domain::time::Millis;
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceSpec};
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::backends::{Backend, BackendReport, WorkspaceHandle};
use nylorun_ports::workspaces::{
    RemovalError, RunClaim, WorkspaceAnswer, WorkspaceCall, WorkspaceLog, WorkspaceRemoval, WorkspaceReports,
    Workspaces,
};
use tokio::sync::Notify;

use crate::files::Quota;
use crate::virtual_backend::{ShellCommand, VirtualBackend};
use choice::Backends;
pub use choice::Preference;
use lanes::{Lane, Lanes, Ticket};
pub use reads::{WorkspaceRead, WorkspaceReadOutcome};
use slots::{Slot, Slots};
pub use sweep::RemoveError;

/// How a manager is set up.
#[derive(Clone, Debug)]
pub struct ManagerConfig {
    /// The runtime's home directory; workspaces of the `virtual` backend are below its `tenant/workspaces`.
    pub home: PathBuf,
    /// The tenant.
    pub tenant: TenantId,
    /// The host's id: what is made on a shared engine is labelled with it.
    pub host_id: String,
    /// The backend that the operator wants.
    pub preference: Preference,
    /// How the virtual shell's child is started.
    pub shell_command: ShellCommand,
    /// What each workspace may hold on disk.
    pub quota: Quota,
    /// How many workspaces run at once. Each is one process of the `virtual` backend.
    pub max_live: NonZeroU32,
    /// What becomes of workspaces at the end.
    pub lifetime: Lifetime,
}

impl ManagerConfig {
    /// How many workspaces run at once unless the operator sets something else.
    pub const DEFAULT_MAX_LIVE: NonZeroU32 = NonZeroU32::MIN.saturating_add(63);
}

/// What becomes of workspaces when the manager closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Their files stay.
    Durable,
    /// They are deleted.
    Ephemeral,
}

/// The manager. Cheap to clone.
#[derive(Clone)]
pub struct WorkspaceManager(Arc<Inner>);

struct Inner {
    prefix: String,
    lifetime: Lifetime,
    backends: Backends,
    slots: Slots,
    log: Arc<dyn WorkspaceLog>,
    spaces: Mutex<HashMap<WorkspaceKey, Arc<Space>>>,
    closing: AtomicBool,
    reconciled: AtomicBool,
    /// Told whenever a visit ends.
    left: Notify,
}

/// One workspace, as this process holds it.
struct Space {
    key: WorkspaceKey,
    lanes: Arc<Lanes>,
    /// Locked while the workspace is opened or stopped; calls run without it, on a clone of the handle.
    state: tokio::sync::Mutex<State>,
    /// How often opening was tried.
    tries: std::sync::atomic::AtomicU64,
}

#[derive(Default)]
struct State {
    /// What runs, once it was opened.
    live: Option<Live>,
    /// Of the first caller; later ones do not change it (sandbox-and-definitions a5, I7).
    idle_ms: Option<i64>,
    last_used: Option<Millis>,
    /// Why the last try to open it failed, for those that waited for that try.
    failure: Option<ToolOutcome>,
}

/// A workspace that runs, or whose process died and was not cleared away yet.
struct Live {
    handle: Arc<dyn WorkspaceHandle>,
    slot: Slot,
}

/// A call's presence in a workspace's lanes.
struct Visit {
    inner: Arc<Inner>,
    space: Arc<Space>,
    /// `None` only while it is dropped.
    ticket: Option<Ticket>,
}

impl Visit {
    async fn turn(&self) {
        if let Some(ticket) = &self.ticket {
            ticket.turn().await;
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        drop(self.ticket.take());
        self.inner.left.notify_waiters();
    }
}

/// On whose behalf a workspace is used.
#[derive(Clone, Debug)]
struct Caller {
    claim: Option<RunClaim>,
    owner: SessionId,
    spec: WorkspaceSpec,
}

impl WorkspaceManager {
    /// A manager over the backends of this build. Nothing is probed, made or read yet.
    pub fn new(config: ManagerConfig, log: Arc<dyn WorkspaceLog>) -> Self {
        let root = config.home.join("tenant").join("workspaces");
        let backend = Arc::new(VirtualBackend::new(root, config.shell_command.clone(), config.quota));
        Self::with_backends(config, vec![backend], log)
    }

    /// A manager over these backends, in the order in which `auto` tries them.
    pub fn with_backends(config: ManagerConfig, backends: Vec<Arc<dyn Backend>>, log: Arc<dyn WorkspaceLog>) -> Self {
        let ManagerConfig { tenant, preference, max_live, lifetime, .. } = config;
        Self(Arc::new(Inner {
            prefix: WorkspaceKey::prefix(&tenant),
            lifetime,
            backends: Backends::new(preference, backends),
            slots: Slots::new(max_live),
            log,
            spaces: Mutex::default(),
            closing: AtomicBool::new(false),
            reconciled: AtomicBool::new(false),
            left: Notify::new(),
        }))
    }

    /// What is known of the backends here. Probes them, if that was not done yet.
    pub async fn report(&self) -> BackendReport {
        self.0.backends.report().await
    }
}

impl WorkspaceReports for WorkspaceManager {
    fn backends(&self) -> BoxFuture<'_, BackendReport> {
        Box::pin(self.report())
    }
}

impl WorkspaceRemoval for WorkspaceManager {
    fn remove<'a>(&'a self, key: &'a WorkspaceKey) -> BoxFuture<'a, Result<(), RemovalError>> {
        Box::pin(async move { Self::remove(self, key).await.map_err(|error| RemovalError(error.to_string())) })
    }
}

impl Workspaces for WorkspaceManager {
    fn call(&self, call: WorkspaceCall, abort: Abort) -> BoxFuture<'_, WorkspaceAnswer> {
        // The place in the lane is taken now, not when the future is first polled. Sessions that share a workspace have
        // one lane in it, that of its owner: no two commands meet there.
        let visit = self.0.enter(&call.key, Lane::Session(call.owner.clone()));
        Box::pin(call::run(visit, call, abort))
    }
}

impl Inner {
    fn spaces(&self) -> MutexGuard<'_, HashMap<WorkspaceKey, Arc<Space>>> {
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place in the lanes of this workspace.
    fn enter(self: &Arc<Self>, key: &WorkspaceKey, lane: Lane) -> Visit {
        let mut spaces = self.spaces();
        let space = spaces.entry(key.clone()).or_insert_with(|| Arc::new(Space::new(key.clone())));
        // Under the map's lock: an entry that nobody visits may be forgotten.
        let ticket = space.lanes.enter(lane);
        Visit { inner: Arc::clone(self), space: Arc::clone(space), ticket: Some(ticket) }
    }

    /// Takes the whole workspace, if nobody is there.
    fn enter_if_empty(self: &Arc<Self>, key: &WorkspaceKey) -> Option<Visit> {
        let mut spaces = self.spaces();
        let space = spaces.entry(key.clone()).or_insert_with(|| Arc::new(Space::new(key.clone())));
        let ticket = space.lanes.enter_if_empty()?;
        Some(Visit { inner: Arc::clone(self), space: Arc::clone(space), ticket: Some(ticket) })
    }

    /// Forgets what is not held: a workspace that was stopped takes no memory.
    fn forget_if_unused(&self, key: &WorkspaceKey) {
        let mut spaces = self.spaces();
        let is_unused = spaces.get(key).is_some_and(|space| {
            space.lanes.is_empty() && space.state.try_lock().is_ok_and(|state| state.live.is_none())
        });
        if is_unused {
            spaces.remove(key);
        }
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }
}

impl Space {
    fn new(key: WorkspaceKey) -> Self {
        Self { key, lanes: Arc::default(), state: tokio::sync::Mutex::default(), tries: Default::default() }
    }
}
