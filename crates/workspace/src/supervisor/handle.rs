//! A workspace behind a supervisor.

use std::time::Duration;

use nylorun_domain::json::Json;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::{Abort, AbortKind};
use nylorun_ports::backends::{ExecCommand, ExecResult, FileBytes, FileList, HandleError, Killed, WorkspaceHandle};

use super::frame::KilledBy;
use super::link::Call;
use super::{Body, GRACE, Link, Op};
use crate::tools::FILE_TOOL_TIME;

/// A [`WorkspaceHandle`] on a supervisor.
#[derive(Debug)]
pub(crate) struct SupervisedHandle(pub(crate) Link);

impl WorkspaceHandle for SupervisedHandle {
    fn is_alive(&self) -> bool {
        self.0.is_alive()
    }

    fn exec(&self, command: ExecCommand, abort: Abort) -> BoxFuture<'_, Result<ExecResult, HandleError>> {
        Box::pin(self.exec_until(command, abort))
    }

    fn file_tool(
        &self,
        tool: WorkspaceTool,
        input: Json,
        abort: Abort,
    ) -> BoxFuture<'_, Result<Option<ToolOutcome>, HandleError>> {
        Box::pin(async move {
            let op = Op::Tool { tool: tool.as_str().to_owned(), input: input.as_str().to_owned() };
            let mut call = self.0.call(op)?;
            let abort = if tool.is_read_only() { abort } else { Abort::never() };
            match self.wait(&mut call, FILE_TOOL_TIME, abort).await? {
                Waited::Answer(Body::Completed { output }, _) => {
                    Ok(Some(ToolOutcome::Completed { output: Json::from_trusted(output) }))
                }
                Waited::Answer(Body::Failed { code, message }, _) => Ok(Some(ToolOutcome::Failed { code, message })),
                Waited::Answer(Body::Stopped, _) | Waited::Aborted => Ok(None),
                Waited::Answer(other, _) => Err(unexpected(&other)),
                Waited::TimedOut => Err(HandleError::Lost("the shell process did not answer in time".to_owned())),
            }
        })
    }

    fn read_bytes(&self, path: String, max: u64) -> BoxFuture<'_, Result<FileBytes, HandleError>> {
        Box::pin(async move {
            match self.ask(Op::ReadBytes { path, max }).await? {
                (Body::Bytes, data) => Ok(FileBytes::Bytes(data)),
                (Body::Missing, _) => Ok(FileBytes::Missing),
                (Body::TooLarge { size }, _) => Ok(FileBytes::TooLarge(size)),
                (other, _) => Err(unexpected(&other)),
            }
        })
    }

    fn list_files(&self, dir: String, max_entries: u32) -> BoxFuture<'_, Result<Option<FileList>, HandleError>> {
        Box::pin(async move {
            match self.ask(Op::ListFiles { dir, max_entries }).await? {
                (Body::Files { entries, truncated }, _) => Ok(Some(FileList { entries, truncated })),
                (Body::Missing, _) => Ok(None),
                (other, _) => Err(unexpected(&other)),
            }
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.stop())
    }
}

/// What became of waiting for an answer.
enum Waited {
    Answer(Body, Vec<u8>),
    /// Killed by the abort, its answer lost with the process.
    Aborted,
    /// Killed since no answer came in time.
    TimedOut,
}

impl SupervisedHandle {
    async fn exec_until(&self, command: ExecCommand, abort: Abort) -> Result<ExecResult, HandleError> {
        let ExecCommand { command, cwd, env, time_limit } = command;
        let time_limit_ms = u64::try_from(time_limit.as_millis()).unwrap_or(u64::MAX);
        let mut call = self.0.call(Op::Exec { command, cwd, env, time_limit_ms })?;
        match self.wait(&mut call, time_limit, abort).await? {
            Waited::Answer(Body::Exec { exit_code, stdout, stderr, truncated, killed, stuck: _ }, _) => {
                let killed = killed.map(|killed| match killed {
                    KilledBy::TimeLimit => Killed::TimeLimit,
                    KilledBy::Cancel => Killed::Abort,
                });
                Ok(ExecResult { exit_code, stdout, stderr, truncated, killed })
            }
            Waited::Answer(other, _) => Err(unexpected(&other)),
            Waited::Aborted => Ok(killed_silently(Killed::Abort, 130)),
            Waited::TimedOut => Ok(killed_silently(Killed::TimeLimit, 124)),
        }
    }

    /// Waits for the answer. On an abort beyond a shutdown's grace the call is cancelled, and its answer is waited
    /// for. The supervisor keeps the time itself; one that does not answer some time after `time` is killed.
    async fn wait(&self, call: &mut Call, time: Duration, mut abort: Abort) -> Result<Waited, HandleError> {
        tokio::select! {
            answer = call.answer() => return answer.map(|(body, data)| Waited::Answer(body, data)),
            () = tokio::time::sleep(time + 4 * GRACE) => {
                self.0.stop().await;
                return Ok(Waited::TimedOut);
            }
            _ = abort.aborted_beyond(AbortKind::Shutdown) => call.cancel(),
        }
        match call.answer().await {
            Ok((body, data)) => Ok(Waited::Answer(body, data)),
            Err(HandleError::Lost(_)) => Ok(Waited::Aborted),
            Err(error @ HandleError::NotSent(_)) => Err(error),
        }
    }

    async fn ask(&self, op: Op) -> Result<(Body, Vec<u8>), HandleError> {
        let mut call = self.0.call(op)?;
        match self.wait(&mut call, FILE_TOOL_TIME, Abort::never()).await? {
            Waited::Answer(body, data) => Ok((body, data)),
            Waited::Aborted | Waited::TimedOut => Err(HandleError::Lost("the shell process did not answer".to_owned())),
        }
    }
}

fn killed_silently(killed: Killed, exit_code: i32) -> ExecResult {
    let stderr = "[the shell did not stop by itself and was killed; its output is lost]\n".to_owned();
    ExecResult { exit_code, stdout: String::new(), stderr, truncated: false, killed: Some(killed) }
}

fn unexpected(body: &Body) -> HandleError {
    HandleError::Lost(match body {
        Body::Failed { code, message } => format!("{code}: {message}"),
        other => format!("the shell process gave an unexpected answer: {other:?}"),
    })
}
