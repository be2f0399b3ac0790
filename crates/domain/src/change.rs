//! What one transaction does to a session, as data: state, events, journal, outbox and ledger change together or not at
//! all.

use crate::checkpoint::Checkpoint;
use crate::direct_call::DirectCallChange;
use crate::effect::{EffectKind, EffectOutcome, EffectStatus, RunsAt};
use crate::event::{Event, Payload, Source};
use crate::id::{CallId, EffectId, EventId, InvocationId, MessageId, SessionId, TurnId};
use crate::json::Json;
use crate::model::words;
use crate::queue::QueuedMessage;
use crate::session::Session;
use crate::time::Millis;
use crate::usage::UsageRow;
use crate::workspace::WorkspaceRecord;

/// Time and fresh ids: what a pure decision cannot make itself.
pub struct Stamp<'a> {
    /// The time of the decision.
    pub now: Millis,
    /// Makes a UUID.
    pub uuid: &'a (dyn Fn() -> String + Sync),
}

/// One transaction on one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionChange {
    /// The row's revision that the decision was made on; another one refuses the whole change.
    pub before_rev: i64,
    /// The row after it.
    pub session: Session,
    /// Events, in order; their sequence numbers follow the row's head as it was.
    pub events: Vec<Event>,
    /// The command that caused it, remembered by its idempotency key.
    pub command: Option<CommandRecord>,
    /// What happens in the journal, in order.
    pub effects: Vec<EffectChange>,
    /// What happens to the checkpoint.
    pub checkpoint: CheckpointChange,
    /// What happens to messages that wait, in order.
    pub queue: Vec<QueueChange>,
    /// What happens in the outbox.
    pub wake: WakeChange,
    /// New rows of the ledger.
    pub usage: Vec<UsageRow>,
    /// Records of workspaces, as they are now.
    pub workspaces: Vec<WorkspaceRecord>,
    /// Calls of the application that begin or end.
    pub direct_calls: Vec<DirectCallChange>,
    /// Whose workspace no other session's turn may have: what uses it begins with this change.
    pub claims_workspace_of: Option<SessionId>,
}

impl SessionChange {
    /// Begins a change of `session`.
    pub fn of(session: &Session) -> Self {
        let mut after = session.clone();
        after.rev += 1;
        Self {
            before_rev: session.rev,
            session: after,
            events: Vec::new(),
            command: None,
            effects: Vec::new(),
            checkpoint: CheckpointChange::Keep,
            queue: Vec::new(),
            wake: WakeChange::Keep,
            usage: Vec::new(),
            workspaces: Vec::new(),
            direct_calls: Vec::new(),
            claims_workspace_of: None,
        }
    }

    /// Claims the workspace, where other sessions use it too: the change is refused while another one's turn has it.
    pub(crate) fn claim_workspace(&mut self) {
        let session = &self.session;
        self.claims_workspace_of = session.shares_workspace().then(|| session.workspace_owner().clone());
    }

    /// Appends an event of the given turn and answers its sequence number.
    pub fn event(&mut self, source: Source, turn_id: Option<TurnId>, payload: Payload, stamp: &Stamp<'_>) -> i64 {
        let seq = self.session.head;
        self.events.push(Event {
            id: EventId::from_trusted((stamp.uuid)()),
            session_id: self.session.id.clone(),
            seq,
            turn_id,
            epoch: self.session.epoch,
            time: stamp.now,
            source,
            payload,
        });
        self.session.head = seq + 1;
        self.session.last_event_at = Some(stamp.now);
        seq
    }
}

/// An accepted write of the tenant's settings, by its key: a repetition gets the same answer (api 1.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantWrite {
    /// What was written, by the name of its route; keys of different operations have nothing to do with each other.
    pub operation: String,
    /// The caller's key.
    pub idempotency_key: String,
    /// SHA-256 of the body without `requestId`, canonical.
    pub body_hash: String,
    /// What was answered.
    pub answer: Json,
    /// When it was accepted.
    pub at: Millis,
}

