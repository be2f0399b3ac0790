//! The host's end of the protocol: one supervisor process, and the requests that wait for it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nylorun_ports::backends::HandleError;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::frame::{decode_header, encode};
use super::{Body, GRACE, Op, PROTOCOL, Reply, Request};

/// How long a supervisor may take to say that it serves.
const START_TIME: Duration = Duration::from_secs(10);

/// How a supervisor process is started.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// Its whole environment: nothing of the server's is passed on.
    pub(crate) env: Vec<(&'static str, &'static str)>,
}

/// A running supervisor. When the last clone is dropped, its input ends, and so does it.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    outgoing: mpsc::UnboundedSender<Outgoing>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Outgoing {
    id: u64,
    frame: Vec<u8>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    kill: Notify,
    ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Waiting {
    last_id: u64,
    calls: HashMap<u64, WaitingCall>,
    /// How the process ended; then nothing more is sent.
    end: Option<String>,
}

#[derive(Debug)]
struct WaitingCall {
    answer: oneshot::Sender<Result<(Body, Vec<u8>), HandleError>>,
    /// Some of its frame may have been written.
    sent: bool,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the process killed. From here on nothing is sent to it: what would be sent could not be told from what ran.
    fn kill(&self) {
        self.waiting().end.get_or_insert_with(|| "the workspace's shell process is being killed".to_owned());
        self.kill.notify_one();
    }
}

impl Link {
    /// Starts a supervisor and waits until it serves. The error says why it does not.
    pub(crate) async fn start(start: &Start) -> Result<Self, String> {
        let program = start.program.to_string_lossy();
        let mut child = Command::new(&start.program)
            .args(&start.args)
            .env_clear()
            .envs(start.env.iter().copied())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{program} cannot be started: {error}"))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{program} has no standard streams"));
        };
        let mut stdout = BufReader::new(stdout);
        let hello = tokio::time::timeout(START_TIME, read_reply(&mut stdout)).await;
        match hello {
            Ok(Ok((Reply { body: Body::Hello { protocol: PROTOCOL }, .. }, _))) => {}
            Ok(Ok((Reply { body: Body::Refused { reason }, .. }, _))) => return Err(reason),
            Ok(Ok((other, _))) => return Err(format!("{program} does not speak this protocol: {other:?}")),
            Ok(Err(error)) => return Err(format!("{program} ended before it served: {error}")),
            Err(_) => return Err(format!("{program} did not answer within {} seconds", START_TIME.as_secs())),
        }
        let (outgoing, queue) = mpsc::unbounded_channel();
        let ended = watch::channel(false).0;
        let shared = Arc::new(Shared { waiting: Mutex::default(), kill: Notify::new(), ended });
        tokio::spawn(write_frames(queue, stdin, Arc::clone(&shared)));
        tokio::spawn(read_replies(stdout, child, Arc::clone(&shared)));
        Ok(Self { outgoing, shared })
    }

    /// Whether the process runs, as far as is known.
    pub(crate) fn is_alive(&self) -> bool {
        self.shared.waiting().end.is_none()
    }

    /// Sends a request. It is sent at once and never again; dropping the call cancels it.
    pub(crate) fn call(&self, op: Op) -> Result<Call, HandleError> {
        let (answer, receiver) = oneshot::channel();
        let mut waiting = self.shared.waiting();
        if let Some(end) = &waiting.end {
            return Err(HandleError::NotSent(end.clone()));
        }
        waiting.last_id += 1;
        let id = waiting.last_id;
        let frame = encode(&Request { id, op }, &[]).map_err(|error| HandleError::NotSent(error.to_string()))?;
        waiting.calls.insert(id, WaitingCall { answer, sent: false });
        drop(waiting);
        // A writer that is gone answers every call: see `write_frames`.
        let _ = self.outgoing.send(Outgoing { id, frame });
        Ok(Call { id, link: self.clone(), receiver, answered: false })
    }

    /// Kills the process with all that it started, and waits until it is gone.
    pub(crate) async fn stop(&self) {
        self.shared.kill();
        // An error means that the reader, which owns the process, is gone with it.
        let _ = self.shared.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Tells the process to end a request, and kills it when it does not within the grace.
    fn cancel(&self, id: u64) {
        let Ok(frame) = encode(&Request { id, op: Op::Cancel }, &[]) else { return };
        let _ = self.outgoing.send(Outgoing { id, frame });
        let shared = Arc::clone(&self.shared);
        // A call may be dropped while the runtime ends: then the process is killed with its handle.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let ended = async { shared.ended.subscribe().wait_for(|ended| *ended).await.map(drop) };
            // Twice the grace: the process itself takes one to find out that its shell is stuck.
            if tokio::time::timeout(2 * GRACE, ended).await.is_err() && shared.waiting().calls.contains_key(&id) {
                shared.kill();
            }
        });
    }
}

