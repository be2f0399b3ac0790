//! One advance: take the session, run its segment, give it back (engine b.4).

use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::change::{EffectRow, SessionChange};
use nylorun_domain::id::{SessionId, TurnId, WorkerId};
use nylorun_domain::segment::{Next, SegmentInput, TurnEnd, TurnOutput, YieldAfter};
use nylorun_domain::session::{Session, Status};
use nylorun_domain::time::Millis;
use nylorun_domain::transcript::{Input, Line};
use nylorun_domain::turn::{Journal, Owner, Take, fail_alone, release, take};
use nylorun_ports::abort::{Abort, AbortKind};
use nylorun_ports::run::{CoreError, Harness, RunCore, RunEnd, TurnStart};
use nylorun_store::{Fault, Snapshot, Store, StoreError};
use nylorun_wire::transcript::entries_to_lines;

use crate::begun::Begun;
use crate::clock::{now, stamp};
use crate::committer::{CommitError, Committer, Updated};
use crate::core::{SessionCore, Taking};
use crate::for_good;
use crate::load::{self, LoadError, Manifests};
use crate::transcripts::{History, LeftAt, Transcripts};

/// How long an owner may be silent before its sessions are taken over (engine b.4).
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// How soon to look again at a session whose owner seems to be alive: a dead one is known by its lock, shortly after it
/// died.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What an advance needs.
pub(crate) struct Advancer {
    pub(crate) committer: Committer,
    pub(crate) harness: Arc<dyn Harness>,
    pub(crate) worker: WorkerId,
    pub(crate) manifests: Manifests,
    pub(crate) transcripts: Transcripts,
    pub(crate) yield_after: YieldAfter,
}

/// A session that is being taken: the row, its take, and what the active turn has come to.
struct Taken {
    session: Session,
    take: Box<Taking>,
    turn: TurnId,
    effects: Vec<EffectRow>,
    /// The input of a turn that has just begun.
    begun: Option<Input>,
}

/// What an advance comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advanced {
    /// Nothing more to do until the next wake.
    Done,
    /// Somebody else has it, or the store did not answer: try again after this long.
    RetryAfter(Duration),
    /// It cannot be read, or nobody may end its turn: only a new build or an operator helps.
    Stuck,
    /// The row changed while it was being taken: look again at once.
    Again,
    /// The segment is settled and the session goes on: with its next segment, say.
    GoesOn,
}

impl Advancer {
    fn store(&self) -> &Store {
        self.committer.store()
    }

    /// Advances the session's active segment, if there is one to advance. A turn that has just begun is not read back.
    pub(crate) async fn advance(&self, id: &SessionId, begun: Option<Begun>, abort: Abort) -> Advanced {
        match self.try_advance(id, begun, abort).await {
            Ok(advanced) => advanced,
            Err(error) => match error.fault() {
                Fault::Passing | Fault::NoWrites => {
                    tracing::warn!(session = %id, %error, "an advance could not reach the store");
                    Advanced::RetryAfter(Duration::from_secs(1))
                }
                Fault::ForGood => {
                    tracing::error!(session = %id, %error, "a session cannot be advanced by this build");
                    Advanced::Stuck
                }
            },
        }
    }

    async fn try_advance(&self, id: &SessionId, begun: Option<Begun>, abort: Abort) -> Result<Advanced, StoreError> {
        let (session, begun) = match begun {
            Some(Begun { session, input }) => (Some(session), Some(input)),
            None => (self.store().session_get(id).await?, None),
        };
        let Some(session) = session else { return Ok(Advanced::Done) };
        let Some(turn) = session.active_turn_id.clone() else { return Ok(Advanced::Done) };
        let effects = match begun {
            Some(_) => Ok(Vec::new()),
            None => self.store().effect_list(id, &turn).await,
        };
        let owner = self.owner(&session).await?;
        // Whether the turn is this worker's does not depend on its effects.
        let taken = take(&session, owner, effects.as_deref().unwrap_or_default(), &self.worker, &stamp());
        match (taken, effects) {
            (Take::Nothing, _) => Ok(Advanced::Done),
            (Take::Busy, _) => Ok(Advanced::RetryAfter(LOOK_AGAIN)),
            (Take::Uncertain(_) | Take::Taken(_), Err(error)) => match error.fault() {
                Fault::ForGood => self.end_alone(&session, &turn, for_good::not_read(&error)).await,
                Fault::Passing | Fault::NoWrites => Err(error),
            },
            (Take::Uncertain(change), Ok(_)) => match self.commit_alone(&self.taking(&session, *change)).await {
                Err(error) if error.fault() == Fault::ForGood => {
                    self.end_alone(&session, &turn, for_good::not_recorded(&error)).await
                }
                committed => committed,
            },
            (Take::Taken(change), Ok(effects)) => {
                let take = Box::new(self.taking(&session, *change));
                self.run(Taken { session, take, turn, effects, begun }, abort).await
            }
        }
    }

