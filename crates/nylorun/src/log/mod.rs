//! What the server says about itself while it runs.

mod file;

use std::io::IsTerminal as _;
use std::path::Path;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::cli::Failure;
use crate::config::{Idle, LogFormat, idle_of_process};
use crate::disk;
pub(crate) use file::rotated;
use file::{RotatingFile, Rotation};

/// Logs to standard error what the filter lets through (`NYLORUN_LOG`, checked with the other settings). Nothing that a
/// caller sent and no secret is ever logged.
pub(crate) fn to_stderr(filter: &str, format: LogFormat) {
    begin(filter, format, Target::Stderr);
}

/// Logs to a file, which is rotated by its size; panics too, since nobody reads standard error.
///
/// # Errors
/// The file cannot be opened.
pub(crate) fn to_file(filter: &str, format: LogFormat, path: &Path) -> Result<(), Failure> {
    let file = RotatingFile::open(path, Rotation::DEFAULT);
    let file = file.map_err(|error| disk::failure("cannot open the log", path, &error))?;
    begin(filter, format, Target::File(file));
    std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a task of the server panicked")));
    Ok(())
}

enum Target {
    Stderr,
    File(RotatingFile),
}

fn begin(filter: &str, format: LogFormat, target: Target) {
    let (writer, is_coloured) = match target {
        Target::Stderr => (BoxMakeWriter::new(std::io::stderr), std::io::stderr().is_terminal()),
        Target::File(file) => (BoxMakeWriter::new(std::sync::Mutex::new(file)), false),
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(writer)
        .with_ansi(is_coloured)
        .with_target(false)
        // What cannot be logged is lost: to say so on standard error would end this process where that is full too.
        .log_internal_errors(false);
    // A test may have set one already.
    let _ = match format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    for Idle { name, why } in idle_of_process() {
        tracing::warn!(variable = name, why, "a variable of the environment has no effect");
    }
}
