//! A write on PostgreSQL: one round trip. BEGIN, all statements and COMMIT are sent without waiting for an answer; a
//! statement that fails, or that does not change the row it must, leaves the server with nothing to commit.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::connection::Connection;
use super::execute;
use super::pool::Pool;
use crate::db::error::WriteError;
use crate::db::statement::{Expect, Statement};

/// Tries of one write in all, when the server asks for another or a connection is lost before anything was sent.
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
        let sql = match statement.expect {
            Expect::Any => &statement.sql,
            Expect::One(_) => &execute::exactly_one(&statement.sql).into(),
        };
        match connection.prepare(sql, &statement.params).await {
            Ok(statement) => prepared.push(statement),
            Err(error) => return (Err(error.into()), After::Keep),
        }
    }
    let client = connection.client();
    let begin = Sent::now(client.batch_execute("BEGIN")).await;
    let mut changes = Vec::with_capacity(statements.len());
    for (statement, prepared) in statements.iter().zip(&prepared) {
        changes.push((statement, Sent::now(client.execute_raw(prepared, statement.params.iter())).await));
    }
    let commit = Sent::now(client.batch_execute("COMMIT")).await;

    let was_sent = begin.was_sent();
    if let Err(error) = begin.answer().await {
        return (Err(execute::begin_failure(&error, was_sent)), After::Close);
    }
    let mut refused = None;
    for (statement, change) in changes {
        if let Err(error) = change.answer().await {
            refused = Some(execute::change_failure(statement, &error));
            break;
        }
    }
    // After a refusal the server answers the COMMIT by rolling back.
    match (refused, commit.answer().await) {
        (None, Ok(())) => (Ok(()), After::Keep),
        (None, Err(error)) => (Err(execute::commit_failure(&error)), After::Close),
        (Some(refusal), Ok(())) => (Err(refusal), After::Keep),
        (Some(refusal), Err(_)) => (Err(refusal), After::Close),
    }
}

/// Whether a request reached the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WasSent {
    Yes,
    /// The connection was closed already, for this request and all after it.
    No,
}

/// A request that was sent. Requests are run in the order in which they were sent.
struct Sent<F: Future> {
    request: Pin<Box<F>>,
    early: Option<F::Output>,
}

impl<F: Future> Sent<F> {
    /// Sends a request, which happens when its future is polled first.
    async fn now(request: F) -> Self {
        let mut request = Box::pin(request);
        let early = poll_fn(|context| match request.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => Poll::Ready(None),
        });
        let early = early.await;
        Self { request, early }
    }

    /// A request that is answered at once never left.
    fn was_sent(&self) -> WasSent {
        if self.early.is_some() { WasSent::No } else { WasSent::Yes }
    }

    async fn answer(self) -> F::Output {
        match self.early {
            Some(answer) => answer,
            None => self.request.await,
        }
    }
}
