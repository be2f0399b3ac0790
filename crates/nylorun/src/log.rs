//! What the server says about itself while it runs.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Logs to standard error. `NYLORUN_LOG` filters, `info` by default; nothing that a caller sent and no secret is ever
/// logged.
pub(crate) fn to_stderr() {
    let filter = EnvFilter::try_from_env("NYLORUN_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // A test may have set one already.
    let _ = subscriber.try_init();
}
