//! A channel: requests in both directions, messages and aborts over one connection (engine a.2).

mod checks;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use nylorun_domain::json::Json;
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::{Abort, AbortHandle, AbortKind, abort_pair};
use nylorun_ports::frames::{FramePort, FrameReceiver, FrameSender, Received};
use nylorun_wire::harness::frame::{ApiError, BadFrame, ErrorCode, Frame};
use nylorun_wire::harness::method::Call;
use nylorun_wire::harness::shape::{decode, encode};
use tokio::sync::{mpsc, oneshot, watch};

pub use checks::Checks;

/// Answers the requests of the other end. A channel has one.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Answers a request. It is told by `abort` that the requester gave up, or that the channel closed, and is never
    /// cut off: what it has begun with the store it ends.
    fn handle(&self, method: String, params: Json, abort: Abort) -> BoxFuture<'_, Handled>;
}

/// What became of a request.
pub(crate) struct Handled {
    /// The answer.
    pub(crate) result: Result<Json, ApiError>,
    /// What is done once the answer is on its way: whatever is sent from then on arrives after it.
    pub(crate) then: Option<Box<dyn FnOnce() + Send>>,
}

impl From<Result<Json, ApiError>> for Handled {
    fn from(result: Result<Json, ApiError>) -> Self {
        Self { result, then: None }
    }
}

/// One end of a channel. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Channel(Arc<Shared>);

/// The messages that the other end sends, from when this was asked for.
pub(crate) type Messages = mpsc::UnboundedReceiver<(String, Json)>;

struct Shared {
    sender: FrameSender,
    checks: Checks,
    state: Mutex<State>,
    /// Why it is closed, once it is.
    closed: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct State {
    /// The id of the last request that was sent.
    last_id: u64,
    /// Requests that are not answered yet.
    pending: HashMap<u64, oneshot::Sender<Result<Json, ApiError>>>,
    /// Requests that are being answered.
    serving: HashMap<u64, AbortHandle>,
    listeners: Vec<mpsc::UnboundedSender<(String, Json)>>,
    standing: Standing,
}

#[derive(Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Open,
    Closed,
}

impl Channel {
    /// The channel over this end of a connection.
    pub(crate) fn open(port: FramePort, checks: Checks, handler: Arc<dyn Handler>) -> Self {
        let (sender, receiver) = port.split();
        let shared = Shared { sender, checks, state: Mutex::default(), closed: watch::Sender::new(None) };
        let channel = Self(Arc::new(shared));
        let reader = channel.clone();
        tokio::spawn(async move { reader.read(receiver, handler).await });
        channel
    }

    /// Asks the other end, and waits for its answer. Dropping the wait gives the request up.
    ///
    /// # Errors
    /// The other end refused, or the channel is closed: `unavailable`.
    pub(crate) async fn call<C: Call>(&self, call: &C) -> Result<C::Reply, ApiError> {
        let result = self.request(C::METHOD, encode(call)).await?;
        let unreadable = |error| ApiError::new(ErrorCode::Internal, format!("the answer to {}: {error}", C::METHOD));
        decode(&result).map_err(unreadable)
    }

