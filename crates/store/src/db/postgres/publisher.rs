//! Announcing after commit: one task sends what has come together while the last batch was on its way, each text once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::execute;
use super::pool::Pool;
use crate::db::error::DbError;

/// PostgreSQL refuses longer payloads.
const PAYLOAD_LIMIT: usize = 7_999;
/// Tries of one batch. Announcements are hints: who listens reads the state again after a gap.
const TRIES: u32 = 3;
const NOTIFY: &str = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload";

/// The way to the publishing task, which ends with it.
pub(super) struct Publisher {
    jobs: mpsc::UnboundedSender<Job>,
}

enum Job {
    Announce { channel: &'static str, payload: String },
    Flush(oneshot::Sender<()>),
}

/// What waits to be sent: payloads by channel.
type Batch = BTreeMap<&'static str, BTreeSet<String>>;

impl Publisher {
    pub(super) fn start(pool: Pool) -> Self {
        let (jobs, queue) = mpsc::unbounded_channel();
        tokio::spawn(run(pool, queue));
        Self { jobs }
    }

    /// Hands over a payload; never waits.
    pub(super) fn announce(&self, channel: &'static str, payload: &str) {
        if payload.len() > PAYLOAD_LIMIT {
            tracing::error!(channel, length = payload.len(), "announcement is too long and is not sent");
            return;
        }
        // Fails only when the runtime is ending.
        let _ = self.jobs.send(Job::Announce { channel, payload: payload.to_owned() });
    }

    /// Waits until what was handed over before is sent.
    pub(super) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.jobs.send(Job::Flush(done)).is_ok() {
            let _ = wait.await;
        }
    }
}

async fn run(pool: Pool, mut queue: mpsc::UnboundedReceiver<Job>) {
    while let Some(first) = queue.recv().await {
        let (mut batch, mut flushed) = (Batch::new(), Vec::new());
        let mut job = Some(first);
        while let Some(next) = job {
            match next {
                Job::Announce { channel, payload } => drop(batch.entry(channel).or_default().insert(payload)),
                Job::Flush(done) => flushed.push(done),
            }
            job = queue.try_recv().ok();
        }
        for (channel, payloads) in batch {
            publish(&pool, channel, payloads.into_iter().collect()).await;
        }
        for done in flushed {
            // Who no longer waits does not mind.
            let _ = done.send(());
        }
    }
}

async fn publish(pool: &Pool, channel: &'static str, payloads: Vec<String>) {
    for tried in 1..=TRIES {
        match send(pool, channel, &payloads).await {
            Ok(()) | Err(DbError::Closed) => return,
            Err(error) => {
                tracing::warn!(channel, count = payloads.len(), tried, %error, "announcements were not sent");
                tokio::time::sleep(Duration::from_millis(100) * tried).await;
            }
        }
    }
}

async fn send(pool: &Pool, channel: &str, payloads: &[String]) -> Result<(), DbError> {
    let pooled = pool.get().await?;
    let sent = pooled.connection.client().execute(NOTIFY, &[&channel, &payloads]).await;
    sent.map_err(|error| execute::failure(NOTIFY, &error))?;
    pooled.give_back();
    Ok(())
}
