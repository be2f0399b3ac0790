//! Memory that a server holds while nothing happens: before its first turn, after many, and beside many idle sessions.

use std::path::Path;
use std::time::Duration;

use crate::bulk::idle_sessions;
use crate::report::{Report, Verdict};
use crate::server::{Server, fresh};
use crate::start::IDLE_SESSIONS;
use crate::turns::{talk, users};
use crate::{Database, Failure};

/// What a server keeps between turns is let go after a minute; a sweep comes every five seconds.
const REST: Duration = Duration::from_secs(75);

/// Measures all of it.
pub(crate) async fn measure(database: &Database, report: &mut Report) -> Result<(), Failure> {
    let name = database.name();
    let home = tempfile::tempdir()?;
    let own = fresh(database, "bench_memory").await?;
    let small = after_start(home.path(), &own).await?;
    report.row(name, "idle process, no turn yet", mb(small), "< 60 MB", Verdict::at_most(small, 60.0));

    let server = Server::start(home.path(), &own)?;
    server.prepare().await?;
    let users = users(&server, 64).await?;
    talk(users, |turns| turns < 40).await?;
    let busy = server.rss_mb()?;
    tokio::time::sleep(REST).await;
    let rested = server.rss_mb()?;
    let figure = format!("{} ({} right after the last turn)", mb(rested), mb(busy));
    report.row(
        name,
        "idle process, 75 s after 64 sessions of 40 turns",
        figure,
        "< 60 MB",
        Verdict::at_most(rested, 60.0),
    );
    drop(server);

    let home = tempfile::tempdir()?;
    let filled = fresh(database, "bench_memory").await?;
    idle_sessions(home.path(), &filled, IDLE_SESSIONS).await?;
    let added = after_start(home.path(), &filled).await? - small;
    let figure = format!("{added:.1} MB (two processes differ by up to 1 MB)");
    report.row(name, "memory that 100,000 idle sessions add", figure, "none", Verdict::at_most(added, 1.0));
    Ok(())
}

async fn after_start(home: &Path, database: &Database) -> Result<f64, Failure> {
    let server = Server::start(home, database)?;
    // Long enough for a first sweep.
    tokio::time::sleep(Duration::from_secs(7)).await;
    server.rss_mb()
}

fn mb(megabytes: f64) -> String {
    format!("{megabytes:.1} MB")
}
