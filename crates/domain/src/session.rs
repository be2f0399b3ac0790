//! A session and what it may go through (api 2.2, engine b.3).

use crate::id::{AgentId, SessionId, TurnId, UserId, WorkerId};
use crate::json::Json;
use crate::model::words;
use crate::time::Millis;
use crate::workspace::WorkspaceSpec;

words! {
    /// Where a session stands.
    Status {
        /// Open, nothing said yet.
        Idle = "idle",
        /// A turn is to be advanced.
        Runnable = "runnable",
        /// A turn is being advanced.
        Running = "running",
        /// A turn waits on outside work.
        Waiting = "waiting",
        /// A turn waits for a person.
        Paused = "paused",
        /// A turn waits for an uncertain effect to be settled.
        Uncertain = "uncertain",
        /// The last turn completed.
        Completed = "completed",
        /// The last turn failed.
        Failed = "failed",
        /// The last turn was cancelled.
        Cancelled = "cancelled",
    }
}

impl Status {
    /// Whether a new message may begin a turn.
    pub fn accepts_message(self) -> bool {
        match self {
            Self::Idle | Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Runnable | Self::Running | Self::Waiting | Self::Paused | Self::Uncertain => false,
        }
    }
}

words! {
    /// Where a session's workspace came from (api 2.2).
    SandboxSource {
        /// The tenant's default.
        Default = "default",
        /// The session's own request.
        Inline = "inline",
        /// Another session's workspace.
        Shared = "shared",
    }
}

/// A session's row: small and hot. What grows is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id, chosen by the caller.
    pub id: SessionId,
    /// Its agent.
    pub agent_id: AgentId,
    /// The person it belongs to.
    pub owner_user_id: UserId,
    /// The definition as it was when the session opened.
    pub definition_hash: String,
    /// The session's own copy: the definition and what the runtime added.
    pub manifest_hash: String,
    /// The definition's version, as its author named it.
    pub implementation_version: String,
    /// Hash of what it was opened with: another body for the same id is a conflict.
    pub identity_hash: String,
    /// The application's own data.
    pub info: Option<Json>,
    /// Attached vaults, a JSON array of ids.
    pub vault_ids: Json,
    /// Chosen credentials, a JSON array.
    pub credential_selections: Json,
    /// Its workspace, when it has one.
    pub workspace: Option<WorkspaceSpec>,
    /// Where the workspace came from.
    pub sandbox_source: Option<SandboxSource>,
    /// The session whose workspace this one uses, when it is not its own. That session shares nobody's.
    pub sandbox_owner: Option<SessionId>,
    /// When it was opened.
    pub created_at: Millis,

    /// Where it stands.
    pub status: Status,
    /// The turn that is active.
    pub active_turn_id: Option<TurnId>,
    /// The turn that ended last.
    pub last_turn_id: Option<TurnId>,
    /// The active turn's segment, from 0.
    pub segment: u32,
    /// Where in the record the message stands that began the turn.
    pub input_seq: Option<i64>,
    /// The active turn's own manifest, when its message brought one.
    pub turn_manifest_hash: Option<String>,
    /// Where in the record the transcript is read from.
    pub history_from: i64,
    /// Where in the record the newest edit stands that replaces the whole transcript. Reading begins there once the
    /// next turn starts; until then a cancel or a failure may need what was before (engine b.11).
    pub history_snapshot: Option<i64>,
    /// How often the session was taken: the fence of every write of a turn.
    pub epoch: i64,
    /// Who advances it.
    pub owner: Option<WorkerId>,
    /// The next event's sequence number.
    pub head: i64,
    /// Counts changes of this row: a change made against an older one is refused.
    pub rev: i64,
    /// When the last event was written.
    pub last_event_at: Option<Millis>,
    /// Why the last turn failed.
    pub error: Option<String>,
    /// How many messages wait.
    pub queued: i64,
    /// How many of them are for the running turn to read.
    pub steers: i64,
    /// How many other sessions use this one's workspace. It is there as long as they are.
    pub sharers: i64,
}

impl Session {
    /// The session that keys the workspace: this one, or the one whose workspace it shares.
    pub fn workspace_owner(&self) -> &SessionId {
        self.sandbox_owner.as_ref().unwrap_or(&self.id)
    }

    /// Whether other sessions use the same workspace: one turn at a time has it.
    pub fn shares_workspace(&self) -> bool {
        self.sandbox_owner.is_some() || self.sharers > 0
    }
}
