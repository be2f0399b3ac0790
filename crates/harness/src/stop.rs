//! What an abort does to a run (engine b.4, Abort kinds; decisions, Stop).

use nylorun_ports::abort::AbortKind;
use nylorun_ports::run::{CoreError, RunEnd};

use crate::drive::Driver;
use crate::executors::Repeatable;

impl Driver {
    /// Ends a run that a shutdown or its turn's deadline stops.
    ///
    /// Effects that may run again are dropped. The others are waited for, until a deadline kills them: then they are
    /// uncertain. After a shutdown nothing is settled, so that the next owner goes on; after the turn's own deadline
    /// the turn is settled.
    pub(crate) async fn stop(&mut self) -> Result<RunEnd, CoreError> {
        self.executors.abort_repeatable(AbortKind::Shutdown);
        self.in_flight.retain(|_, in_flight| in_flight.repeatable != Repeatable::Yes);
        self.drain().await?;
        if self.abort.first_kind() == Some(AbortKind::Deadline) {
            self.run.give_up("turn.deadline", "The turn ran out of time.");
        }
        if self.run.output().is_some() {
            return self.settle().await;
        }
        if !self.reports.is_empty() {
            self.commit_outcomes().await?;
        }
        Ok(RunEnd::Stopped)
    }

    /// Waits for what is in flight, and commits each outcome when it arrives; the last ones are left to the caller.
    async fn drain(&mut self) -> Result<(), CoreError> {
        let mut told = AbortKind::Shutdown;
        while !self.in_flight.is_empty() {
            self.check_still_ours()?;
            if let Some(kind @ AbortKind::Deadline) = self.abort.kind() {
                self.executors.abort_all(kind);
                told = kind;
            }
            if !self.reports.is_empty() {
                self.commit_outcomes().await?;
            }
            tokio::select! {
                biased;
                arrival = self.arrivals.recv() => {
                    if let Some(arrival) = arrival {
                        self.take(arrival);
                    }
                }
                _ = self.abort.aborted_beyond(told) => {}
            }
            self.take_arrived();
        }
        self.check_still_ours()
    }
}
