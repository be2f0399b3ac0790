//! What the server says about itself while it runs.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::{Idle, idle_of_process};

/// Logs to standard error what the filter lets through (`NYLORUN_LOG`, checked with the other settings). Nothing that a
/// caller sent and no secret is ever logged.
pub(crate) fn to_stderr(filter: &str) {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // A test may have set one already.
    let _ = subscriber.try_init();
    for Idle { name, why } in idle_of_process() {
        tracing::warn!(variable = name, why, "a variable of the environment has no effect");
    }
}