/// A request that was sent.
#[derive(Debug)]
pub(crate) struct Call {
    id: u64,
    link: Link,
    receiver: oneshot::Receiver<Result<(Body, Vec<u8>), HandleError>>,
    answered: bool,
}

impl Call {
    /// Waits for the answer. May be dropped and called again.
    pub(crate) async fn answer(&mut self) -> Result<(Body, Vec<u8>), HandleError> {
        let answer = (&mut self.receiver).await;
        self.answered = true;
        answer.unwrap_or_else(|_| Err(HandleError::Lost("the answer was lost".to_owned())))
    }

    /// Tells the supervisor to end it. There is still an answer.
    pub(crate) fn cancel(&self) {
        self.link.cancel(self.id);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.answered {
            self.link.cancel(self.id);
        }
    }
}

/// Writes the frames one after the other. A frame that could not be written whole was not sent.
async fn write_frames(mut queue: mpsc::UnboundedReceiver<Outgoing>, mut stdin: ChildStdin, shared: Arc<Shared>) {
    while let Some(Outgoing { id, frame }) = queue.recv().await {
        if let Some(call) = shared.waiting().calls.get_mut(&id) {
            call.sent = true;
        }
        if let Err(error) = stdin.write_all(&frame).await {
            // From here on no call is sent to it, and the next one opens the workspace anew.
            shared.kill();
            if let Some(call) = shared.waiting().calls.remove(&id) {
                let error = HandleError::NotSent(format!("the workspace's shell process is gone: {error}"));
                let _ = call.answer.send(Err(error));
            }
        }
    }
}

/// Passes replies on until the process ends or is to be killed; then sees to it that it is gone.
async fn read_replies(mut stdout: BufReader<ChildStdout>, mut child: Child, shared: Arc<Shared>) {
    loop {
        tokio::select! {
            reply = read_reply(&mut stdout) => match reply {
                Ok((reply, data)) => pass_on(&shared, reply, data),
                Err(_) => break,
            },
            () = shared.kill.notified() => break,
        }
    }
    kill_group(&mut child);
    let how = match child.wait().await {
        Ok(status) => format!("the workspace's shell process ended ({status})"),
        Err(error) => format!("the workspace's shell process is lost: {error}"),
    };
    let mut waiting = shared.waiting();
    for (_, call) in waiting.calls.drain() {
        let error = if call.sent { HandleError::Lost(how.clone()) } else { HandleError::NotSent(how.clone()) };
        let _ = call.answer.send(Err(error));
    }
    waiting.end = Some(how);
    drop(waiting);
    shared.ended.send_replace(true);
}

fn pass_on(shared: &Shared, reply: Reply, data: Vec<u8>) {
    if matches!(reply.body, Body::Exec { stuck: true, .. }) {
        shared.kill();
    }
    if let Some(call) = shared.waiting().calls.remove(&reply.id) {
        // Nobody waits for it any more.
        let _ = call.answer.send(Ok((reply.body, data)));
    }
}

/// Kills the child's process group: the child and all that it started. The child was not waited for yet, so its id is
/// its own.
fn kill_group(child: &mut Child) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // An error means that it is gone.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

async fn read_reply(stdout: &mut BufReader<ChildStdout>) -> io::Result<(Reply, Vec<u8>)> {
    let mut header = [0; 8];
    stdout.read_exact(&mut header).await?;
    let (json_length, data_length) = decode_header(header)?;
    let mut json = vec![0; json_length];
    stdout.read_exact(&mut json).await?;
    let mut data = vec![0; data_length];
    stdout.read_exact(&mut data).await?;
    Ok((serde_json::from_slice(&json)?, data))
}
