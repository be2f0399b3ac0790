//! Starting: on an empty home, on a large one, after a crash.

use nylorun_client::{Command, Environment, OpenSession};

use crate::bulk::idle_sessions;
use crate::report::{Report, Verdict, ms, percentile};
use crate::server::{AGENT, Server, fresh};
use crate::{Database, Failure};

/// Sessions that only lie there.
pub(crate) const IDLE_SESSIONS: i64 = 100_000;

/// Measures all of it.
pub(crate) async fn measure(database: &Database, report: &mut Report) -> Result<(), Failure> {
    let name = database.name();
    let mut empty = Vec::new();
    for _ in 0..10 {
        let home = tempfile::tempdir()?;
        let database = fresh(database, "bench_start").await?;
        empty.push(Server::start(home.path(), &database)?.ready_in);
    }
    let median = percentile(&mut empty, 0.5);
    let figure = format!("{} (most {})", ms(median), ms(percentile(&mut empty, 1.0)));
    report.row(name, "empty home to ready", figure, "< 200 ms", Verdict::at_most(median.as_secs_f64(), 0.2));

    let home = tempfile::tempdir()?;
    let filled = fresh(database, "bench_start").await?;
    idle_sessions(home.path(), &filled, IDLE_SESSIONS).await?;
    let mut full = Vec::new();
    for _ in 0..5 {
        full.push(Server::start(home.path(), &filled)?.ready_in);
    }
    let median = percentile(&mut full, 0.5);
    let what = "home with 100,000 idle sessions to ready";
    report.row(name, what, ms(median), "< 500 ms", Verdict::at_most(median.as_secs_f64(), 0.5));
    after_a_crash(database, report).await
}

async fn after_a_crash(database: &Database, report: &mut Report) -> Result<(), Failure> {
    let home = tempfile::tempdir()?;
    let own = fresh(database, "bench_crash").await?;
    let mut server = Server::start(home.path(), &own)?;
    server.prepare().await?;
    let mut times = Vec::new();
    for number in 0..10 {
        let client = server.client()?;
        let id = format!("crash-{number}");
        let open = OpenSession { environment: Some(Environment::Without), ..OpenSession::new(AGENT, "bench") };
        client.open_session(&id, &open).await?;
        client.session(&id).command(&Command::text(r#"[{"delayMs": 60000, "text": "late"}]"#)?).await?;
        server.kill()?;
        server = Server::start(home.path(), &own)?;
        times.push(server.ready_in);
    }
    let most = percentile(&mut times, 1.0);
    let figure = format!("median {}, most {}", ms(percentile(&mut times, 0.5)), ms(most));
    report.row(
        database.name(),
        "killed during a turn, to ready again",
        figure,
        "< 1 s",
        Verdict::at_most(most.as_secs_f64(), 1.0),
    );
    Ok(())
}