    /// As [`Self::call`], for methods that share their parameters.
    pub(crate) async fn request(&self, method: &str, params: Json) -> Result<Json, ApiError> {
        self.0.checks.request(method, &params)?;
        let (id, answer) = self.send(method, params)?;
        let _unanswered = Unanswered { channel: self, id };
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    fn send(&self, method: &str, params: Json) -> Result<(u64, oneshot::Receiver<Result<Json, ApiError>>), ApiError> {
        let (sender, answer) = oneshot::channel();
        let mut state = self.state();
        if state.standing == Standing::Closed {
            return Err(closed());
        }
        state.last_id += 1;
        let id = state.last_id;
        state.pending.insert(id, sender);
        // Under the lock, so that ids go out in their order.
        self.0.sender.send(Frame::Request { id, method: method.to_owned(), params }.encode());
        Ok((id, answer))
    }

    /// Sends a message, which has no answer. It is dropped when the channel is closed.
    pub(crate) fn notify(&self, method: &str, params: Json) {
        if let Err(error) = self.0.checks.message(method, &params) {
            tracing::error!(method, %error, "a message is not sent");
            return;
        }
        if self.state().standing == Standing::Open {
            self.0.sender.send(Frame::Message { method: method.to_owned(), params }.encode());
        }
    }

    /// Listens to messages. Any number may.
    pub(crate) fn messages(&self) -> Messages {
        let (sender, messages) = mpsc::unbounded_channel();
        self.state().listeners.push(sender);
        messages
    }

    /// Closes it and says why.
    pub(crate) fn close(&self, reason: &str) {
        self.0.sender.close(reason);
        self.shut(reason);
    }

    /// Waits until it is closed, and says why. At once when it is. Any number may.
    pub(crate) async fn closed(&self) -> String {
        let mut closed = self.0.closed.subscribe();
        let reason = closed.wait_for(Option::is_some).await;
        reason.ok().and_then(|reason| reason.clone()).unwrap_or_default()
    }

    async fn read(self, mut receiver: FrameReceiver, handler: Arc<dyn Handler>) {
        loop {
            let received = tokio::select! {
                biased;
                _ = self.closed() => return,
                received = receiver.receive() => received,
            };
            match received {
                Received::Frame(text) => self.take(&text, &handler),
                Received::Closed(reason) => return self.shut(&reason),
            }
        }
    }

    fn take(&self, text: &str, handler: &Arc<dyn Handler>) {
        match Frame::decode(text) {
            Ok(Frame::Request { id, method, params }) => self.serve(id, method, params, Arc::clone(handler)),
            Ok(Frame::Response { id, result }) => {
                // One that nobody waits for any more is late, and ignored.
                if let Some(waiting) = self.state().pending.remove(&id) {
                    let _given_up = waiting.send(result);
                }
            }
            Ok(Frame::Message { method, params }) => {
                self.state().listeners.retain(|listener| listener.send((method.clone(), params.clone())).is_ok());
            }
            Ok(Frame::Abort { id }) => {
                if let Some(abort) = self.state().serving.get(&id) {
                    abort.abort(AbortKind::Shutdown);
                }
            }
            Ok(Frame::Ping) => {}
            Err(BadFrame::Request(id, error)) => self.respond(id, Err(error.into())),
            Err(BadFrame::Message(error)) => tracing::debug!(%error, "a malformed message is dropped"),
            Err(BadFrame::Other(error)) => self.close(&format!("malformed frame: {error}")),
        }
    }

    fn serve(&self, id: u64, method: String, params: Json, handler: Arc<dyn Handler>) {
        let (handle, abort) = abort_pair();
        if self.state().serving.insert(id, handle).is_some() {
            return self.close(&format!("request {id} came while it was being answered"));
        }
        let channel = self.clone();
        tokio::spawn(async move {
            let handled = AssertUnwindSafe(handler.handle(method.clone(), params, abort)).catch_unwind().await;
            let Handled { result, then } = handled.unwrap_or_else(|_| {
                tracing::error!(method, "a handler of the Harness API panicked");
                Err(ApiError::new(ErrorCode::Internal, format!("{method} stopped by an internal fault"))).into()
            });
            let result = result.and_then(|result| channel.0.checks.result(&method, &result).map(|()| result));
            if channel.state().serving.remove(&id).is_some() {
                channel.respond(id, result);
            }
            if let Some(then) = then {
                then();
            }
        });
    }

    fn respond(&self, id: u64, result: Result<Json, ApiError>) {
        self.0.sender.send(Frame::Response { id, result }.encode());
    }

    /// Ends everything that is open: requests fail, and who answers one is told.
    fn shut(&self, reason: &str) {
        let mut state = self.state();
        if state.standing == Standing::Closed {
            return;
        }
        state.standing = Standing::Closed;
        state.pending.clear();
        state.listeners.clear();
        for (_, abort) in state.serving.drain() {
            abort.abort(AbortKind::Shutdown);
        }
        drop(state);
        self.0.closed.send_replace(Some(reason.to_owned()));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that may be given up: whoever drops its wait tells the other end.
struct Unanswered<'a> {
    channel: &'a Channel,
    id: u64,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.channel.state().pending.remove(&self.id).is_some() {
            self.channel.0.sender.send(Frame::Abort { id: self.id }.encode());
        }
    }
}

fn closed() -> ApiError {
    ApiError::new(ErrorCode::Unavailable, "the connection is closed")
}
