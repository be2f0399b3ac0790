//! A write on PostgreSQL: at most two round trips. BEGIN and all statements are sent without waiting; their answers are
//! checked; then COMMIT is sent.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio_postgres::Client;

use super::connection::Connection;
use super::execute;
use super::pool::Pool;
use crate::db::error::WriteError;
use crate::db::statement::Statement;

/// Tries of one write in all, when the server asks for another or a connection is lost before its commit.
const TRIES: u32 = 5;

/// What may be done with a connection after a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// It is outside of a transaction.
    Keep,
    /// Its state is not known.
    Close,
}

/// Applies the statements as one transaction.
pub(super) async fn write(pool: &Pool, statements: &[Statement]) -> Result<(), WriteError> {
    let mut tried = 0;
    loop {
        // A connection that cannot be made has used up its time-out already: no further try.
        let mut pooled = pool.get().await?;
        let (result, after) = attempt(&mut pooled.connection, statements).await;
        match after {
            After::Keep => pooled.give_back(),
            After::Close => drop(pooled),
        }
        tried += 1;
        match &result {
            Err(error) if execute::may_retry(error) && tried < TRIES => {}
            Ok(()) | Err(_) => return result,
        }
        // Two writes that collided should not meet again at once; the first further try is immediate.
        tokio::time::sleep(Duration::from_millis(5) * (tried - 1).pow(2)).await;
    }
}

async fn attempt(connection: &mut Connection, statements: &[Statement]) -> (Result<(), WriteError>, After) {
    let mut prepared = Vec::with_capacity(statements.len());
    for statement in statements {
        match connection.prepare(&statement.sql, &statement.params).await {
            Ok(statement) => prepared.push(statement),
            Err(error) => return (Err(error.into()), After::Keep),
        }
    }
    let client = connection.client();
    if let Err(error) = run(client, statements, &prepared).await {
        let after = match client.batch_execute("ROLLBACK").await {
            Ok(()) => After::Keep,
            Err(_) => After::Close,
        };
        return (Err(error), after);
    }
    match client.batch_execute("COMMIT").await {
        Ok(()) => (Ok(()), After::Keep),
        Err(error) => (Err(execute::commit_failure(&error)), After::Close),
    }
}

/// Sends everything, then checks the answers in order: the first failure decides.
async fn run(
    client: &Client,
    statements: &[Statement],
    prepared: &[tokio_postgres::Statement],
) -> Result<(), WriteError> {
    let mut begin = Box::pin(client.batch_execute("BEGIN"));
    let mut changes = Vec::with_capacity(statements.len());
    // A request is sent when its future is first polled, and requests are run in the order in which they were sent.
    let begun = poll_once(begin.as_mut()).await;
    for (statement, prepared) in statements.iter().zip(prepared) {
        let mut change = Box::pin(client.execute_raw(prepared, statement.params.iter()));
        let answer = poll_once(change.as_mut()).await;
        changes.push((statement, change, answer));
    }
    let begun = match begun {
        Poll::Ready(answer) => answer,
        Poll::Pending => begin.await,
    };
    begun.map_err(|error| execute::failure("BEGIN", &error))?;
    for (statement, change, answer) in changes {
        let answer = match answer {
            Poll::Ready(answer) => answer,
            Poll::Pending => change.await,
        };
        let changed = answer.map_err(|error| execute::write_failure(&statement.sql, &error))?;
        statement.expect.check(changed).map_err(WriteError::Guard)?;
    }
    Ok(())
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}
