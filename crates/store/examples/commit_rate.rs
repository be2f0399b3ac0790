//! How fast this machine commits through the database layer: writes of three statements, one writer and 64 at once, on
//! SQLite and, where `NYLORUN_TEST_POSTGRES_URL` names a server, on PostgreSQL. Beside it, a point read.
//!
//! `cargo run --release -p nylorun-store --example commit_rate [seconds [PostgreSQL connections that write]]`

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nylorun_store::db::{DatabaseUrl, Db, DbOptions, Dialect, Guard, Statement};
use nylorun_store::params;

type Failure = Box<dyn Error + Send + Sync>;

const CREATE_SESSION: &str =
    "CREATE TABLE IF NOT EXISTS rate_session (id TEXT NOT NULL PRIMARY KEY, revision BIGINT NOT NULL)";
const CREATE_EVENT: &str = "CREATE TABLE IF NOT EXISTS rate_event (session TEXT NOT NULL, seq BIGINT NOT NULL, \
                            body TEXT NOT NULL, PRIMARY KEY (session, seq))";
const CREATE_WAKE: &str =
    "CREATE TABLE IF NOT EXISTS rate_wake (session TEXT NOT NULL PRIMARY KEY, at BIGINT NOT NULL)";
const INSERT_SESSION: &str = "INSERT INTO rate_session (id, revision) VALUES ($1, 0)";
const UPDATE_SESSION: &str = "UPDATE rate_session SET revision = revision + 1 WHERE id = $1 AND revision = $2";
const INSERT_EVENT: &str = "INSERT INTO rate_event (session, seq, body) VALUES ($1, $2, $3)";
const UPSERT_WAKE: &str =
    "INSERT INTO rate_wake (session, at) VALUES ($1, $2) ON CONFLICT (session) DO UPDATE SET at = excluded.at";
const SELECT_SESSION: &str = "SELECT id, revision FROM rate_session WHERE id = $1";

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let seconds = std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?;
    let mut options = DbOptions::default();
    if let Some(text) = std::env::args().nth(2) {
        options.postgres_writers = text.parse()?;
    }
    let folder = std::env::temp_dir().join(format!("commit-rate-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let sqlite = DatabaseUrl::Sqlite(folder.join("rate.db"));
    measure(&sqlite, &options, Duration::from_secs(seconds)).await?;
    std::fs::remove_dir_all(&folder)?;
    match std::env::var("NYLORUN_TEST_POSTGRES_URL") {
        Ok(url) => measure(&url.parse()?, &options, Duration::from_secs(seconds)).await?,
        Err(_) => println!("PostgreSQL: skipped, NYLORUN_TEST_POSTGRES_URL is not set"),
    }
    Ok(())
}

async fn measure(url: &DatabaseUrl, options: &DbOptions, span: Duration) -> Result<(), Failure> {
    let db = Arc::new(Db::open(url, options).await?);
    let name = match db.dialect() {
        Dialect::Sqlite => "SQLite",
        Dialect::Postgres => "PostgreSQL",
    };
    for create in [CREATE_SESSION, CREATE_EVENT, CREATE_WAKE] {
        db.write(vec![Statement::any(create, vec![])]).await?;
    }
    for writers in [1, 64] {
        let before = db.counts();
        let times = run(writers, span, |session, until| write_until(Arc::clone(&db), session, until)).await?;
        let after = db.counts();
        let shared = (after.commits - before.commits) as f64 / (after.transactions - before.transactions) as f64;
        report(&format!("{name}, {writers} writers"), &times, span, &format!("{shared:.1} commits a transaction"));
    }
    for readers in [1, 64] {
        let times = run(readers, span, |session, until| read_until(Arc::clone(&db), session, until)).await?;
        report(&format!("{name}, {readers} readers"), &times, span, "");
    }
    for drop in ["DROP TABLE rate_session", "DROP TABLE rate_event", "DROP TABLE rate_wake"] {
        db.write(vec![Statement::any(drop, vec![])]).await?;
    }
    db.close().await;
    Ok(())
}

/// Runs `many` tasks for the span and gives the time of each operation, sorted.
async fn run<F>(many: usize, span: Duration, task: impl Fn(String, Instant) -> F) -> Result<Vec<Duration>, Failure>
where
    F: Future<Output = Result<Vec<Duration>, Failure>> + Send + 'static,
{
    let until = Instant::now() + span;
    let tasks = (0..many).map(|number| tokio::spawn(task(format!("{many}-{number}"), until)));
    let mut times = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        times.extend(task.await??);
    }
    times.sort_unstable();
    Ok(times)
}

async fn write_until(db: Arc<Db>, session: String, until: Instant) -> Result<Vec<Duration>, Failure> {
    let body = "x".repeat(300);
    db.write(vec![Statement::any(INSERT_SESSION, params![&session])]).await?;
    let mut times = Vec::new();
    while Instant::now() < until {
        let revision = times.len() as i64;
        let begun = Instant::now();
        db.write(vec![
            Statement::one(UPDATE_SESSION, params![&session, revision], Guard("revision")),
            Statement::any(INSERT_EVENT, params![&session, revision, &body]),
            Statement::any(UPSERT_WAKE, params![&session, revision]),
        ])
        .await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

async fn read_until(db: Arc<Db>, session: String, until: Instant) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::new();
    while Instant::now() < until {
        let begun = Instant::now();
        db.query(SELECT_SESSION, params![&session]).await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

fn report(what: &str, times: &[Duration], span: Duration, more: &str) {
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1000.0;
    let rate = times.len() as f64 / span.as_secs_f64();
    println!("{what:24} {rate:8.0}/s   p50 {:7.3} ms   p99 {:7.3} ms   {more}", at(0.5), at(0.99));
}
