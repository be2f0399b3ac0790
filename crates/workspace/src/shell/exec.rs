//! Runs one command in a fresh interpreter on a thread of its own, and keeps its time.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bashkit::{Bash, ExecutionLimits, MemoryLimits, SessionLimits};
use tokio::sync::Notify;

use super::devices::count_reads;
use super::world::World;
use crate::supervisor::{Body, GRACE, KilledBy};
use crate::tools::clip::{Cut, StreamClip};

/// Stack of the interpreter, in bytes. It is reserved, not used.
const STACK: usize = 16 << 20;

/// All variables together, in bytes, and the words of one list or array. Beyond them a command fails.
const MAX_VARIABLE_BYTES: usize = 64 << 20;
const MAX_WORDS: usize = 1_000_000;

/// Variables that always have these values.
const FIXED_ENV: [(&str, &str); 4] =
    [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/workspace"), ("LANG", "C.UTF-8"), ("TERM", "dumb")];

/// A command to run.
pub(super) struct Exec {
    pub(super) command: String,
    pub(super) cwd: String,
    pub(super) env: Vec<(String, String)>,
    pub(super) time_limit: Duration,
}

/// What the keeper of the time waits for.
pub(super) enum Signal {
    /// The interpreter ended with this exit code.
    Done(i32),
    /// The host cancels.
    Cancel,
}

/// What a command wrote so far. Kept apart from the interpreter, so that it is there when the interpreter is stuck.
#[derive(Default)]
struct Output {
    stdout: StreamClip,
    stderr: StreamClip,
}

type SharedOutput = Arc<Mutex<Output>>;

fn lock(output: &SharedOutput) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the command until it ends, its time is over or it is cancelled.
pub(super) fn run(world: &Arc<World>, exec: Exec, signals: Sender<Signal>, received: &Receiver<Signal>) -> Body {
    let output = SharedOutput::default();
    let stop = Arc::new(Notify::new());
    let deadline = Instant::now() + exec.time_limit;
    let time_limit = exec.time_limit;
    let spawned = thread::Builder::new().stack_size(STACK).spawn({
        let (world, output, stop) = (Arc::clone(world), Arc::clone(&output), Arc::clone(&stop));
        move || interpreter_thread(&world, &exec, &output, &stop, &signals)
    });
    if let Err(error) = spawned {
        return Body::Exec {
            exit_code: 126,
            stdout: String::new(),
            stderr: format!("bash: too many commands run at once: {error}\n"),
            truncated: false,
            killed: None,
            stuck: false,
        };
    }
    let (exit_code, killed, stuck) = match received.recv_timeout(deadline - Instant::now()) {
        Ok(Signal::Done(exit_code)) => (exit_code, None, false),
        Ok(Signal::Cancel) => (130, Some(KilledBy::Cancel), is_stuck(&stop, received)),
        Err(RecvTimeoutError::Timeout) => (124, Some(KilledBy::TimeLimit), is_stuck(&stop, received)),
        // The thread ended without a word: the interpreter failed.
        Err(RecvTimeoutError::Disconnected) => {
            lock(&output).stderr.push(b"bash: the shell failed and ended\n");
            (134, None, false)
        }
    };
    let Output { stdout, stderr } = std::mem::take(&mut *lock(&output));
    let (stdout, stdout_cut) = stdout.finish();
    let (mut stderr, stderr_cut) = stderr.finish();
    if killed == Some(KilledBy::TimeLimit) {
        if !stderr.is_empty() && !stderr.ends_with('\n') {
            stderr.push('\n');
        }
        stderr.push_str(&format!("[killed after {}]\n", in_words(time_limit)));
    }
    let truncated = stdout_cut == Cut::Yes || stderr_cut == Cut::Yes;
    Body::Exec { exit_code, stdout, stderr, truncated, killed, stuck }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        1 => "1 second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}

/// Tells the interpreter to stop; whether it did not within the grace.
fn is_stuck(stop: &Notify, received: &Receiver<Signal>) -> bool {
    stop.notify_one();
    let deadline = Instant::now() + GRACE;
    loop {
        match received.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Signal::Cancel) => {}
            Ok(Signal::Done(_)) | Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => return true,
        }
    }
}

fn interpreter_thread(world: &World, exec: &Exec, output: &SharedOutput, stop: &Notify, signals: &Sender<Signal>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let exit_code = match runtime {
        Ok(runtime) => runtime.block_on(async {
            tokio::select! {
                exit_code = interpret(world, exec, output) => exit_code,
                () = stop.notified() => 130,
            }
        }),
        Err(error) => {
            lock(output).stderr.push(format!("bash: no runtime: {error}\n").as_bytes());
            134
        }
    };
    // Nobody waits for a shell that was given up.
    let _ = signals.send(Signal::Done(exit_code));
}

async fn interpret(world: &World, exec: &Exec, output: &SharedOutput) -> i32 {
    let mut bash = shell(world, exec);
    let result = bash
        .execute(&exec.command)
        .stdout_fn(|bytes| {
            lock(output).stdout.push(&bytes);
            std::future::ready(Ok(()))
        })
        .stderr_fn(|bytes| {
            lock(output).stderr.push(&bytes);
            std::future::ready(Ok(()))
        })
        .await;
    match result {
        Ok(result) => result.exit_code,
        Err(error) => {
            let (report, exit_code) = match error.syntax_report("bash: -c", &exec.command) {
                Some(report) => (report, 2),
                None => (format!("bash: {error}\n"), 1),
            };
            lock(output).stderr.push(report.as_bytes());
            exit_code
        }
    }
}

/// A fresh shell over the workspace's files. Time is kept outside, memory by the process's limit.
fn shell(world: &World, exec: &Exec) -> Bash {
    let limits = ExecutionLimits::new()
        .timeout(exec.time_limit + 10 * GRACE)
        .max_commands(usize::MAX)
        .max_loop_iterations(usize::MAX)
        .max_total_loop_iterations(usize::MAX)
        .max_work_units(u64::MAX)
        .max_parser_operations(usize::MAX)
        .parser_timeout(exec.time_limit)
        .max_aggregate_input_bytes(u64::MAX)
        .max_live_intermediate_bytes(world.memory_bytes())
        .max_word_split_fields(MAX_WORDS)
        .max_word_split_bytes(MAX_VARIABLE_BYTES)
        .max_stdout_bytes(usize::MAX)
        .max_stderr_bytes(usize::MAX);
    let memory = MemoryLimits::new()
        .max_total_variable_bytes(MAX_VARIABLE_BYTES)
        .max_variable_count(100_000)
        .max_array_entries(MAX_WORDS);
    let mut builder = Bash::builder()
        .fs(world.shell_fs())
        .cwd(&exec.cwd)
        .username("agent")
        .hostname("workspace")
        .limits(limits)
        .session_limits(SessionLimits::unlimited())
        .memory_limits(memory)
        .before_tool(Box::new(count_reads));
    for (name, value) in exec.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(FIXED_ENV) {
        builder = builder.env(name, value);
    }
    builder.build()
}
