//! Workspaces: the manager, its lanes, the supervisor, the six tools, and the backends (environments 1-3).
//!
//! A call comes to the [`WorkspaceManager`], waits for its turn in its lane, has the workspace opened when it must
//! be, and is sent to the supervisor inside. The supervisor runs the command, or the file tool, and its answer
//! becomes the call's outcome.
//!
//! Modules stand in reading order.

mod manager;
mod virtual_backend;

mod supervisor;

mod shell;
mod tools;

mod files;

pub use files::Quota;
pub use manager::{
    Lifetime, ManagerConfig, Preference, RemoveError, WorkspaceManager, WorkspaceRead, WorkspaceReadOutcome,
};
pub use shell::run_shell_child;
pub use virtual_backend::{ShellCommand, VirtualBackend};
