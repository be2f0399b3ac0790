//! Calls of workspace tools by the application itself, outside turns (api 2.5): their intent, and what becomes of it.
//!
//! No turn waits for such a call and nothing is ever run again for it, so it is no effect. But a command that may have
//! happened must not vanish with the process that ran it: before it runs the store says so, and when it ended the
//! record.

use crate::change::{SessionChange, Stamp};
use crate::event::{Payload, Source};
use crate::id::{SessionId, WorkerId};
use crate::json::Json;
use crate::session::Session;
use crate::time::Millis;
use crate::tool::WorkspaceTool;
use crate::turn::Refusal;
use crate::workspace::{ExecOutcome, WorkspaceEvent};

/// A call that runs, or ran when its process died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectCall {
    /// Its own id.
    pub id: String,
    /// The session whose workspace it uses.
    pub session_id: SessionId,
    /// The tool.
    pub tool: WorkspaceTool,
    /// What it is about ([`WorkspaceTool::subject`]).
    pub subject: Option<String>,
    /// The process that runs it.
    pub worker: WorkerId,
    /// When its intent was written.
    pub began_at: Millis,
}

/// What happens to calls of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectCallChange {
    /// One is about to run.
    Begin(DirectCall),
    /// What became of one is in the record.
    End {
        /// The call.
        id: String,
    },
}

/// On whose behalf a call is made.
#[derive(Clone, Debug)]
pub struct CallSite<'a> {
    /// The session.
    pub session: &'a Session,
    /// The session whose workspace it uses: the same, or the one whose workspace it shares.
    pub owner: &'a Session,
    /// Another session whose turn has that workspace.
    pub holder: Option<SessionId>,
}

/// Allows a call while no turn has the workspace, and writes its intent to the workspace's owner. `None`: nothing is to
/// be written before it runs, since it only reads.
pub fn begin(
    site: CallSite<'_>,
    tool: WorkspaceTool,
    input: &Json,
    worker: &WorkerId,
    stamp: &Stamp<'_>,
) -> Result<Option<SessionChange>, Refusal> {
    let CallSite { session, owner, holder } = site;
    if let Some(turn) = &session.active_turn_id {
        return Err(Refusal::WorkspaceInUse { active_turn_id: turn.clone() });
    }
    if let Some(by) = holder {
        return Err(Refusal::WorkspaceHeld { by: Some(by) });
    }
    if tool.is_read_only() {
        return Ok(None);
    }
    let mut change = SessionChange::of(owner);
    change.claim_workspace();
    change.direct_calls.push(DirectCallChange::Begin(DirectCall {
        id: (stamp.uuid)(),
        session_id: owner.id.clone(),
        tool,
        subject: tool.subject(input),
        worker: worker.clone(),
        began_at: stamp.now,
    }));
    Ok(Some(change))
}

/// Records what a call did with the workspace's owner. `intent` is what `begin` wrote for it. `None`: there is nothing
/// to say.
pub fn end(
    owner: &Session,
    intent: Option<&DirectCall>,
    events: Vec<WorkspaceEvent>,
    stamp: &Stamp<'_>,
) -> Option<SessionChange> {
    if intent.is_none() && events.is_empty() {
        return None;
    }
    let mut change = SessionChange::of(owner);
    for event in events {
        change.event(Source::Api, None, Payload::Workspace(event), stamp);
    }
    change.direct_calls.extend(intent.map(|call| DirectCallChange::End { id: call.id.clone() }));
    Some(change)
}

/// Says of a call that its answer was lost: it may or may not have happened.
pub fn lost(call: &DirectCall, now: Millis) -> WorkspaceEvent {
    let named = |name: &str| call.subject.clone().filter(|_| call.tool.subject_name() == name);
    WorkspaceEvent::Exec {
        tool: call.tool,
        command: named("command"),
        path: named("path"),
        exit_code: None,
        killed: false,
        outcome: ExecOutcome::Uncertain,
        code: Some("sandbox.uncertain".to_owned()),
        duration_ms: now.0.saturating_sub(call.began_at.0).max(0),
    }
}
