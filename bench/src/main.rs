//! Measures the release binary from outside, over HTTP, each figure beside a baseline of the same run.
//!
//! `make bench` runs it on SQLite and on a throw-away PostgreSQL, and writes the report to `bench/results/`. The model
//! is the built-in fixture: it has no latency, so what is measured is Nylorun itself.

mod bare;
mod bulk;
mod compaction;
mod long;
mod many_events;
mod memory;
mod report;
mod server;
mod start;
mod turns;

use clap::{Parser, ValueEnum};
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

/// Measures the release binary over HTTP.
#[derive(Debug, Parser)]
struct Options {
    /// Only these parts; a report is written when all of them are measured
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
    /// Only this database
    #[arg(long)]
    database: Option<Engine>,
    /// The PostgreSQL server to measure on
    #[arg(long, env = "NYLORUN_TEST_POSTGRES_URL", hide_env_values = true)]
    postgres: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Latency, commits and statements of a turn
    Turn,
    /// 64 sessions at once
    Many,
    /// A turn of 20 tool steps
    Tools,
    /// Time until ready
    Start,
    /// A session of 10,000 events: following, reading, its next turn after a restart
    Long,
    /// Pages of a list of 100,000 sessions
    Lists,
    /// A database of a million events: bytes of each, and what takes longer than among 10,000
    Events,
    /// Compaction of a conversation of 200,000 tokens, in the engine alone
    Compaction,
    /// Memory of idle processes
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    Sqlite,
    Postgres,
}

impl Options {
    fn measures(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn databases(&self) -> Result<Vec<Database>, Failure> {
        let postgres = || {
            let url = self.postgres.clone().filter(|url| !url.is_empty());
            let url = url.ok_or("NYLORUN_TEST_POSTGRES_URL is not set: use make bench, or --database sqlite")?;
            Ok::<_, Failure>(Database::Postgres(url))
        };
        Ok(match self.database {
            Some(Engine::Sqlite) => vec![Database::Sqlite],
            Some(Engine::Postgres) => vec![postgres()?],
            None => vec![Database::Sqlite, postgres()?],
        })
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let options = Options::parse();
    let mut report = Report::begin();
    for database in &options.databases()? {
        let bare = bare::measure(database).await?;
        report.bare(database, &bare);
        if options.measures(Part::Turn) {
            turns::one_session(database, &bare, &mut report).await?;
        }
        if options.measures(Part::Many) {
            turns::sixty_four_sessions(database, &mut report).await?;
        }
        if options.measures(Part::Tools) {
            turns::twenty_tool_steps(database, &mut report).await?;
        }
        if options.measures(Part::Start) {
            start::measure(database, &mut report).await?;
        }
        if options.measures(Part::Long) {
            long::measure(database, &mut report).await?;
        }
        if options.measures(Part::Lists) {
            long::lists(database, &mut report).await?;
        }
        if options.measures(Part::Events) {
            many_events::measure(database, &mut report).await?;
        }
        if options.measures(Part::Memory) {
            memory::measure(database, &mut report).await?;
        }
    }
    if options.measures(Part::Compaction) {
        compaction::measure(&mut report)?;
    }
    match options.only.is_empty() && options.database.is_none() {
        true => report.finish(),
        false => Ok(()),
    }
}
