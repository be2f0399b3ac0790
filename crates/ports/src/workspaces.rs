//! Workspaces: the manager as its callers see it, the log it keeps, and the backends it drives (environments 2, 3).

use nylorun_domain::id::{SessionId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::time::Millis;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::{WorkspaceEvent, WorkspaceKey, WorkspaceRecord, WorkspaceSpec};

use crate::BoxFuture;
use crate::abort::Abort;
use crate::backends::BackendReport;

/// One call of a workspace tool.
#[derive(Clone, Debug)]
pub struct WorkspaceCall {
    /// The run that calls, or `None` for the session's tool route.
    pub claim: Option<RunClaim>,
    /// The session that owns the workspace: its lane keeps calls in order, and its log gets what is said of it.
    pub owner: SessionId,
    /// The workspace.
    pub key: WorkspaceKey,
    /// What to make it with, if it is not there.
    pub spec: WorkspaceSpec,
    /// The tool.
    pub tool: WorkspaceTool,
    /// Its input, not yet checked.
    pub input: Json,
}

/// A run of a turn, and the epoch under which it holds its session: what it says after it lost the session is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunClaim {
    /// The session.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: TurnId,
    /// The epoch.
    pub epoch: i64,
}

/// What became of a call. What happened to the workspace itself for it, an opening say, is in its log already.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceAnswer {
    /// The outcome.
    pub outcome: WorkspaceOutcome,
    /// Events to record with the outcome, in the same transaction, in this order. A turn that calls in the workspace of
    /// another session has none: they are in that session's log already.
    pub events: Vec<WorkspaceEvent>,
}

/// Outcomes of a tool call (environments 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceOutcome {
    /// A definite outcome.
    Done(ToolOutcome),
    /// The call was sent and its answer lost. Never of a read-only tool.
    Uncertain {
        /// What is known.
        message: String,
    },
    /// The call was aborted before it began, or killed.
    Aborted,
}

/// Runs tools in workspaces.
pub trait Workspaces: Send + Sync {
    /// Runs one tool. Calls of one session on one workspace run in the order in which this was called.
    fn call(&self, call: WorkspaceCall, abort: Abort) -> BoxFuture<'_, WorkspaceAnswer>;
}

/// Why a workspace was not removed. It may be tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the workspace was not removed: {0}")]
pub struct RemovalError(pub String);

/// Removes workspaces.
pub trait WorkspaceRemoval: Send + Sync {
    /// Removes a workspace with its files and its record, after the calls that run on it or wait for it. One that is
    /// not there is fine.
    fn remove<'a>(&'a self, key: &'a WorkspaceKey) -> BoxFuture<'a, Result<(), RemovalError>>;
}

/// Tells which backends there are.
pub trait WorkspaceReports: Send + Sync {
    /// What the probes said. They run at the first call and hold for the life of the process.
    fn backends(&self) -> BoxFuture<'_, BackendReport>;
}

/// A change that the manager itself makes known, outside a tool's outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceChange {
    /// The owning session, whose log gets the event.
    pub session_id: SessionId,
    /// The run on whose behalf, of this session or of one that shares its workspace. The change is refused when its
    /// session has a newer epoch.
    pub claim: Option<RunClaim>,
    /// The event.
    pub event: WorkspaceEvent,
    /// The record as it is now, when it changed.
    pub record: Option<WorkspaceRecord>,
}

/// Why the log refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The run that asks has lost its session.
    #[error("the session has another owner")]
    OwnershipLost,
    /// The store did not answer.
    #[error("workspace records unavailable: {0}")]
    Unavailable(String),
}

/// Keeps the records and writes the events of the manager, which reaches no store itself.
pub trait WorkspaceLog: Send + Sync {
    /// The record of this key.
    fn record(&self, key: &WorkspaceKey) -> BoxFuture<'_, Result<Option<WorkspaceRecord>, LogError>>;
    /// All records.
    fn records(&self) -> BoxFuture<'_, Result<Vec<WorkspaceRecord>, LogError>>;
    /// Writes an event and the record that goes with it, if one does, together.
    fn write(&self, change: WorkspaceChange) -> BoxFuture<'_, Result<(), LogError>>;
    /// Forgets the record of a removed workspace.
    fn forget(&self, key: &WorkspaceKey) -> BoxFuture<'_, Result<(), LogError>>;
    /// Whether the session that owns this record still exists.
    fn owner_exists(&self, record: &WorkspaceRecord) -> BoxFuture<'_, Result<bool, LogError>>;
    /// The time now.
    fn now(&self) -> Millis;
}
