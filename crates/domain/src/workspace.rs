//! Workspaces: the files and the running compute behind one key (environments 1-3).

use crate::hash::sha256_hex;
use crate::id::{SessionId, TenantId};
use crate::model::words;
use crate::time::Millis;

/// Where a workspace's files are, as its tools see them.
pub const WORKSPACE_DIR: &str = "/workspace";

/// A workspace's key: `nylorun-<tenantId>-` and the first 16 hexadecimal digits of the session id's SHA-256
/// (environments 2).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspaceKey(String);

impl WorkspaceKey {
    /// The key of a session's own workspace.
    pub fn of_session(tenant: &TenantId, session: &SessionId) -> Self {
        Self(format!("{}{}", Self::prefix(tenant), &sha256_hex(session.as_str().as_bytes())[..16]))
    }

    /// What every key of a tenant begins with. Nothing with another prefix is ever listed, stopped or removed.
    pub fn prefix(tenant: &TenantId) -> String {
        format!("nylorun-{tenant}-")
    }

    /// A key read back from a store or a backend's listing.
    pub fn from_trusted(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a workspace is made with (sandbox-and-definitions a5, a7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceSpec {
    /// An image, on backends that take images.
    pub image: Option<String>,
    /// Processors.
    pub cpus: u32,
    /// Memory, in MiB.
    pub memory_mib: u32,
    /// Host patterns that may be reached; empty: no network.
    pub network_allow: Vec<String>,
    /// How long it may stay unused before its compute goes, in milliseconds.
    pub idle_ms: i64,
}

words! {
    /// Where a workspace's record says it is.
    WorkspaceState {
        /// Being made or reattached.
        Creating = "creating",
        /// Its compute runs.
        Running = "running",
        /// Files only.
        Stopped = "stopped",
    }
}

/// The durable record of a workspace (environments 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceRecord {
    /// Its key.
    pub key: WorkspaceKey,
    /// The session that owns it.
    pub session_id: SessionId,
    /// The environment that it belongs to, when it is not the session's own.
    pub environment_id: Option<String>,
    /// The backend that holds it; it keeps it for life (decisions, Workspaces).
    pub backend: String,
    /// The image, or empty.
    pub image: String,
    /// Where it is.
    pub state: WorkspaceState,
    /// When the record was made.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
}

/// What happened to a workspace, for the owning session's log (api 4.2; the record holds the newer names
/// `environment.*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceEvent {
    /// `environment.state`
    State {
        /// Its new state.
        state: WorkspaceState,
        /// The backend.
        backend: String,
        /// `process` or `container`, towards clients up to protocol 10.
        isolation: Option<String>,
        /// The image.
        image: Option<String>,
        /// The network, in words.
        network: Option<String>,
        /// A record existed: the workspace is opened again.
        reattach: bool,
        /// What the record says existed had to be made anew.
        lost: bool,
        /// Says what was lost.
        note: Option<String>,
        /// Why a start failed.
        error: Option<String>,
    },
    /// `environment.exec`
    Exec {
        /// The tool.
        tool: crate::tool::WorkspaceTool,
        /// The command's first 500 UTF-16 units, for `bash`.
        command: Option<String>,
        /// The path, for the file tools.
        path: Option<String>,
        /// A command's exit code.
        exit_code: Option<i64>,
        /// Whether the command was killed, at its time limit or by a cancel.
        killed: bool,
        /// How it ended.
        outcome: ExecOutcome,
        /// A failure's code.
        code: Option<String>,
        /// How long it took, in milliseconds. Of a call whose end nobody saw: how long ago it began.
        duration_ms: i64,
    },
}

words! {
    /// How a call in a workspace ended.
    ExecOutcome {
        /// It ran. A command that exited non-zero also ran.
        Completed = "completed",
        /// It refused its input, could not run, or was killed.
        Failed = "failed",
        /// Its answer was lost: it may or may not have happened.
        Uncertain = "uncertain",
    }
}
