//! Reads requests and answers each on a thread of its own, so that a runaway script never keeps another request
//! waiting.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nylorun_domain::json::Json;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_ports::backends::FileBytes;

use super::exec::{Exec, Signal};
use super::world::World;
use crate::supervisor::{Body, Op, Reply, Request, read_frame, write_frame};
use crate::tools::input::{ToolCall, check_input};
use crate::tools::{self, FILE_TOOL_TIME, Stopped, Until};

/// What is running, by request.
#[derive(Default)]
struct Running(Mutex<HashMap<u64, Cancel>>);

/// How a request is told to end.
#[derive(Clone)]
enum Cancel {
    Exec(Sender<Signal>),
    Tool(Arc<AtomicBool>),
}

impl Running {
    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Cancel>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancel(&self, id: u64) {
        match self.calls().get(&id) {
            // One that has just ended needs no cancel.
            Some(Cancel::Exec(signal)) => drop(signal.send(Signal::Cancel)),
            Some(Cancel::Tool(cancelled)) => cancelled.store(true, Ordering::Relaxed),
            None => {}
        }
    }
}

/// Answers requests until the input ends.
pub(super) fn serve(world: &Arc<World>, mut input: impl Read) {
    let running = Arc::new(Running::default());
    while let Ok(Some((request, _))) = read_frame::<Request>(&mut input) {
        if request.op == Op::Cancel {
            running.cancel(request.id);
        } else {
            start(world, &running, request);
        }
    }
}

fn start(world: &Arc<World>, running: &Arc<Running>, request: Request) {
    let Request { id, op } = request;
    let (world, running) = (Arc::clone(world), Arc::clone(running));
    // Registered here, before the thread runs: a cancel that follows at once must find it.
    let (signals, received) = channel();
    let cancelled = Arc::new(AtomicBool::new(false));
    let cancel = if matches!(op, Op::Exec { .. }) {
        Cancel::Exec(signals.clone())
    } else {
        Cancel::Tool(Arc::clone(&cancelled))
    };
    running.calls().insert(id, cancel);
    let spawned = thread::Builder::new().spawn({
        let running = Arc::clone(&running);
        move || {
            let (body, data) = match op {
                Op::Exec { command, cwd, env, time_limit_ms } => {
                    let time_limit = Duration::from_millis(time_limit_ms);
                    (super::exec::run(&world, Exec { command, cwd, env, time_limit }, signals, &received), Vec::new())
                }
                Op::Tool { tool, input } => (tool_answer(&world, &tool, input, cancelled), Vec::new()),
                Op::ReadBytes { path, max } => bytes_answer(world.read_bytes(&path, max)),
                Op::ListFiles { dir, max_entries } => (list_answer(&world, &dir, max_entries), Vec::new()),
                Op::Cancel => (Body::Stopped, Vec::new()),
            };
            running.calls().remove(&id);
            answer(id, body, &data);
        }
    });
    if let Err(error) = spawned {
        running.calls().remove(&id);
        answer(id, failed(&error), &[]);
    }
}

/// Writes a reply whole: standard output is locked meanwhile. Without a host there is nobody to answer.
fn answer(id: u64, body: Body, data: &[u8]) {
    let _ = write_frame(&mut io::stdout().lock(), &Reply { id, body }, data);
}

fn tool_answer(world: &World, tool: &str, input: String, cancelled: Arc<AtomicBool>) -> Body {
    let Some(tool) = WorkspaceTool::from_wire(tool) else {
        return Body::Failed { code: "sandbox.unsupported".to_owned(), message: format!("no tool is named {tool}") };
    };
    let call = match check_input(tool, &Json::from_trusted(input)) {
        Ok(ToolCall::File(call)) => call,
        Ok(ToolCall::Bash(_)) => {
            let message = "bash is not a file tool".to_owned();
            return Body::Failed { code: "sandbox.unsupported".to_owned(), message };
        }
        Err(refusal) => return outcome_body(refusal),
    };
    match tools::run(world, &call, &Until::new(cancelled, FILE_TOOL_TIME)) {
        Ok(outcome) => outcome_body(outcome),
        Err(Stopped::Cancelled) => Body::Stopped,
        Err(Stopped::TimeLimit) => {
            let seconds = FILE_TOOL_TIME.as_secs();
            let message = format!("{} took longer than {seconds} seconds; name a smaller path.", tool.as_str());
            Body::Failed { code: "sandbox.error".to_owned(), message }
        }
    }
}

fn outcome_body(outcome: ToolOutcome) -> Body {
    match outcome {
        ToolOutcome::Completed { output } => Body::Completed { output: output.as_str().to_owned() },
        ToolOutcome::Failed { code, message } => Body::Failed { code, message },
    }
}

fn bytes_answer(read: io::Result<FileBytes>) -> (Body, Vec<u8>) {
    match read {
        Ok(FileBytes::Bytes(data)) => (Body::Bytes, data),
        Ok(FileBytes::Missing) => (Body::Missing, Vec::new()),
        Ok(FileBytes::TooLarge(size)) => (Body::TooLarge { size }, Vec::new()),
        Err(error) => (failed(&error), Vec::new()),
    }
}

fn list_answer(world: &World, dir: &str, max_entries: u32) -> Body {
    match world.list_files(dir, max_entries) {
        Ok(Some(list)) => Body::Files { entries: list.entries, truncated: list.truncated },
        Ok(None) => Body::Missing,
        Err(error) => failed(&error),
    }
}

fn failed(error: &io::Error) -> Body {
    Body::Failed { code: "sandbox.error".to_owned(), message: error.to_string() }
}
