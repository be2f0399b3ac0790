//! Workspace backends: what holds workspaces (sandbox-and-definitions a6). Four small seams, driven by the workspace
//! manager.
//!
//! A backend is found out by a [`Probe`], holds workspaces as a [`Backend`], and gives a [`WorkspaceHandle`] on one
//! that runs. Every backend passes the same contract suite.

use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::json::Json;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceSpec};

use crate::BoxFuture;
use crate::abort::Abort;

/// Whether a backend works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// A workspace was opened and a command ran in it.
    Available {
        /// The version of what runs it.
        version: String,
        /// Limits that cannot be enforced here, in words; empty when all are.
        partial: Vec<String>,
    },
    /// It does not work here.
    Unavailable {
        /// Why, and what would help.
        reason: String,
    },
}

/// Finds out whether a backend works here.
pub trait Probe: Send + Sync {
    /// Its name, as records and `NYLORUN_SANDBOX` have it: `virtual`.
    fn name(&self) -> &'static str;
    /// How its workspaces are kept apart, as clients up to protocol 10 know it: `process` or `container`.
    fn isolation(&self) -> &'static str;
    /// Runs the real thing once: the presence of a device or a command proves nothing (decisions, Workspaces).
    fn probe(&self) -> BoxFuture<'_, Probed>;
}

/// Holds workspaces.
pub trait Backend: Probe {
    /// Why this backend cannot give what `spec` asks for, or `None` when it can.
    fn unmet(&self, spec: &WorkspaceSpec) -> Option<String>;
    /// Opens the workspace of this key, and makes it when it is not there.
    fn open<'a>(
        &'a self,
        key: &'a WorkspaceKey,
        spec: &'a WorkspaceSpec,
    ) -> BoxFuture<'a, Result<Opened, BackendError>>;
    /// Deletes files and compute. One that is not there is no error.
    fn remove<'a>(&'a self, key: &'a WorkspaceKey) -> BoxFuture<'a, Result<(), BackendError>>;
    /// The keys that begin with `prefix` of all workspaces that it holds.
    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<WorkspaceKey>, BackendError>>;
}

/// A workspace that was opened.
pub struct Opened {
    /// The way into it.
    pub handle: Arc<dyn WorkspaceHandle>,
    /// Its files were made new; `false` when they were there.
    pub created: bool,
}

/// Why a backend could not do what was asked. Nothing ran.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// A running workspace.
pub trait WorkspaceHandle: Send + Sync {
    /// Whether calls can still be sent. Once `false`, always `false`.
    fn is_alive(&self) -> bool;
    /// Runs one shell command. Killed, with all its children, at its time limit, and when `abort` is told a kind beyond
    /// [`AbortKind::Shutdown`](crate::abort::AbortKind::Shutdown).
    fn exec(&self, command: ExecCommand, abort: Abort) -> BoxFuture<'_, Result<ExecResult, HandleError>>;
    /// Runs one of the file tools, `input` being as sandbox-and-definitions a2 has it. `None` when `abort` ended it,
    /// which it does to tools that only read. `bash` is refused.
    fn file_tool(
        &self,
        tool: WorkspaceTool,
        input: Json,
        abort: Abort,
    ) -> BoxFuture<'_, Result<Option<ToolOutcome>, HandleError>>;
    /// Reads a file whole, of at most `max` bytes. Relative paths stand in the workspace.
    fn read_bytes(&self, path: String, max: u64) -> BoxFuture<'_, Result<FileBytes, HandleError>>;
    /// Lists the files below a directory, links skipped (sandbox-and-definitions a6, listFiles rules).
    fn list_files(&self, dir: String, max_entries: u32) -> BoxFuture<'_, Result<Option<FileList>, HandleError>>;
    /// Ends the compute and everything that runs in it. Files stay.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// A shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecCommand {
    /// What the shell runs.
    pub command: String,
    /// Where; an absolute path.
    pub cwd: String,
    /// Variables of this command; the backend's own win.
    pub env: Vec<(String, String)>,
    /// When it is killed.
    pub time_limit: Duration,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecResult {
    /// The shell's exit code; 124 when killed at the time limit, 130 when killed by an abort.
    pub exit_code: i32,
    /// What it wrote, at most 30,000 UTF-16 units and a line that says how many were left out.
    pub stdout: String,
    /// As `stdout`.
    pub stderr: String,
    /// Whether one of them was cut.
    pub truncated: bool,
    /// Why it was killed, when it was.
    pub killed: Option<Killed>,
}

/// Why a command was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// Its time limit passed.
    TimeLimit,
    /// The call was aborted.
    Abort,
}

/// What [`WorkspaceHandle::read_bytes`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileBytes {
    /// The file.
    Bytes(Vec<u8>),
    /// There is no such file.
    Missing,
    /// It has this many bytes, more than were asked for.
    TooLarge(u64),
}

/// Files below a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileList {
    /// Their paths relative to the directory, sorted per directory, and sizes in bytes.
    pub entries: Vec<(String, u64)>,
    /// There are more.
    pub truncated: bool,
}

/// Why a handle gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// The call never reached the workspace: nothing ran, and it may be sent to another handle.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The call was sent and its answer is lost: it may or may not have run.
    #[error("{0}")]
    Lost(String),
}

/// What is known of backends here, for `nylorun doctor sandbox` (sandbox-and-definitions a6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendReport {
    /// What was asked for: `auto`, or a backend's name.
    pub preference: String,
    /// The backend that new workspaces get.
    pub backend: Option<&'static str>,
    /// Its isolation.
    pub isolation: Option<&'static str>,
    /// Why it was chosen, or why there is none.
    pub reason: String,
    /// Every backend of this build.
    pub probes: Vec<ProbeReport>,
}

/// What the probe of one backend said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeReport {
    /// Its name.
    pub name: &'static str,
    /// Its isolation.
    pub isolation: &'static str,
    /// Whether it works here.
    pub probed: Probed,
}
