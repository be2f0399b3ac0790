//! Starting: on an empty home, on a large one, after a crash; and what a server holds while nothing happens.

use std::path::Path;
use std::time::Duration;

use nylorun_client::{Command, Environment, OpenSession};

use crate::report::{Report, Verdict, ms, percentile};
use crate::server::{AGENT, Server};
use crate::{Database, Failure};

const IDLE_SESSIONS: i64 = 100_000;
/// Copies a session that the API made, so that the rows are as it makes them.
const COPY: &str = "INSERT INTO sessions SELECT 'idle-' || n.value, agent_id, owner_user_id, definition_hash, \
     manifest_hash, implementation_version, identity_hash, info, vault_ids, credential_selections, workspace, \
     sandbox_source, created_at + n.value, status, active_turn_id, last_turn_id, segment, input_seq, \
     turn_manifest_hash, history_from, epoch, owner, head, rev, last_event_at, error FROM sessions, \
     (WITH RECURSIVE c(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM c WHERE value < ?1) \
     SELECT value FROM c) n WHERE id = 'model'";

/// Measures all of it, on SQLite.
pub(crate) async fn measure(report: &mut Report) -> Result<(), Failure> {
    let mut empty = Vec::new();
    for _ in 0..10 {
        let home = tempfile::tempdir()?;
        empty.push(Server::start(home.path(), &Database::Sqlite)?.ready_in);
    }
    let median = percentile(&mut empty, 0.5);
    let figure = format!("{} (most {})", ms(median), ms(percentile(&mut empty, 1.0)));
    report.row("SQLite", "empty home to ready", figure, "< 200 ms", Verdict::at_most(median.as_secs_f64(), 0.2));

    let home = tempfile::tempdir()?;
    let small = memory_after_start(home.path())?;
    fill(home.path()).await?;
    let mut full = Vec::new();
    for _ in 0..5 {
        full.push(Server::start(home.path(), &Database::Sqlite)?.ready_in);
    }
    let median = percentile(&mut full, 0.5);
    let what = "home with 100,000 idle sessions to ready";
    report.row("SQLite", what, ms(median), "< 500 ms", Verdict::at_most(median.as_secs_f64(), 0.5));
    let added = memory_after_start(home.path())? - small;
    let what = "memory that 100,000 idle sessions add";
    report.row("SQLite", what, format!("{added:.1} MB (to {small:.1} MB)"), "none", Verdict::at_most(added, 1.0));

    idle(report).await?;
    after_a_crash(report).await
}

fn memory_after_start(home: &Path) -> Result<f64, Failure> {
    let server = Server::start(home, &Database::Sqlite)?;
    std::thread::sleep(Duration::from_secs(1));
    server.rss_mb()
}

async fn fill(home: &Path) -> Result<(), Failure> {
    let server = Server::start(home, &Database::Sqlite)?;
    server.prepare().await?;
    let open = OpenSession { environment: Some(Environment::Without), ..OpenSession::new(AGENT, "bench") };
    server.client()?.open_session("model", &open).await?;
    drop(server);
    let connection = rusqlite::Connection::open(home.join("tenant/nylorun.db"))?;
    connection.execute(COPY, (IDLE_SESSIONS,))?;
    Ok(())
}

async fn idle(report: &mut Report) -> Result<(), Failure> {
    let home = tempfile::tempdir()?;
    let rss = memory_after_start(home.path())?;
    report.row("SQLite", "idle process", format!("{rss:.1} MB"), "< 60 MB", Verdict::at_most(rss, 60.0));
    Ok(())
}

async fn after_a_crash(report: &mut Report) -> Result<(), Failure> {
    let home = tempfile::tempdir()?;
    let mut server = Server::start(home.path(), &Database::Sqlite)?;
    server.prepare().await?;
    let mut times = Vec::new();
    for number in 0..10 {
        let client = server.client()?;
        let id = format!("crash-{number}");
        let open = OpenSession { environment: Some(Environment::Without), ..OpenSession::new(AGENT, "bench") };
        client.open_session(&id, &open).await?;
        client.session(&id).command(&Command::text(r#"[{"delayMs": 60000, "text": "late"}]"#)?).await?;
        server.kill()?;
        server = Server::start(home.path(), &Database::Sqlite)?;
        times.push(server.ready_in);
    }
    let most = percentile(&mut times, 1.0);
    let figure = format!("median {}, most {}", ms(percentile(&mut times, 0.5)), ms(most));
    report.row(
        "SQLite",
        "killed during a turn, to ready again",
        figure,
        "< 1 s",
        Verdict::at_most(most.as_secs_f64(), 1.0),
    );
    Ok(())
}
