//! A session's workspace tools, called by the application (api 2.5).

use nylorun_domain::caller::Caller;
use nylorun_domain::change::SessionChange;
use nylorun_domain::event::{Payload, Source};
use nylorun_domain::id::SessionId;
use nylorun_domain::json::Json;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::WorkspaceKey;
use nylorun_ports::abort::Abort;
use nylorun_ports::workspaces::{WorkspaceAnswer, WorkspaceCall, WorkspaceOutcome};
use nylorun_turns::stamp;

use crate::{App, Error};

impl App {
    /// Runs one tool in the session's workspace, while no turn is active.
    pub async fn workspace_tool(
        &self,
        caller: &Caller,
        id: &SessionId,
        tool: WorkspaceTool,
        input: Json,
    ) -> Result<ToolOutcome, Error> {
        let session = self.session(caller, id).await?;
        if let Some(turn) = session.active_turn_id {
            return Err(Error::Conflict {
                code: nylorun_wire::code::Code::RequestRejected,
                message: "a turn is active: its tools have the workspace; wait for it to end, or cancel it".to_owned(),
                active_turn: Some(turn),
                details: None,
            });
        }
        let Some(spec) = session.workspace else { return Err(Error::not_found("The session has no sandbox")) };
        let call = WorkspaceCall {
            session_id: id.clone(),
            turn_id: None,
            epoch: None,
            key: WorkspaceKey::of_session(self.tenant_id(), id),
            spec,
            tool,
            input,
        };
        let answer = self.parts().workspaces.call(call, Abort::never()).await;
        self.record(id, &answer).await?;
        Ok(match answer.outcome {
            WorkspaceOutcome::Done(outcome) => outcome,
            WorkspaceOutcome::Uncertain { message } => ToolOutcome::failed("sandbox.uncertain", message),
            WorkspaceOutcome::Aborted => ToolOutcome::failed("sandbox.cancelled", "the server is closing"),
        })
    }

    async fn record(&self, id: &SessionId, answer: &WorkspaceAnswer) -> Result<(), Error> {
        if answer.events.is_empty() && answer.record.is_none() {
            return Ok(());
        }
        let updated = self.committer().update(id, |session| {
            let mut change = SessionChange::of(session);
            for event in &answer.events {
                change.event(Source::Api, None, Payload::Workspace(event.clone()), &stamp());
            }
            change.workspaces.extend(answer.record.clone());
            Ok::<_, std::convert::Infallible>(Some(change))
        });
        updated.await?;
        Ok(())
    }
}
