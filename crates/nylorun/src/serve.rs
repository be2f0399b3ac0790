//! `nylorun serve`: the server in the foreground.

use std::io::Write as _;

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Failure, ServeArgs};
use crate::config::Config;
use crate::log;
use crate::runtime::Runtime;

/// Runs until SIGTERM or SIGINT, then lets turns come to rest.
///
/// # Errors
/// The settings cannot be used, or the runtime cannot start.
pub(crate) fn run(args: ServeArgs) -> Result<(), Failure> {
    let config = Config::of_process(&args)?;
    log::to_stderr(&config.log_filter);
    multi_thread_runtime()?.block_on(serve(&config))
}

/// The runtime of a server.
pub(crate) fn multi_thread_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the asynchronous runtime: {error}")))
}

async fn serve(config: &Config) -> Result<(), Failure> {
    let listen_for = |kind| signal(kind).map_err(|error| Failure::new(format!("cannot listen for signals: {error}")));
    let mut terminate = listen_for(SignalKind::terminate())?;
    let mut interrupt = listen_for(SignalKind::interrupt())?;
    let runtime = Runtime::start(config).await?;
    let mut out = std::io::stdout();
    writeln!(out, "nylorun is ready at {}", runtime.url()).and_then(|()| out.flush())?;
    let signal = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!(signal, turns = runtime.advancing(), grace_ms = config.stop_grace.as_millis(), "draining");
    tokio::select! {
        () = runtime.stop() => {}
        // A second signal does not wait for turns to come to rest: what they have is in the journal.
        _ = interrupt.recv() => tracing::warn!("a second signal: turns are left as they are"),
    }
    Ok(())
}
