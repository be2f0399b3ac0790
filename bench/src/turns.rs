//! Turns: latency of one session, throughput of many, and the cost of tool steps.

use std::time::{Duration, Instant};

use nylorun_client::{Client, Command, Environment, Events, Follow, InlineEnvironment, OpenSession, Session, Update};
use serde_json::json;

use crate::bare::Bare;
use crate::report::{Report, Verdict, ms, percentile};
use crate::server::{AGENT, Server, fresh, ticks_of};
use crate::{Database, Failure};

/// One user of one session: sends a message, waits on the open stream until its turn has completed.
pub(crate) struct User {
    session: Session,
    events: Events,
}

impl User {
    /// A user of a new session, after its first turn.
    pub(crate) async fn new(client: &Client, id: &str, environment: Environment) -> Result<Self, Failure> {
        let open = OpenSession { environment: Some(environment), ..OpenSession::new(AGENT, "bench") };
        client.open_session(id, &open).await?;
        let session = client.session(id);
        let events = session.events(Follow::default());
        let mut user = Self { session, events };
        // The first turn also opens the stream.
        user.turn("hi").await?;
        Ok(user)
    }

    /// One turn, from the message until its end was seen.
    pub(crate) async fn turn(&mut self, message: &str) -> Result<Duration, Failure> {
        let begun = Instant::now();
        self.session.command(&Command::text(message)?).await?;
        loop {
            match self.events.next().await.ok_or("the stream ended")?? {
                Update::Event(event) if event.kind == "turn.completed" => return Ok(begun.elapsed()),
                Update::Event(event) if event.ends_turn() => return Err(event.text.into()),
                Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
            }
        }
    }
}

/// A turn of one model step at one session.
pub(crate) async fn one_session(database: &Database, bare: &Bare, report: &mut Report) -> Result<(), Failure> {
    const BATCHES: usize = 6;
    const TURNS: usize = 50;
    let home = tempfile::tempdir()?;
    let server = Server::start(home.path(), &fresh(database, "bench_one").await?)?;
    server.prepare().await?;
    let name = database.name();
    report.row(name, "baseline: GET /health", server.health_p50().await?, "", Verdict::NoTarget);
    let mut user = User::new(&server.client()?, "one", Environment::Without).await?;
    for _ in 0..50 {
        user.turn("hi").await?;
    }
    let mut times = Vec::new();
    let (mut commits, mut statements) = (f64::MAX, f64::MAX);
    for _ in 0..BATCHES {
        let before = server.counters().await?;
        for _ in 0..TURNS {
            times.push(user.turn("hi").await?);
        }
        let after = server.counters().await?;
        // The least of the batches: a heartbeat may fall into one.
        commits = commits.min((after.commits - before.commits) / TURNS as f64);
        statements = statements.min((after.statements - before.statements) / TURNS as f64);
    }
    let p50 = percentile(&mut times, 0.5);
    let limit = bare.commit_p50 * 4 + Duration::from_millis(4);
    let figure =
        format!("p50 {}, p95 {}, p99 {}", ms(p50), ms(percentile(&mut times, 0.95)), ms(percentile(&mut times, 0.99)));
    let target = format!("p50 ≤ 4 × bare commit + 4 ms = {}", ms(limit));
    report.row(
        name,
        "turn of one model step, one session",
        figure,
        &target,
        Verdict::at_most(p50.as_secs_f64(), limit.as_secs_f64()),
    );
    report.row(name, "commits of that turn", format!("{commits:.2}"), "≤ 4", Verdict::at_most(commits, 4.0));
    report.row(name, "statements of that turn", format!("{statements:.2}"), "≤ 12", Verdict::at_most(statements, 12.0));
    Ok(())
}

