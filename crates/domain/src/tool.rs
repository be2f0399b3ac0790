//! Tools and what they give.

use crate::json::Json;
use crate::model::words;

/// What became of a tool call, as a definite fact. An answer that was lost is not an outcome: it makes the effect
/// uncertain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It ran. A command that exited non-zero also ran.
    Completed {
        /// What it gave.
        output: Json,
    },
    /// It refused its input, or could not run.
    Failed {
        /// A dotted word: `sandbox.not_found`.
        code: String,
        /// What is wrong and what would help.
        message: String,
    },
}

impl ToolOutcome {
    /// A failure.
    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        Self::Failed { code: code.to_owned(), message: message.into() }
    }
}

words! {
    /// The six built-in tools of a workspace (sandbox-and-definitions a2).
    WorkspaceTool {
        /// Runs a shell command.
        Bash = "bash",
        /// Reads a text file.
        Read = "read",
        /// Writes a file whole.
        Write = "write",
        /// Replaces text in a file.
        Edit = "edit",
        /// Searches file contents.
        Grep = "grep",
        /// Finds files by name.
        Glob = "glob",
    }
}

impl WorkspaceTool {
    /// Whether the tool only reads, so that it may run again when its answer was lost (decisions, What may run
    /// again).
    pub fn is_read_only(self) -> bool {
        match self {
            Self::Read | Self::Grep | Self::Glob => true,
            Self::Bash | Self::Write | Self::Edit => false,
        }
    }
}
