//! A session's workspace tools, called by the application (api 2.5).

use nylorun_domain::caller::Caller;
use nylorun_domain::direct_call::{self, CallSite, DirectCall, DirectCallChange};
use nylorun_domain::id::SessionId;
use nylorun_domain::json::Json;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceSpec};
use nylorun_ports::workspaces::{WorkspaceAnswer, WorkspaceCall, WorkspaceOutcome};
use nylorun_turns::{CommitError, now, stamp};

use crate::{App, Error};

/// A call that may run now.
struct Begun {
    /// The session whose workspace it uses.
    owner: SessionId,
    /// What that is made with.
    spec: WorkspaceSpec,
    /// What is to be ended with it.
    intent: Option<DirectCall>,
}

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
        let Begun { owner, spec, intent } = self.direct_call_begin(caller, id, tool, &input).await?;
        let call = WorkspaceCall {
            claim: None,
            key: WorkspaceKey::of_session(self.tenant_id(), &owner),
            owner: owner.clone(),
            spec,
            tool,
            input,
        };
        let answer = self.parts().workspaces.call(call, self.resets().calls()).await;
        self.direct_call_end(&owner, intent, &answer).await?;
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
        caller: &Caller,
        id: &SessionId,
        tool: WorkspaceTool,
        input: &Json,
    ) -> Result<Begun, Error> {
        let worker = self.parts().scheduler.worker();
        loop {
            let session = self.session(caller, id).await?;
            let Some(spec) = session.workspace.clone() else {
                return Err(Error::not_found("The session has no sandbox"));
            };
            let other = match &session.sandbox_owner {
                Some(owner) => Some(self.store().session_get(owner).await?.ok_or_else(Error::session_not_found)?),
                None => None,
            };
            // Read after the rows that the change is decided upon.
            let holder = self.workspace_holder(&session).await?;
            let owner = other.as_ref().unwrap_or(&session);
            let site = CallSite { session: &session, owner, holder };
            let begun = |intent| Begun { owner: owner.id.clone(), spec, intent };
            let change = match direct_call::begin(site, tool, input, worker, &stamp()) {
                Ok(Some(change)) => change,
                Ok(None) => return Ok(begun(None)),
                Err(refusal) => return Err(self.told(caller, refusal).await),
            };
            match self.committer().commit(&change).await {
                Ok(()) => {
                    return Ok(begun(change.direct_calls.into_iter().find_map(|change| match change {
                        DirectCallChange::Begin(call) => Some(call),
                        DirectCallChange::End { .. } => None,
                    })));
                }
                Err(CommitError::Stale) => {}
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
    }

    /// Records what a call did with the session that owns the workspace.
    async fn direct_call_end(
        &self,
        owner: &SessionId,
        intent: Option<DirectCall>,
        answer: &WorkspaceAnswer,
    ) -> Result<(), Error> {
        let mut events = answer.events.clone();
        let Some(call) = intent else {
            let end = |session: &_| direct_call::end(session, None, events.clone(), &stamp());
            self.committer().update(owner, |session| Ok::<_, std::convert::Infallible>(end(session))).await?;
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
