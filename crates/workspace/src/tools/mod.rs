//! The six tools (sandbox-and-definitions a2, a3). `bash` alone runs a shell; the others are one implementation over
//! the files of a workspace, on every backend, run by the process that serves them.

pub(crate) mod clip;
mod edit;
mod ere;
mod glob;
mod grep;
pub(crate) mod input;
mod read;
mod walk;
mod write;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nylorun_domain::json::Json;
use nylorun_domain::tool::ToolOutcome;

use crate::files::Files;
use input::FileCall;

/// How long a file tool may take (sandbox-and-definitions a3).
pub(crate) const FILE_TOOL_TIME: Duration = Duration::from_secs(60);

/// Most text that `read` and `grep` answer with, in bytes; then a line says how to go on (decisions, Workspaces).
const MAX_TEXT: usize = 256 * 1024;

/// When a file tool is to end.
#[derive(Clone, Debug)]
pub(crate) struct Until {
    cancelled: Arc<AtomicBool>,
    deadline: Instant,
}

/// Why a file tool ended without an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    Cancelled,
    TimeLimit,
}

impl Until {
    /// Until the flag is set, and for `time` at most.
    pub(crate) fn new(cancelled: Arc<AtomicBool>, time: Duration) -> Self {
        Self { cancelled, deadline: Instant::now() + time }
    }

    /// An error once it is over.
    fn check(&self) -> Result<(), Stopped> {
        if self.cancelled.load(Ordering::Relaxed) {
            Err(Stopped::Cancelled)
        } else if Instant::now() >= self.deadline {
            Err(Stopped::TimeLimit)
        } else {
            Ok(())
        }
    }
}

/// Runs a file tool. Only a tool that reads is ever stopped half-way.
pub(crate) fn run(files: &dyn Files, call: &FileCall, until: &Until) -> Result<ToolOutcome, Stopped> {
    until.check()?;
    match call {
        FileCall::Read(call) => read::read(files, call, until),
        FileCall::Write(call) => Ok(write::write(files, call)),
        FileCall::Edit(call) => Ok(edit::edit(files, call)),
        FileCall::Grep(call) => grep::grep(files, call, until),
        FileCall::Glob(call) => glob::glob(files, call, until),
    }
}

fn text_outcome(text: &str) -> ToolOutcome {
    ToolOutcome::Completed { output: Json::string(text) }
}

/// The failure of a tool that could not open the file that it was given.
fn open_failure(path: &Path, error: &io::Error) -> ToolOutcome {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            ToolOutcome::failed("sandbox.not_found", format!("There is no file at {path}."))
        }
        io::ErrorKind::IsADirectory => {
            ToolOutcome::failed("sandbox.not_found", format!("{path} is a directory, not a file."))
        }
        _ => ToolOutcome::failed("sandbox.error", format!("{path} cannot be read: {}", reason(error))),
    }
}

/// What an error of the file system says, without a number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
