//! The runtime's side of one run: every step of it becomes one commit under the run's epoch.

use nylorun_domain::change::SessionChange;
use nylorun_domain::effect::Effect;
use nylorun_domain::id::{TurnId, WorkerId};
use nylorun_domain::json::quoted;
use nylorun_domain::segment::{EffectReport, IntentAnswer, Next, TurnEnd};
use nylorun_domain::session::Session;
use nylorun_domain::transcript::Edit;
use nylorun_domain::turn::{Beside, Journal, Step, StepError, step};
use nylorun_ports::BoxFuture;
use nylorun_ports::models::Delta;
use nylorun_ports::run::{CoreError, RunCore};
use nylorun_store::{Fault, StoreError};
use tokio::sync::Mutex;

use crate::clock::stamp;
use crate::committer::{CommitError, Committer};
use crate::for_good;
use crate::log;

/// One run's hold on its session.
pub(crate) struct SessionCore {
    committer: Committer,
    session: nylorun_domain::id::SessionId,
    turn: TurnId,
    epoch: i64,
    state: Mutex<State>,
}

struct State {
    base: Base,
    journal: Journal,
    /// What the run's output did to the transcript, once it is committed.
    edits: Option<Vec<Edit>>,
}

/// What the next step is decided upon.
enum Base {
    /// The take, not yet committed: it rides with the first step.
    Taking(Box<Taking>),
    /// The row as this run last wrote or read it.
    Taken(Box<Session>),
}

/// A take that is to be committed.
pub(crate) struct Taking {
    /// What it changes.
    pub(crate) change: SessionChange,
    /// The owner that is gone, when it left the session behind.
    pub(crate) from: Option<WorkerId>,
}

impl Taking {
    /// Says so when it took the session from somebody.
    pub(crate) fn committed(&self) {
        if let Some(dead) = &self.from {
            log::takeover(&self.change.session, dead);
        }
    }
}

impl SessionCore {
    /// A run that begins with this take.
    pub(crate) fn new(committer: Committer, take: Box<Taking>, turn: TurnId, journal: Journal) -> Self {
        Self {
            committer,
            session: take.change.session.id.clone(),
            turn,
            epoch: take.change.session.epoch,
            state: Mutex::new(State { base: Base::Taking(take), journal, edits: None }),
        }
    }

    /// The turn.
    pub(crate) fn turn(&self) -> &TurnId {
        &self.turn
    }

    /// What the run's output did to the transcript, when it has ended the segment with one that can be kept.
    pub(crate) async fn edits(&self) -> Option<Vec<Edit>> {
        self.state.lock().await.edits.clone()
    }

    /// The journal and whether the take was committed, after the run.
    pub(crate) async fn finish(&self) -> (Option<Session>, Journal) {
        let state = self.state.lock().await;
        let session = match &state.base {
            Base::Taking(_) => None,
            Base::Taken(session) => Some((**session).clone()),
        };
        (session, state.journal.clone())
    }

    async fn step(&self, reports: Vec<EffectReport>, next: &Next) -> Result<Vec<IntentAnswer>, CoreError> {
        let mut state = self.state.lock().await;
        loop {
            let base = match &state.base {
                Base::Taking(take) => take.change.clone(),
                Base::Taken(session) => SessionChange::of(session),
            };
            let beside = self.beside(&base.session, next).await?;
            let Step { change, journal, answers } =
                step(base, &self.turn, &state.journal, reports.clone(), next, &beside, &stamp()).map_err(refusal)?;
            match self.committer.commit(&change).await {
                Ok(()) => {
                    if let Base::Taking(take) = &state.base {
                        take.committed();
                    }
                    *state = State { base: Base::Taken(Box::new(change.session)), journal, edits: edits_of(next) };
                    return Ok(answers);
                }
                Err(CommitError::Stale) => *state = self.reload(&state).await?,
                Err(CommitError::Store(error)) => return Err(not_stored(&error)),
            }
        }
    }

