//! The tool gate: calls the HTTP endpoints that a manifest names for its tools (engine e.4).

use std::sync::Arc;

use nylorun_domain::id::{AgentId, EffectId, SessionId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::manifest::AgentManifest;
use nylorun_domain::tool::ToolOutcome;

use crate::BoxFuture;
use crate::abort::Abort;

/// One call. Where it goes stands in the manifest, never in the call.
#[derive(Clone, Debug)]
pub struct HttpToolCall {
    /// The session.
    pub session_id: SessionId,
    /// Its turn.
    pub turn_id: TurnId,
    /// The turn's root agent.
    pub agent_id: AgentId,
    /// The session's epoch; a newer one means that another owner took over.
    pub epoch: i64,
    /// The journaled effect: the call's key towards the endpoint and towards the gate.
    pub effect_id: EffectId,
    /// Hash of its request.
    pub request_hash: String,
    /// The turn's manifest.
    pub manifest: Arc<AgentManifest>,
    /// The tool.
    pub tool_name: String,
    /// Its input, not yet checked.
    pub input: Json,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpToolAnswer {
    /// A definite outcome.
    Done(ToolOutcome),
    /// The call may or may not have reached its endpoint, or its answer is lost.
    Lost {
        /// What is known.
        message: String,
    },
    /// The caller stopped waiting because of its abort, before there was an answer.
    Aborted,
}

/// Calls HTTP tools, each call at most once however often it is asked for: a repetition joins the call that is running,
/// or gets the answer that was recorded.
pub trait HttpTools: Send + Sync {
    /// Calls a tool. A shutdown does not end the call, so that it may finish; a deadline or a cancel does; a lost
    /// ownership ends only the waiting.
    fn call(&self, call: HttpToolCall, abort: Abort) -> BoxFuture<'_, HttpToolAnswer>;
}
