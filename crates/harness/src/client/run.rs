//! One run in a harness that is connected to core.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use nylorun_domain::id::TenantId;
use nylorun_ports::abort::{Abort, AbortHandle, AbortKind};
use nylorun_ports::run::{CoreError, Harness, RunEnd, TurnEnd, TurnOutput};
use nylorun_wire::harness::frame::{ApiError, ErrorCode};
use nylorun_wire::harness::lease::{Leased, Release, ReleaseReason, Renew, Renewed};
use nylorun_wire::harness::output::{RunOutput, RunResult};
use nylorun_wire::harness::shape::encode;
use nylorun_wire::harness::transcript::TranscriptRead;

use super::core::ChannelCore;
use crate::channel::Channel;
use crate::start;

/// A run and its hold on it.
pub(super) struct Running {
    pub(super) channel: Channel,
    pub(super) run_id: String,
    pub(super) handle: AbortHandle,
    pub(super) abort: Abort,
    pub(super) renew_every: Duration,
}

impl Running {
    /// Runs it, tells core how it ended, and answers its id.
    pub(super) async fn run(self, harness: Arc<dyn Harness>, leased: Leased, tenant: TenantId) -> String {
        let told = tokio::select! {
            biased;
            end = self.drive(harness, leased, &tenant) => self.tell(end).await,
            never = self.renew() => match never {},
        };
        if let Err(error) = told {
            // Core has ended the run itself, or is gone: either way it needs no word of it.
            tracing::debug!(run = self.run_id, %error, "the end of a run was not taken");
        }
        self.run_id
    }

    async fn drive(&self, harness: Arc<dyn Harness>, leased: Leased, tenant: &TenantId) -> RunEnd {
        let transcript = if leased.input.transcript.cursor == start::EMPTY {
            Vec::new()
        } else {
            match self.channel.call(&TranscriptRead { run_id: self.run_id.clone() }).await {
                Ok(transcript) => transcript.entries,
                Err(error) => return RunEnd::Released(crate::refusal::from_api(error, None)),
            }
        };
        match start::started(leased, tenant, transcript) {
            Ok(start) => {
                let core = ChannelCore::new(self.channel.clone(), self.run_id.clone(), start::scope(&start));
                let run = AssertUnwindSafe(harness.run(start, Arc::new(core), self.abort.clone()));
                run.catch_unwind().await.unwrap_or_else(|_| {
                    tracing::error!(run = self.run_id, "a run panicked; its turn fails");
                    RunEnd::Released(CoreError::Unavailable("the run stopped by an internal fault".to_owned()))
                })
            }
            Err(error) => {
                let end = TurnEnd::Failed { code: "execution.incompatible".to_owned(), message: error.to_string() };
                match self.settle(RunResult::Output(TurnOutput { end, edits: Vec::new() })).await {
                    Ok(()) => RunEnd::Settled,
                    Err(error) => RunEnd::Released(crate::refusal::from_api(error, None)),
                }
            }
        }
    }

    /// Keeps the run alive, until it is told to end.
    async fn renew(&self) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(self.renew_every).await;
            if self.abort.kind().is_some() {
                return std::future::pending().await;
            }
            match self.channel.call(&Renew { run_id: self.run_id.clone() }).await {
                Ok(Renewed::Held { .. }) => {}
                Ok(Renewed::Lost) | Err(ApiError { code: ErrorCode::RunNotHeld | ErrorCode::OwnershipLost, .. }) => {
                    self.handle.abort(AbortKind::OwnershipLost);
                }
                Err(error) => tracing::debug!(run = self.run_id, %error, "a lease was not renewed"),
            }
        }
    }

    async fn tell(&self, end: RunEnd) -> Result<(), ApiError> {
        match end {
            RunEnd::Settled => Ok(()),
            RunEnd::Stopped => self.release(ReleaseReason::Shutdown).await,
            RunEnd::ConnectionLost => self.release(ReleaseReason::ConnectionLost).await,
            RunEnd::Released(CoreError::OwnershipLost) => self.release(ReleaseReason::OwnershipLost).await,
            RunEnd::Released(CoreError::TurnCancelled) => self.settle(RunResult::Cancelled).await,
            RunEnd::Released(error @ CoreError::EffectDrift(_)) => self.fail("effect_drift", &error).await,
            // Core ends a run that it cannot serve itself; of one that it still holds, a call was refused as wrong.
            RunEnd::Released(error @ (CoreError::Unavailable(_) | CoreError::Refused(_))) => {
                self.fail("internal", &error).await
            }
        }
    }

    async fn release(&self, reason: ReleaseReason) -> Result<(), ApiError> {
        self.channel.call(&Release { run_id: self.run_id.clone(), reason }).await.map(drop)
    }

    async fn fail(&self, code: &str, error: &CoreError) -> Result<(), ApiError> {
        let end = TurnEnd::Failed { code: code.to_owned(), message: error.to_string() };
        self.settle(RunResult::Output(TurnOutput { end, edits: Vec::new() })).await
    }

    async fn settle(&self, result: RunResult) -> Result<(), ApiError> {
        let (method, output) = RunOutput::of(&self.run_id, result);
        self.channel.request(method.as_str(), encode(&output)).await.map(drop)
    }
}
