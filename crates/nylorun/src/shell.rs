//! The child process in which the virtual shell of one workspace runs: this program under a word that is no command.

use std::ffi::OsString;
use std::process::ExitCode;

/// The word. It stands beside the commands, so that neither help nor completions offer it.
pub(crate) const WORD: &str = "internal-shell";

/// Serves one workspace on standard input and output, until the input ends. What goes wrong is in its first frame.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    nylorun_workspace::run_shell_child(words)
}
