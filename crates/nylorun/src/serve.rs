//! `nylorun serve`: the server in the foreground, and what `nylorun start` leaves in the background.

use std::io::Write as _;

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Failure, Place, ServeArgs};
use crate::config::Config;
use crate::home::Home;
use crate::log;
use crate::runtime::Runtime;

/// Runs until SIGTERM or SIGINT, then lets turns come to rest.
///
/// # Errors
/// The settings cannot be used, or the runtime cannot start.
pub(crate) fn run(args: ServeArgs) -> Result<(), Failure> {
    let config = Config::of_process(&args)?;
    match args.place() {
        Place::Foreground => log::to_stderr(&config.log_filter, config.log_format),
        Place::Background => leave_the_terminal(&config)?,
    }
    multi_thread_runtime()?.block_on(serve(&config))
}

/// What follows the terminal's end, or a Ctrl-C in it, no longer reaches this process.
fn leave_the_terminal(config: &Config) -> Result<(), Failure> {
    rustix::process::setsid().map_err(|error| Failure::new(format!("cannot begin a session of its own: {error}")))?;
    log::to_file(&config.log_filter, config.log_format, &Home::prepare(&config.home)?.log_file())
}

/// What a server says on standard output when it is ready, before its URL.
pub(crate) const READY: &str = "nylorun is ready at ";

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
    if let Err(error) = writeln!(out, "{READY}{}", runtime.url()).and_then(|()| out.flush()) {
        // Who started it gave up meanwhile.
        runtime.stop().await;
        return Err(error.into());
    }
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
