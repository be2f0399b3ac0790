//! The sweep: what a lost notification or a dead process left undone (engine b.5). It never decides; it only wakes.

use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::time::Millis;
use nylorun_ports::BoxFuture;
use nylorun_store::{StoreError, WriteError};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::clock::now;
use crate::direct_call::end_lost_calls;
use crate::scheduler::Scheduler;

const SWEEP_EVERY: Duration = Duration::from_secs(5);
const HEARTBEAT_EVERY: Duration = Duration::from_secs(10);
const ORPHANS_EVERY: Duration = Duration::from_secs(60);
/// A wake is given this long to be taken before it is sent again; none at the first pass (engine b.5).
const WAKE_GRACE_MS: i64 = 30_000;
const BATCH: i64 = 100;
/// Workers that have been silent this long are forgotten.
const FORGET_WORKERS_AFTER_MS: i64 = 24 * 60 * 60 * 1000;

/// Housekeeping of another part that rides on the sweep, which owns the only timer.
pub trait Maintenance: Send + Sync {
    /// Does what is due.
    fn sweep(&self, now: Millis) -> BoxFuture<'_, ()>;
}

/// Sweeps until the future is dropped. The first pass redelivers everything that an earlier process left.
pub async fn run_sweeps(scheduler: Scheduler, maintenance: Vec<Arc<dyn Maintenance>>) {
    let mut ticks = interval(SWEEP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_heartbeat = None;
    let mut last_orphans = None;
    let mut grace_ms = 0;
    loop {
        ticks.tick().await;
        if is_due(last_heartbeat, HEARTBEAT_EVERY) {
            report("heartbeat", heartbeat(&scheduler).await);
            last_heartbeat = Some(Instant::now());
        }
        report("direct calls", end_lost_calls(scheduler.committer(), scheduler.worker()).await);
        report("outbox", redeliver(&scheduler, grace_ms).await);
        grace_ms = WAKE_GRACE_MS;
        if is_due(last_orphans, ORPHANS_EVERY) {
            report("orphans", orphans(&scheduler).await);
            last_orphans = Some(Instant::now());
        }
        scheduler.expire_transcripts();
        for part in &maintenance {
            part.sweep(now()).await;
        }
    }
}

fn is_due(last: Option<Instant>, every: Duration) -> bool {
    last.is_none_or(|last| last.elapsed() >= every)
}

/// A step that fails does not stop the others.
fn report<E: std::fmt::Display>(step: &str, result: Result<(), E>) {
    if let Err(error) = result {
        tracing::warn!(step, %error, "a step of the sweep failed");
    }
}

async fn heartbeat(scheduler: &Scheduler) -> Result<(), WriteError> {
    scheduler.committer().store().worker_heartbeat(scheduler.worker(), now()).await?;
    scheduler.committer().store().worker_forget(now().plus(-FORGET_WORKERS_AFTER_MS)).await
}

async fn redeliver(scheduler: &Scheduler, grace_ms: i64) -> Result<(), StoreError> {
    for session in scheduler.committer().store().wake_due(now().plus(-grace_ms), BATCH).await? {
        scheduler.wake(&session);
    }
    Ok(())
}

/// Sessions that are to be advanced and that this process does not advance: their owner may be gone.
async fn orphans(scheduler: &Scheduler) -> Result<(), StoreError> {
    let mut after = String::new();
    loop {
        let page = scheduler.committer().store().session_live(&after, BATCH).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.as_str().to_owned();
        for session in page.iter().filter(|session| !scheduler.is_advancing(session)) {
            scheduler.wake(session);
        }
    }
}