    /// What others left for the turn. It belongs to the row that was loaded: another row refuses the step.
    async fn beside(&self, session: &Session, next: &Next) -> Result<Beside, CoreError> {
        let store = self.committer.store();
        let (needs_waits, needs_queue) = match next {
            Next::Nothing => (false, false),
            Next::Intents(_) => (false, session.steers > 0),
            Next::Output(output) => match output.end {
                TurnEnd::Paused { .. } => (session.segment > 0, false),
                TurnEnd::Completed { .. } | TurnEnd::Failed { .. } => (false, session.queued > 0),
                TurnEnd::Yielded { .. } | TurnEnd::Uncertain => (false, false),
            },
        };
        let mut beside = Beside::default();
        if needs_waits {
            let checkpoint = store.checkpoint_get(&self.session).await.map_err(not_read)?;
            beside.waits = checkpoint.map(|checkpoint| checkpoint.waits).unwrap_or_default();
        }
        if needs_queue {
            beside.queued = store.queue_list(&self.session).await.map_err(not_read)?;
        }
        Ok(beside)
    }

    /// The row changed under the run: it goes on only if the run still holds it.
    async fn reload(&self, state: &State) -> Result<State, CoreError> {
        match state.base {
            // Decided on an older row: the advance begins again.
            Base::Taking(_) => return Err(CoreError::OwnershipLost),
            Base::Taken(_) => {}
        }
        let store = self.committer.store();
        let session = store.session_get(&self.session).await.map_err(not_read)?;
        let session = session.ok_or(CoreError::OwnershipLost)?;
        if session.epoch != self.epoch {
            return Err(CoreError::OwnershipLost);
        }
        if session.active_turn_id.as_ref() != Some(&self.turn) {
            return Err(CoreError::TurnCancelled);
        }
        let rows = store.effect_list(&self.session, &self.turn).await.map_err(not_read)?;
        Ok(State { base: Base::Taken(Box::new(session)), journal: state.journal.clone().refreshed(rows), edits: None })
    }
}

/// The edits of a segment's end. After a failure the transcript is what it was before the turn, which this run may not
/// have.
fn edits_of(next: &Next) -> Option<Vec<Edit>> {
    match next {
        Next::Nothing | Next::Intents(_) => None,
        Next::Output(output) => match output.end {
            TurnEnd::Completed { .. } | TurnEnd::Yielded { .. } | TurnEnd::Paused { .. } => Some(output.edits.clone()),
            TurnEnd::Failed { .. } | TurnEnd::Uncertain => None,
        },
    }
}

/// Why a step was not stored, for its run.
fn not_stored(error: &StoreError) -> CoreError {
    match error.fault() {
        Fault::Passing | Fault::NoWrites => CoreError::Unavailable(error.to_string()),
        Fault::ForGood => {
            tracing::error!(%error, "the database refuses what a turn records");
            CoreError::Refused(for_good::not_recorded(error))
        }
    }
}

/// Why what a step needs could not be read, for its run.
fn not_read(error: StoreError) -> CoreError {
    match error.fault() {
        Fault::Passing | Fault::NoWrites => CoreError::Unavailable(error.to_string()),
        Fault::ForGood => {
            tracing::error!(%error, "what is stored for a turn cannot be read");
            CoreError::Refused(for_good::not_read(&error))
        }
    }
}

fn refusal(error: StepError) -> CoreError {
    match error {
        StepError::TurnCancelled => CoreError::TurnCancelled,
        StepError::EffectDrift(effect) => CoreError::EffectDrift(effect),
        StepError::UnknownEffect(effect) => CoreError::Unavailable(format!("effect {effect} has no intent")),
    }
}

impl RunCore for SessionCore {
    fn commit(&self, reports: Vec<EffectReport>, next: Next) -> BoxFuture<'_, Result<Vec<IntentAnswer>, CoreError>> {
        Box::pin(async move { self.step(reports, &next).await })
    }

    fn delta(&self, effect: &Effect, delta: Delta) {
        self.committer.live().delta(&self.session, &effect.invocation_id, || {
            format!(
                r#"{{"sessionId":{},"turnId":{},"epoch":{},"invocationId":{},"attempt":{},"index":{},"text":{}}}"#,
                quoted(self.session.as_str()),
                quoted(self.turn.as_str()),
                self.epoch,
                quoted(effect.invocation_id.as_str()),
                delta.attempt,
                delta.index,
                quoted(&delta.text),
            )
        });
    }
}
