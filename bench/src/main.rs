//! Measures the release binary from outside, over HTTP, each figure beside a baseline of the same run.
//!
//! `make bench` runs it on SQLite and on a throw-away PostgreSQL, and writes the report to `bench/results/`. The model
//! is the built-in fixture: it has no latency, so what is measured is Nylorun itself.

mod bare;
mod report;
mod server;
mod start;
mod turns;

use report::Report;

/// Whatever went wrong: a benchmark that fails says so and ends.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A database that is measured.
#[derive(Clone, Debug)]
pub(crate) enum Database {
    /// The file in the home directory.
    Sqlite,
    /// This server, its sync to disk on.
    Postgres(String),
}

impl Database {
    /// Its name in the report.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let mut databases = vec![Database::Sqlite];
    match std::env::var("NYLORUN_TEST_POSTGRES_URL") {
        Ok(url) if !url.is_empty() => databases.push(Database::Postgres(url)),
        _ => eprintln_skipped(),
    }
    let mut report = Report::begin();
    for database in &databases {
        let bare = bare::measure(database).await?;
        report.bare(database, &bare);
        turns::one_session(database, &bare, &mut report).await?;
        turns::sixty_four_sessions(database, &mut report).await?;
        turns::twenty_tool_steps(database, &mut report).await?;
    }
    start::measure(&mut report).await?;
    report.finish()
}

fn eprintln_skipped() {
    use std::io::Write as _;
    // Nobody can be told when standard error is gone.
    let _ = writeln!(std::io::stderr(), "PostgreSQL is skipped: NYLORUN_TEST_POSTGRES_URL is not set (use make bench)");
}
