//! The shell child as a program of its own, for this crate's tests. The product's is `nylorun internal-shell`.

use std::process::ExitCode;

fn main() -> ExitCode {
    nylorun_workspace::run_shell_child(std::env::args_os().skip(1))
}
