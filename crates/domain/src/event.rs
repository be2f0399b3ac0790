//! Events of a session's record (api 4). What they look like on the wire is `wire::event`'s business.

use crate::change::EffectTool;
use crate::checkpoint::Interaction;
use crate::compaction::Compacted;
use crate::effect::EffectOutcome;
use crate::id::{CallId, EffectId, EventId, InteractionId, InvocationId, MessageId, SessionId, TurnId};
use crate::json::{Json, Text};
use crate::model::{Candidate, ModelFailure, words};
use crate::queue::QueueMode;
use crate::time::Millis;
use crate::tool::ToolOutcome;
use crate::transcript::{Edit, Input};
use crate::workspace::WorkspaceEvent;

/// One event of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its own id.
    pub id: EventId,
    /// The session.
    pub session_id: SessionId,
    /// Position in the session's record: from 0, without a gap.
    pub seq: i64,
    /// The turn, when it belongs to one.
    pub turn_id: Option<TurnId>,
    /// The session's epoch when it was written.
    pub epoch: i64,
    /// When it was written.
    pub time: Millis,
    /// Who wrote it.
    pub source: Source,
    /// What happened.
    pub payload: Payload,
}

words! {
    /// Who writes events.
    Source {
        /// The API.
        Api = "api",
        /// A turn.
        Loop = "loop",
    }
}

words! {
    /// Who may read an event.
    Visibility {
        /// Clients.
        Public = "public",
        /// The runtime alone; never served.
        Internal = "internal",
    }
}

words! {
    /// Why a message waits no more, without having been read.
    Removed {
        /// Somebody took it back.
        Request = "removed",
        /// The turn that it waited for was cancelled.
        Cancel = "cancelled",
    }
}

/// What happened (api 4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// `command.message`
    CommandMessage {
        /// The caller's name for the request.
        request_id: String,
        /// Its idempotency key.
        idempotency_key: String,
        /// What it said.
        input: Input,
        /// The turn's own manifest.
        manifest: Option<Json>,
    },
    /// `message.queued`
    MessageQueued {
        /// The message.
        message_id: MessageId,
        /// For what it waits.
        mode: QueueMode,
        /// The caller's name for the request.
        request_id: String,
        /// Its idempotency key.
        idempotency_key: String,
        /// What it says.
        input: Input,
        /// The manifest of the turn that it will begin.
        manifest: Option<Json>,
    },
    /// `message.steered`
    MessageSteered {
        /// The message.
        message_id: MessageId,
        /// The caller's name for the request.
        request_id: String,
        /// Its idempotency key.
        idempotency_key: String,
        /// What it says.
        input: Input,
    },
    /// `message.removed`
    MessageRemoved {
        /// The message.
        message_id: MessageId,
        /// Why.
        reason: Removed,
    },
    /// `command.approve`
    CommandApprove {
        /// The caller's name for the request.
        request_id: String,
        /// Its idempotency key.
        idempotency_key: String,
        /// The interaction.
        interaction_id: InteractionId,
        /// The answer.
        approved: bool,
    },
    /// `command.respond`
    CommandRespond {
        /// The caller's name for the request.
        request_id: String,
        /// Its idempotency key.
        idempotency_key: String,
        /// The interaction.
        interaction_id: InteractionId,
        /// The answer.
        value: Json,
    },
    /// `turn.paused`
    TurnPaused {
        /// What is asked.
        interactions: Vec<Interaction>,
    },
    /// `turn.completed`
    TurnCompleted {
        /// The turn's output.
        output: Json,
    },
    /// `turn.failed`
    TurnFailed {
        /// A dotted word.
        code: String,
        /// What happened.
        message: String,
    },
    /// `turn.cancelled`
    TurnCancelled {
        /// Why, in the caller's words.
        reason: Option<Text>,
    },
    /// `message.assistant`
    MessageAssistant {
        /// The model call.
        invocation_id: InvocationId,
        /// What it gave.
        candidate: Candidate,
    },
    /// `model.failed`
    ModelFailed {
        /// The model call.
        invocation_id: InvocationId,
        /// Why it failed.
        failure: ModelFailure,
    },
    /// `context.compacted`
    ContextCompacted {
        /// The model call that gave the last part of the summary.
        invocation_id: InvocationId,
        /// What happened.
        compacted: Compacted,
    },
    /// `tool.completed`
    ToolCompleted {
        /// The call as the model named it.
        call_id: CallId,
        /// The call's own id.
        invocation_id: InvocationId,
        /// The capability that declares the tool.
        capability_id: String,
        /// The tool.
        tool_name: String,
        /// What it gave.
        outcome: ToolOutcome,
    },
    /// `effect.uncertain`
    EffectUncertain {
        /// The effect.
        effect_id: EffectId,
        /// The call's own id.
        invocation_id: InvocationId,
        /// Of a tool call: which.
        tool: Option<EffectTool>,
        /// What is known.
        message: String,
    },
    /// `effect.settled`
    EffectSettled {
        /// The caller's name for the request.
        request_id: String,
        /// Its idempotency key.
        idempotency_key: String,
        /// The effect.
        effect_id: EffectId,
        /// What it is taken to have given; `None` when it is to run again.
        outcome: Option<EffectOutcome>,
    },
    /// `transcript.updated`: internal.
    TranscriptUpdated(Edit),
    /// `environment.state` or `environment.exec`.
    Workspace(WorkspaceEvent),
}

impl Payload {
    /// Who may read it.
    pub fn visibility(&self) -> Visibility {
        match self {
            Self::TranscriptUpdated(_) => Visibility::Internal,
            Self::CommandMessage { .. }
            | Self::MessageQueued { .. }
            | Self::MessageSteered { .. }
            | Self::MessageRemoved { .. }
            | Self::CommandApprove { .. }
            | Self::CommandRespond { .. }
            | Self::TurnPaused { .. }
            | Self::TurnCompleted { .. }
            | Self::TurnFailed { .. }
            | Self::TurnCancelled { .. }
            | Self::MessageAssistant { .. }
            | Self::ModelFailed { .. }
            | Self::ContextCompacted { .. }
            | Self::ToolCompleted { .. }
            | Self::EffectUncertain { .. }
            | Self::EffectSettled { .. }
            | Self::Workspace(_) => Visibility::Public,
        }
    }
}