    /// A take, with the owner that left the session behind. One that gave it back is none.
    fn taking(&self, session: &Session, change: SessionChange) -> Taking {
        let from = session.owner.clone().filter(|owner| *owner != self.worker);
        Taking { change, from }
    }

    async fn commit_alone(&self, take: &Taking) -> Result<Advanced, StoreError> {
        match self.committer.commit(&take.change).await {
            Ok(()) => {
                take.committed();
                Ok(Advanced::Done)
            }
            Err(CommitError::Stale) => Ok(Advanced::Again),
            Err(CommitError::Store(error)) => Err(error),
        }
    }

    /// A dead owner is known at once, by the lock that it cannot hold any more; a silent one when its lease has passed
    /// (decisions, Takeover).
    async fn owner(&self, session: &Session) -> Result<Owner, StoreError> {
        let Some(owner) = &session.owner else { return Ok(Owner::Gone) };
        // This process runs at most one advance a session, and that is this one.
        if *owner == self.worker || self.store().worker_is_gone(owner).await? {
            return Ok(Owner::Gone);
        }
        let lease_ms = i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX);
        let heard = self.store().worker_last_heartbeat(owner).await?.unwrap_or(Millis(0));
        Ok(if heard.plus(lease_ms) < now() { Owner::Gone } else { Owner::Alive })
    }

    async fn run(&self, taken: Taken, abort: Abort) -> Result<Advanced, StoreError> {
        let start = self.start(&taken).await;
        let Taken { session, take, turn, effects, .. } = taken;
        let core = Arc::new(SessionCore::new(self.committer.clone(), take, turn, Journal::of(effects)));
        let (start, mut history) = match start {
            Ok(started) => started,
            Err(LoadError::Store(error)) => match error.fault() {
                Fault::ForGood => {
                    tracing::error!(session = %session.id, %error, "what is stored for a turn cannot be read");
                    return self.fail(&session, &core, for_good::CODE, for_good::not_read(&error)).await;
                }
                Fault::Passing | Fault::NoWrites => return Err(error),
            },
            Err(LoadError::Incompatible(problem)) => {
                return self.fail(&session, &core, "execution.incompatible", problem).await;
            }
        };
        let epoch = start.epoch;
        let end = self.harness.run(start, Arc::<SessionCore>::clone(&core), abort.clone()).await;
        if let Some(upto) = history.snapshot_due(&session) {
            self.leave_snapshot(&session, upto, Arc::clone(&history.lines));
            history.unsaved = 0;
        }
        let (taken, journal) = core.finish().await;
        match end {
            RunEnd::Settled => {
                let Some(settled) = taken else { return Ok(Advanced::Done) };
                if let Some(history) = core.edits().await.and_then(|edits| history.edited(edits)) {
                    self.transcripts.leave(&settled.id, epoch, LeftAt::after(&settled, core.turn()), history);
                }
                Ok(if settled.status == Status::Runnable { Advanced::GoesOn } else { Advanced::Done })
            }
            RunEnd::Released(CoreError::OwnershipLost) if taken.is_none() => Ok(Advanced::Again),
            RunEnd::Released(CoreError::OwnershipLost | CoreError::TurnCancelled) => Ok(Advanced::Done),
            RunEnd::Released(CoreError::EffectDrift(effect)) => {
                let problem = format!("effect {effect} asks for something else than before");
                self.fail(&session, &core, "effect_drift", problem).await
            }
            RunEnd::Released(CoreError::Refused(problem)) => self.fail(&session, &core, for_good::CODE, problem).await,
            RunEnd::Released(CoreError::Unavailable(problem)) => {
                tracing::warn!(session = %session.id, %problem, "a run lost its runtime");
                Ok(Advanced::RetryAfter(Duration::from_secs(1)))
            }
            RunEnd::Stopped => {
                let released = self.stopped(taken, &journal, &abort).await?;
                // A harness that stops gives the run back to be offered to another; a process that stops does not.
                Ok(if abort.kind().is_none() { Advanced::GoesOn } else { released })
            }
            RunEnd::ConnectionLost => Ok(Advanced::RetryAfter(after_lost_connection(taken.as_ref()))),
        }
    }

    /// Leaves a long history to the folds to come. Nothing waits for it, and nothing depends on it.
    fn leave_snapshot(&self, session: &Session, upto: i64, lines: Arc<Vec<Line>>) {
        let (store, id, opened_at) = (self.store().clone(), session.id.clone(), session.created_at);
        tokio::spawn(async move {
            let printed = tokio::task::spawn_blocking(move || entries_to_lines(lines.iter().map(Line::entry)));
            let Ok(entries) = printed.await else { return };
            if let Err(error) = store.snapshot_put(&id, opened_at, Snapshot { upto, entries: entries.into() }).await {
                tracing::debug!(session = %id, %error, "a snapshot of a long transcript was not kept");
            }
        });
    }

    /// What the run starts from, and its history.
    async fn start(&self, taken: &Taken) -> Result<(TurnStart, History), LoadError> {
        let session = &taken.session;
        let hash = session.turn_manifest_hash.as_ref().unwrap_or(&session.manifest_hash);
        let history = match self.transcripts.take(&session.id, session.epoch, &LeftAt::of(session)) {
            Some(history) => history,
            None => load::transcript(self.store(), session).await?,
        };
        let input = match &taken.begun {
            Some(input) => SegmentInput::Message(input.clone()),
            None => load::input(self.store(), session).await?,
        };
        let start = TurnStart {
            session_id: session.id.clone(),
            agent_id: session.agent_id.clone(),
            turn_id: taken.turn.clone(),
            segment: session.segment,
            epoch: taken.take.change.session.epoch,
            manifest: self.manifests.get(self.store(), hash).await?,
            input,
            yield_after: self.yield_after,
            transcript: Arc::clone(&history.lines),
            outcomes: load::outcomes(&taken.effects, session.segment),
            workspace: load::workspace(self.store(), session),
        };
        Ok((start, history))
    }

    /// Fails the turn, since nothing can run it.
    async fn fail(
        &self,
        session: &Session,
        core: &SessionCore,
        code: &str,
        message: String,
    ) -> Result<Advanced, StoreError> {
        let end = TurnEnd::Failed { code: code.to_owned(), message };
        match core.commit(Vec::new(), Next::Output(TurnOutput { end, edits: Vec::new() })).await {
            Ok(_) => {
                // A message that waited may have begun the next turn.
                let (settled, _) = core.finish().await;
                let goes_on = settled.is_some_and(|settled| settled.status == Status::Runnable);
                Ok(if goes_on { Advanced::GoesOn } else { Advanced::Done })
            }
            Err(CoreError::TurnCancelled | CoreError::EffectDrift(_)) => Ok(Advanced::Done),
            Err(CoreError::OwnershipLost) => Ok(Advanced::Again),
            Err(CoreError::Unavailable(problem)) => {
                tracing::warn!(session = %session.id, %problem, "a turn could not be failed");
                Ok(Advanced::RetryAfter(LOOK_AGAIN))
            }
            Err(CoreError::Refused(problem)) => self.end_alone(session, core.turn(), problem).await,
        }
    }

    /// Fails the turn by the least that can be written, since the database refuses what belongs to a turn's end, or it
    /// cannot be read: what it refuses may be in that. Effects that cannot be read stay as they are.
    async fn end_alone(&self, seen: &Session, turn: &TurnId, problem: String) -> Result<Advanced, StoreError> {
        tracing::error!(session = %seen.id, problem, "a turn is failed, and nothing else of it is recorded");
        let effects = self.store().effect_list_readable(&seen.id, turn).await?;
        let updated = self.committer.update(&seen.id, |current| {
            let is_ours = current.epoch == seen.epoch || current.owner.as_ref() == Some(&self.worker);
            let is_active = current.active_turn_id.as_ref() == Some(turn);
            let change = || fail_alone(current, turn, &effects, for_good::CODE, &problem, &stamp());
            Ok::<_, std::convert::Infallible>((is_ours && is_active).then(change))
        });
        match updated.await {
            Ok(Updated::Missing | Updated::Unchanged(_) | Updated::Committed(_)) => Ok(Advanced::Done),
            Err(error) if error.fault() == Fault::ForGood => {
                tracing::error!(session = %seen.id, %error, "the database lets nobody end a turn");
                Ok(Advanced::Stuck)
            }
            Err(error) => Err(error),
        }
    }

    /// The process stops: the session is given back, so that the next process takes it at once.
    async fn stopped(&self, taken: Option<Session>, journal: &Journal, abort: &Abort) -> Result<Advanced, StoreError> {
        let Some(session) = taken else { return Ok(Advanced::Done) };
        match abort.first_kind() {
            Some(AbortKind::Cancel | AbortKind::OwnershipLost) => return Ok(Advanced::Done),
            Some(AbortKind::Shutdown | AbortKind::Deadline) | None => {}
        }
        let rows: Vec<EffectRow> = journal.rows().cloned().collect();
        let epoch = session.epoch;
        let updated = self.committer.update(&session.id, |current| {
            let is_ours = current.epoch == epoch && current.owner.as_ref() == Some(&self.worker);
            Ok::<_, std::convert::Infallible>(is_ours.then(|| release(current, &rows, &stamp())))
        });
        match updated.await? {
            Updated::Missing | Updated::Unchanged(_) | Updated::Committed(_) => Ok(Advanced::Done),
        }
    }
}

/// A run whose harness is gone keeps its lease: what the harness was doing gets the time to end before anything of it
/// is marked uncertain or begun again (engine b.4). One that began nothing is simply offered again.
fn after_lost_connection(taken: Option<&Session>) -> Duration {
    match taken {
        Some(_) => LEASE,
        None => LOOK_AGAIN,
    }
}
