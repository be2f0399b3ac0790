//! The child process in which the virtual shell of one workspace runs.

use std::process::ExitCode;

use crate::cli::{Failure, ShellArgs};

/// Serves one workspace on standard input and output, until the input ends.
///
/// # Errors
/// It could not serve; what was wrong went out in its first frame.
pub(crate) fn run(args: ShellArgs) -> Result<(), Failure> {
    let words = args.words.into_iter().map(std::ffi::OsString::from);
    if nylorun_workspace::run_shell_child(words) == ExitCode::SUCCESS { Ok(()) } else { Err(Failure::told()) }
}
