//! The baselines: what the database alone costs on this machine, in this run.

use std::time::{Duration, Instant};

use crate::report::percentile;
use crate::{Database, Failure};

const CREATE: &str = "CREATE TABLE IF NOT EXISTS bench_bare (id BIGINT NOT NULL PRIMARY KEY, body TEXT NOT NULL)";
const DROP: &str = "DROP TABLE bench_bare";
const COMMITS: i64 = 300;

/// What a bare commit and a bare statement take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bare {
    /// One row, one transaction, synced to disk: half of the times lie below.
    pub commit_p50: Duration,
    /// 99 % of them lie below.
    pub commit_p99: Duration,
    /// One more insert within a transaction.
    pub statement_p50: Duration,
}

/// Measures them.
pub(crate) async fn measure(database: &Database) -> Result<Bare, Failure> {
    let (mut commits, mut statements) = match database {
        Database::Sqlite => sqlite()?,
        Database::Postgres(url) => postgres(url).await?,
    };
    Ok(Bare {
        commit_p50: percentile(&mut commits, 0.5),
        commit_p99: percentile(&mut commits, 0.99),
        statement_p50: percentile(&mut statements, 0.5),
    })
}

type Times = (Vec<Duration>, Vec<Duration>);

fn sqlite() -> Result<Times, Failure> {
    const INSERT: &str = "INSERT INTO bench_bare (id, body) VALUES (?1, ?2)";
    let folder = tempfile::tempdir()?;
    let mut connection = rusqlite::Connection::open(folder.path().join("bare.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(CREATE)?;
    let body = "x".repeat(500);
    let mut commits = Vec::new();
    for id in 0..COMMITS {
        let begun = Instant::now();
        connection.prepare_cached(INSERT)?.execute((id, &body))?;
        commits.push(begun.elapsed());
    }
    let mut statements = Vec::new();
    let transaction = connection.transaction()?;
    for id in COMMITS..2 * COMMITS {
        let begun = Instant::now();
        transaction.prepare_cached(INSERT)?.execute((id, &body))?;
        statements.push(begun.elapsed());
    }
    transaction.commit()?;
    Ok((commits, statements))
}

async fn postgres(url: &str) -> Result<Times, Failure> {
    const INSERT: &str = "INSERT INTO bench_bare (id, body) VALUES ($1, $2)";
    let (mut client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(CREATE).await?;
    let insert = client.prepare(INSERT).await?;
    let body = "x".repeat(500);
    let mut commits = Vec::new();
    for id in 0..COMMITS {
        let begun = Instant::now();
        client.execute(&insert, &[&id, &body]).await?;
        commits.push(begun.elapsed());
    }
    let mut statements = Vec::new();
    let transaction = client.transaction().await?;
    for id in COMMITS..2 * COMMITS {
        let begun = Instant::now();
        transaction.execute(&insert, &[&id, &body]).await?;
        statements.push(begun.elapsed());
    }
    transaction.commit().await?;
    client.batch_execute(DROP).await?;
    Ok((commits, statements))
}
