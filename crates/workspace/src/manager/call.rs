//! One call of a tool: its outcome, and what is recorded with it (environments 3, outcomes of a tool call).

use std::time::{Duration, Instant};

use nylorun_domain::json::Value;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::{WORKSPACE_DIR, WorkspaceEvent};
use nylorun_ports::abort::Abort;
use nylorun_ports::backends::{ExecCommand, ExecResult, HandleError, Killed, WorkspaceHandle};
use nylorun_ports::workspaces::{WorkspaceAnswer, WorkspaceCall, WorkspaceChange, WorkspaceOutcome};

use super::events::{Exit, exec_event};
use super::slots::Patience;
use super::{Caller, Visit};
use crate::tools::FILE_TOOL_TIME;
use crate::tools::input::{Bash, ToolCall, check_input};

/// Runs a call once its turn in the lane has come.
pub(super) async fn run(visit: Visit, call: WorkspaceCall, mut abort: Abort) -> WorkspaceAnswer {
    let checked = match check_input(call.tool, &call.input) {
        Ok(checked) => checked,
        Err(refusal) => return answer(WorkspaceOutcome::Done(refusal)),
    };
    tokio::select! {
        biased;
        _ = abort.aborted() => return answer(WorkspaceOutcome::Aborted),
        () = visit.turn() => {}
    }
    if visit.inner.is_closing() {
        return answer(WorkspaceOutcome::Aborted);
    }
    in_workspace(&visit, call, &checked, abort).await
}

/// Of a call that ran nothing.
fn answer(outcome: WorkspaceOutcome) -> WorkspaceAnswer {
    WorkspaceAnswer { outcome, events: Vec::new() }
}

async fn in_workspace(visit: &Visit, call: WorkspaceCall, checked: &ToolCall, abort: Abort) -> WorkspaceAnswer {
    let WorkspaceCall { claim, owner, key: _, spec, tool, input } = call;
    let caller = Caller { claim, owner, spec };
    let began = Instant::now();
    let patience = Patience::new(abort.clone(), time_limit(checked));
    let sent = send(visit, &caller, &patience, tool, |handle| {
        let (checked, input, abort) = (checked.clone(), input.clone(), abort.clone());
        async move {
            match checked {
                ToolCall::Bash(bash) => Ok(from_exec(handle.exec(command(bash), abort).await?)),
                ToolCall::File(_) => Ok((handle.file_tool(tool, input, abort).await?, Exit::default())),
            }
        }
    })
    .await;
    let (outcome, exit) = match sent {
        Ok(ended) => ended,
        Err(outcome) => return answer(outcome),
    };
    visit.space.state.lock().await.last_used = Some(visit.inner.log.now());
    let duration_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    let has_run = outcome.is_some() || exit.killed;
    let event = has_run.then(|| exec_event(tool, checked, exit, outcome.as_ref(), duration_ms));
    let outcome = outcome.map_or(WorkspaceOutcome::Aborted, WorkspaceOutcome::Done);
    let left = match event {
        Some(event) => to_record(visit, &caller, event).await,
        None => None,
    };
    WorkspaceAnswer { outcome, events: left.into_iter().collect() }
}

/// What is left to record with the outcome: of a turn in another session's workspace nothing, since that session's log
/// is no part of the outcome's transaction and is written here.
async fn to_record(visit: &Visit, caller: &Caller, event: WorkspaceEvent) -> Option<WorkspaceEvent> {
    let Caller { claim, owner, .. } = caller;
    if claim.as_ref().is_none_or(|claim| claim.session_id == *owner) {
        return Some(event);
    }
    let change = WorkspaceChange { session_id: owner.clone(), claim: claim.clone(), event, record: None };
    if let Err(error) = visit.inner.log.write(change).await {
        // The call ran, and its outcome says so.
        tracing::warn!(key = visit.space.key.as_str(), %error, "a call was not recorded with the workspace's owner");
    }
    None
}

/// Sends a call to the workspace, which is opened when it must be. What was not sent is sent to a new handle once;
/// what was sent and only reads is run again once; anything else that was sent is never sent again.
pub(super) async fn send<T, Sent: Future<Output = Result<T, HandleError>>>(
    visit: &Visit,
    caller: &Caller,
    patience: &Patience,
    tool: WorkspaceTool,
    to: impl Fn(std::sync::Arc<dyn WorkspaceHandle>) -> Sent,
) -> Result<T, WorkspaceOutcome> {
    let mut is_retry = false;
    loop {
        let handle = visit.inner.handle(&visit.space, caller, patience).await?;
        let error = match to(handle).await {
            Ok(sent) => return Ok(sent),
            Err(error) => error,
        };
        tracing::warn!(key = visit.space.key.as_str(), tool = tool.as_str(), %error, "a workspace gave no answer");
        match error {
            HandleError::NotSent(_) if !is_retry => {}
            HandleError::Lost(_) if tool.is_read_only() && !is_retry => {}
            HandleError::NotSent(message) => return Err(failed("sandbox.start_failed", message)),
            HandleError::Lost(message) if tool.is_read_only() => return Err(failed("sandbox.error", message)),
            HandleError::Lost(message) => return Err(WorkspaceOutcome::Uncertain { message }),
        }
        is_retry = true;
    }
}

fn failed(code: &str, message: String) -> WorkspaceOutcome {
    WorkspaceOutcome::Done(ToolOutcome::failed(code, message))
}

/// How long a call may take once it was sent, and how long it waits before.
fn time_limit(call: &ToolCall) -> Duration {
    match call {
        ToolCall::Bash(bash) => bash.time_limit,
        ToolCall::File(_) => FILE_TOOL_TIME,
    }
}

fn command(bash: Bash) -> ExecCommand {
    let Bash { command, time_limit } = bash;
    ExecCommand { command, cwd: WORKSPACE_DIR.to_owned(), env: Vec::new(), time_limit }
}

/// A command's outcome: whatever its exit code, it is data. None when an abort killed it.
fn from_exec(result: ExecResult) -> (Option<ToolOutcome>, Exit) {
    let exit = Exit { code: Some(result.exit_code), killed: result.killed.is_some() };
    if result.killed == Some(Killed::Abort) {
        return (None, exit);
    }
    let mut output = vec![
        ("exitCode", Value::from(i64::from(result.exit_code))),
        ("stdout", Value::from(result.stdout)),
        ("stderr", Value::from(result.stderr)),
    ];
    if result.truncated {
        output.push(("truncated", Value::from(true)));
    }
    if result.killed == Some(Killed::TimeLimit) {
        output.push(("timedOut", Value::from(true)));
    }
    (Some(ToolOutcome::Completed { output: Value::object(output).to_json() }), exit)
}