/// 64 sessions at once, each with a turn after the other: three runs, each on a database of its own.
pub(crate) async fn sixty_four_sessions(database: &Database, report: &mut Report) -> Result<(), Failure> {
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(Load::run(database).await?);
    }
    runs.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    let goal = match database {
        Database::Sqlite => 800.0,
        Database::Postgres(_) => 300.0,
    };
    let (least, median, most) = (&runs[0], &runs[1], &runs[2]);
    let figure = format!(
        "{:.0} turns/s (three runs: {:.0} to {:.0}), p50 {}, p99 {} (processors: server {:.2}, load generator {:.2})",
        median.rate, least.rate, most.rate, median.p50, median.p99, median.server_cores, median.own_cores,
    );
    report.row(
        database.name(),
        "64 sessions at once",
        figure,
        &format!("≥ {goal:.0} turns/s"),
        Verdict::at_least(median.rate, goal),
    );
    Ok(())
}

/// What one run of 64 sessions gave.
struct Load {
    rate: f64,
    p50: String,
    p99: String,
    server_cores: f64,
    own_cores: f64,
}

impl Load {
    async fn run(database: &Database) -> Result<Self, Failure> {
        const SPAN: Duration = Duration::from_secs(10);
        let home = tempfile::tempdir()?;
        let server = Server::start(home.path(), &fresh(database, "bench_many").await?)?;
        server.prepare().await?;
        let users = users(&server, 64).await?;
        let (server_before, own_before) = (server.ticks()?, ticks_of(std::process::id())?);
        let begun = Instant::now();
        let mut times = talk(users, move |_| begun.elapsed() < SPAN).await?;
        let elapsed = begun.elapsed().as_secs_f64();
        // The kernel counts 100 ticks a second.
        let cores = |ticks: f64| ticks / 100.0 / elapsed;
        Ok(Self {
            rate: times.len() as f64 / elapsed,
            p50: ms(percentile(&mut times, 0.5)),
            p99: ms(percentile(&mut times, 0.99)),
            server_cores: cores(server.ticks()? - server_before),
            own_cores: cores(ticks_of(std::process::id())? - own_before),
        })
    }
}

/// Users of sessions of their own, each with an open stream.
pub(crate) async fn users(server: &Server, count: usize) -> Result<Vec<User>, Failure> {
    let client = server.client()?;
    let mut users = Vec::new();
    for number in 0..count {
        users.push(User::new(&client, &format!("many-{number}"), Environment::Without).await?);
    }
    Ok(users)
}

/// All users at once, each with a turn after the other while `goes_on` says so of the number of its turns so far.
pub(crate) async fn talk(
    users: Vec<User>,
    goes_on: impl Fn(usize) -> bool + Clone + Send + 'static,
) -> Result<Vec<Duration>, Failure> {
    let tasks: Vec<_> = users
        .into_iter()
        .map(|mut user| {
            let goes_on = goes_on.clone();
            tokio::spawn(async move {
                let mut times = Vec::new();
                while goes_on(times.len()) {
                    times.push(user.turn("hi").await?);
                }
                Ok::<_, Failure>(times)
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    Ok(times)
}

/// One turn of 20 tool steps.
pub(crate) async fn twenty_tool_steps(database: &Database, report: &mut Report) -> Result<(), Failure> {
    const STEPS: usize = 20;
    let home = tempfile::tempdir()?;
    let server = Server::start(home.path(), &fresh(database, "bench_tools").await?)?;
    server.prepare().await?;
    let environment = Environment::Inline(InlineEnvironment::default());
    let mut user = User::new(&server.client()?, "tools", environment).await?;
    let steps = |count: usize| {
        let step = json!({"tools": [{"name": "bash", "input": {"command": "true"}}]});
        serde_json::Value::Array(vec![step; count]).to_string()
    };
    // Opens the workspace.
    user.turn(&steps(1)).await?;
    let before = server.counters().await?;
    let took = user.turn(&steps(STEPS)).await?;
    let after = server.counters().await?;
    // A turn's own beginning and end are not a step's.
    let all = after.commits - before.commits;
    let commits = (all - 3.0) / STEPS as f64;
    let figure = format!(
        "{commits:.2} commits and {} a step ({all:.0} commits of the turn, 3 of them its own)",
        ms(took / STEPS as u32)
    );
    report.row(database.name(), "turn of 20 tool steps", figure, "≤ 2 commits a step", Verdict::at_most(commits, 2.0));
    Ok(())
}
