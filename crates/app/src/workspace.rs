//! A session's workspace tools, called by the application (api 2.5).

use nylorun_domain::caller::Caller;
use nylorun_domain::direct_call::{self, DirectCall, DirectCallChange};
use nylorun_domain::id::SessionId;
use nylorun_domain::json::Json;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::WorkspaceKey;
use nylorun_ports::workspaces::{WorkspaceAnswer, WorkspaceCall, WorkspaceOutcome};
use nylorun_turns::{Updated, now, stamp};

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
        self.resets().refuse_work()?;
        let session = self.session(caller, id).await?;
        let Some(spec) = session.workspace else { return Err(Error::not_found("The session has no sandbox")) };
        let intent = self.direct_call_begin(id, tool, &input).await?;
        let call = WorkspaceCall {
            session_id: id.clone(),
            turn_id: None,
            epoch: None,
            key: WorkspaceKey::of_session(self.tenant_id(), id),
            spec,
            tool,
            input,
        };
        let answer = self.parts().workspaces.call(call, self.resets().calls()).await;
        self.direct_call_end(id, intent, &answer).await?;
        Ok(match answer.outcome {
            WorkspaceOutcome::Done(outcome) => outcome,
            WorkspaceOutcome::Uncertain { message } => ToolOutcome::failed("sandbox.uncertain", message),
            WorkspaceOutcome::Aborted => {
                ToolOutcome::failed("sandbox.cancelled", "the server is closing, or the tenant is being reset")
            }
        })
    }

    /// Writes down that a call is about to run, when it may change something.
    async fn direct_call_begin(
        &self,
        id: &SessionId,
        tool: WorkspaceTool,
        input: &Json,
    ) -> Result<Option<DirectCall>, Error> {
        let worker = self.parts().scheduler.worker();
        let begun =
            self.committer().update(id, |session| direct_call::begin(session, tool, input, worker, &stamp())).await?;
        match begun {
            Updated::Missing => Err(Error::session_not_found()),
            Updated::Refused(refusal) => Err(refusal.into()),
            Updated::Unchanged(_) => Ok(None),
            Updated::Committed(change) => Ok(change.direct_calls.into_iter().find_map(|change| match change {
                DirectCallChange::Begin(call) => Some(call),
                DirectCallChange::End { .. } => None,
            })),
        }
    }

    async fn direct_call_end(
        &self,
        id: &SessionId,
        intent: Option<DirectCall>,
        answer: &WorkspaceAnswer,
    ) -> Result<(), Error> {
        let mut events = answer.events.clone();
        let Some(call) = intent else {
            let end = |session: &_| direct_call::end(session, None, events.clone(), &stamp());
            self.committer().update(id, |session| Ok::<_, std::convert::Infallible>(end(session))).await?;
            return Ok(());
        };
        match &answer.outcome {
            WorkspaceOutcome::Uncertain { .. } => events.push(direct_call::lost(&call, now())),
            WorkspaceOutcome::Done(_) | WorkspaceOutcome::Aborted => {}
        }
        // If this fails, the intent stays, and the next process says that nobody knows what became of the call.
        Ok(self.committer().direct_call_end(&call, &events).await?)
    }
}