/// An accepted command, by its key: a repetition gets the same answer (api 1.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// The caller's key.
    pub idempotency_key: String,
    /// SHA-256 of the body without `requestId`, canonical.
    pub body_hash: String,
    /// The first request's name.
    pub request_id: String,
    /// The answer's turn.
    pub turn_id: Option<TurnId>,
    /// The answer's cursor: the sequence number of the event that the command wrote.
    pub seq: i64,
    /// When it was accepted.
    pub at: Millis,
}

/// A row of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectRow {
    /// The effect.
    pub id: EffectId,
    /// Its session.
    pub session_id: SessionId,
    /// Its turn.
    pub turn_id: TurnId,
    /// The turn's segment.
    pub segment: u32,
    /// What kind it is.
    pub kind: EffectKind,
    /// The call's own id.
    pub invocation_id: InvocationId,
    /// Of a tool call: the call, the tool and the capability.
    pub tool: Option<EffectTool>,
    /// Hash of its request.
    pub request_hash: String,
    /// Where it stands.
    pub status: EffectStatus,
    /// What it gave, while a replay may need it.
    pub outcome: Option<EffectOutcome>,
    /// Why it is uncertain.
    pub error: Option<String>,
}

/// What names a tool call in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectTool {
    /// The call as the model named it.
    pub call_id: CallId,
    /// The tool.
    pub name: String,
    /// The capability that declares it.
    pub capability_id: String,
    /// Where it runs.
    pub runs_at: RunsAt,
    /// What it is about ([`crate::tool::WorkspaceTool::subject`]), while it may become uncertain.
    pub subject: Option<String>,
}

/// One change of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectChange {
    /// Intents are recorded.
    Insert(Vec<EffectRow>),
    /// An outcome is recorded. The outcome is left out when the turn ends with it: nothing will replay it.
    Complete {
        /// The effect.
        id: EffectId,
        /// What it gave.
        outcome: Option<EffectOutcome>,
    },
    /// The effect may or may not have happened.
    Uncertain {
        /// The effect.
        id: EffectId,
        /// What is known.
        error: String,
    },
    /// The effect is given up: its turn ended without it, and it cannot have changed anything.
    Cancel {
        /// The effect.
        id: EffectId,
    },
    /// The outcomes of an ended turn are dropped: the record has them.
    SlimTurn {
        /// The turn.
        turn_id: TurnId,
    },
    /// The intent is forgotten, and what a gate held of the call with it, so that the effect may run again.
    Forget {
        /// The effect.
        id: EffectId,
    },
}

/// What happens to the session's checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointChange {
    /// Nothing.
    Keep,
    /// This is the session's checkpoint from now on.
    Put(Box<Checkpoint>),
    /// The turn ended: there is none.
    Clear,
}

/// What happens to messages that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueChange {
    /// It waits from now on.
    Put(Box<QueuedMessage>),
    /// It waits no more.
    Remove(MessageId),
    /// None waits any more.
    Clear,
}

/// What happens in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeChange {
    /// Nothing.
    Keep,
    /// The session is to be advanced.
    Put(Wake),
    /// The session is taken: every wake that led here is done.
    Clear,
}

/// A row of the outbox: this session is to be advanced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The row's own id, and its key towards a scheduler: a wake sent twice runs once.
    pub id: String,
    /// The session.
    pub session_id: SessionId,
    /// Why.
    pub reason: WakeReason,
    /// When.
    pub created_at: Millis,
}

words! {
    /// Why a session is to be advanced (engine d.1).
    WakeReason {
        /// A message began a turn.
        Message = "message",
        /// An uncertain effect was settled.
        Settle = "settle",
        /// A question of the turn was answered.
        Answer = "answer",
        /// A segment used up its budget.
        Rollover = "rollover",
        /// Its owner is gone.
        Recover = "recover",
    }
}
