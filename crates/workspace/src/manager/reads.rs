//! Reads outside tool calls: same lane, same rules (environments 3).

use nylorun_domain::id::SessionId;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceSpec};
use nylorun_ports::abort::Abort;
use nylorun_ports::backends::{FileBytes, FileList};
use nylorun_ports::workspaces::{RunClaim, WorkspaceOutcome};

use super::call::send;
use super::lanes::Lane;
use super::slots::Patience;
use super::{Caller, Visit, WorkspaceManager};
use crate::tools::FILE_TOOL_TIME;

/// Whose workspace is read, and for whom.
#[derive(Clone, Debug)]
pub struct WorkspaceRead {
    /// The run that reads, when a turn does.
    pub claim: Option<RunClaim>,
    /// The session that owns the workspace, in whose lane it is read.
    pub owner: SessionId,
    /// The workspace.
    pub key: WorkspaceKey,
    /// What to make it with, if it is not there.
    pub spec: WorkspaceSpec,
}

/// What a read gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceReadOutcome<T> {
    /// What was asked for.
    Found(T),
    /// There is no such file or directory, or no workspace.
    Missing,
    /// A definite failure: `artifact.too_large`, `sandbox.unavailable`, `sandbox.start_failed`, `sandbox.error`.
    Failed {
        /// A dotted word.
        code: String,
        /// What happened.
        message: String,
    },
}

impl WorkspaceManager {
    /// Reads a file whole, of at most `max` bytes. Relative paths stand in the workspace.
    pub async fn read_bytes(&self, read: WorkspaceRead, path: &str, max: u64) -> WorkspaceReadOutcome<Vec<u8>> {
        let (visit, caller) = self.visit(read);
        visit.turn().await;
        let patience = patience();
        let sent = send(&visit, &caller, &patience, WorkspaceTool::Read, |handle| {
            let path = path.to_owned();
            async move { handle.read_bytes(path, max).await }
        });
        match sent.await {
            Ok(FileBytes::Bytes(bytes)) => WorkspaceReadOutcome::Found(bytes),
            Ok(FileBytes::Missing) => WorkspaceReadOutcome::Missing,
            Ok(FileBytes::TooLarge(size)) => WorkspaceReadOutcome::Failed {
                code: "artifact.too_large".to_owned(),
                message: format!("{path} has {size} bytes; at most {max} are allowed."),
            },
            Err(outcome) => failed(outcome),
        }
    }

    /// Lists the files below a directory. A workspace that was never made is missing, and is not started for it.
    pub async fn list_files(&self, read: WorkspaceRead, dir: &str, max_entries: u32) -> WorkspaceReadOutcome<FileList> {
        let (visit, caller) = self.visit(read);
        visit.turn().await;
        match self.0.log.record(&visit.space.key).await {
            Ok(None) => WorkspaceReadOutcome::Missing,
            Err(error) => WorkspaceReadOutcome::Failed { code: "sandbox.error".to_owned(), message: error.to_string() },
            Ok(Some(_)) => {
                let patience = patience();
                let sent = send(&visit, &caller, &patience, WorkspaceTool::Glob, |handle| {
                    let dir = dir.to_owned();
                    async move { handle.list_files(dir, max_entries).await }
                });
                match sent.await {
                    Ok(Some(list)) => WorkspaceReadOutcome::Found(list),
                    Ok(None) => WorkspaceReadOutcome::Missing,
                    Err(outcome) => failed(outcome),
                }
            }
        }
    }

    fn visit(&self, read: WorkspaceRead) -> (Visit, Caller) {
        let WorkspaceRead { claim, owner, key, spec } = read;
        let visit = self.0.enter(&key, Lane::Session(owner.clone()));
        (visit, Caller { claim, owner, spec })
    }
}

/// A read waits for its workspace as a file tool does.
fn patience() -> Patience {
    Patience::new(Abort::never(), FILE_TOOL_TIME)
}

fn failed<T>(outcome: WorkspaceOutcome) -> WorkspaceReadOutcome<T> {
    let (code, message) = match outcome {
        WorkspaceOutcome::Done(ToolOutcome::Failed { code, message }) => (code, message),
        WorkspaceOutcome::Done(ToolOutcome::Completed { .. }) | WorkspaceOutcome::Aborted => {
            ("sandbox.error".to_owned(), "the session has another owner".to_owned())
        }
        WorkspaceOutcome::Uncertain { message } => ("sandbox.error".to_owned(), message),
    };
    WorkspaceReadOutcome::Failed { code, message }
}
