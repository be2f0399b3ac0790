//! The bare end of a connection, which sends what it is told to.

use std::collections::VecDeque;

use nylorun_domain::json::Json;
use nylorun_ports::frames::{FramePort, FrameReceiver, FrameSender, Received};
use nylorun_wire::harness::frame::{ApiError, Frame};
use nylorun_wire::harness::hello::{Capabilities, Hello};
use nylorun_wire::harness::lease::{CancelReason, CancelRun, Lease, Leased};
use nylorun_wire::harness::method::{Call, OutputMethod};
use nylorun_wire::harness::output::{OutputReply, RunOutput};
use nylorun_wire::harness::shape::{Shape, decode, encode};

pub(crate) struct Peer {
    sender: FrameSender,
    receiver: FrameReceiver,
    last_id: u64,
    /// What came while something else was waited for.
    waiting: VecDeque<Frame>,
}

impl Peer {
    pub(crate) fn new(port: FramePort) -> Self {
        let (sender, receiver) = port.split();
        Self { sender, receiver, last_id: 0, waiting: VecDeque::new() }
    }

    /// Sends a request, and answers its id.
    pub(crate) fn send(&mut self, method: &str, params: &Json) -> u64 {
        self.last_id += 1;
        let frame = Frame::Request { id: self.last_id, method: method.to_owned(), params: params.clone() };
        self.sender.send(frame.encode());
        self.last_id
    }

    pub(crate) fn send_call<C: Call>(&mut self, call: &C) -> u64 {
        self.send(C::METHOD, &encode(call))
    }

    pub(crate) fn give_up(&self, id: u64) {
        self.sender.send(Frame::Abort { id }.encode());
    }

    pub(crate) fn tell(&self, message: &CancelRun) {
        self.sender.send(Frame::Message { method: CancelRun::METHOD.to_owned(), params: encode(message) }.encode());
    }

    pub(crate) fn respond(&self, id: u64, result: Result<Json, ApiError>) {
        self.sender.send(Frame::Response { id, result }.encode());
    }

    pub(crate) fn close(&self) {
        self.sender.close("the test closes it");
    }

    async fn next(&mut self) -> Frame {
        match self.receiver.receive().await {
            Received::Frame(text) => Frame::decode(&text).expect("a frame"),
            Received::Closed(reason) => panic!("closed: {reason}"),
        }
    }

    /// The next frame for which `wanted` has an answer; the others are kept.
    async fn find<T>(&mut self, wanted: impl Fn(&Frame) -> Option<T>) -> T {
        if let Some((at, found)) = self.waiting.iter().enumerate().find_map(|(at, frame)| Some((at, wanted(frame)?))) {
            self.waiting.remove(at);
            return found;
        }
        loop {
            let frame = self.next().await;
            match wanted(&frame) {
                Some(found) => return found,
                None => self.waiting.push_back(frame),
            }
        }
    }

    /// The answer to a request.
    pub(crate) async fn answer(&mut self, wanted: u64) -> Result<Json, ApiError> {
        let response = |frame: &Frame| match frame {
            Frame::Response { id, result } if *id == wanted => Some(result.clone()),
            _ => None,
        };
        self.find(response).await
    }

    pub(crate) async fn answer_of<S: Shape>(&mut self, id: u64) -> Result<S, ApiError> {
        self.answer(id).await.map(|result| decode(&result).expect("the answer's form"))
    }

    pub(crate) async fn call<C: Call>(&mut self, call: &C) -> Result<C::Reply, ApiError> {
        let id = self.send_call(call);
        self.answer_of(id).await
    }

    pub(crate) async fn output(&mut self, output: (OutputMethod, RunOutput)) -> Result<OutputReply, ApiError> {
        let id = self.send(output.0.as_str(), &encode(&output.1));
        self.answer_of(id).await
    }

    /// The next request of the other end.
    pub(crate) async fn request(&mut self) -> (u64, String, Json) {
        let request = |frame: &Frame| match frame {
            Frame::Request { id, method, params } => Some((*id, method.clone(), params.clone())),
            _ => None,
        };
        self.find(request).await
    }

    /// The next request, which must be of this method.
    pub(crate) async fn requested<C: Call>(&mut self) -> (u64, C) {
        let (id, method, params) = self.request().await;
        assert_eq!(method, C::METHOD);
        (id, decode(&params).expect("the method's form"))
    }

    pub(crate) fn grant<C: Call>(&self, id: u64, reply: &C::Reply) {
        self.respond(id, Ok(encode(reply)));
    }

    /// The request that the other end gives up next.
    pub(crate) async fn given_up(&mut self) -> u64 {
        let abort = |frame: &Frame| match frame {
            Frame::Abort { id } => Some(*id),
            _ => None,
        };
        self.find(abort).await
    }

    /// Which run is to end, and why.
    pub(crate) async fn cancelled(&mut self) -> (String, CancelReason) {
        let message = |frame: &Frame| match frame {
            Frame::Message { params, .. } => Some(decode::<CancelRun>(params).expect("a cancel")),
            _ => None,
        };
        let cancel = self.find(message).await;
        (cancel.run_id, cancel.reason)
    }

    /// Waits until the other end closes, and answers why.
    pub(crate) async fn closed(&mut self) -> String {
        loop {
            if let Received::Closed(reason) = self.receiver.receive().await {
                return reason;
            }
        }
    }

    /// Says hello.
    pub(crate) async fn hello(&mut self) {
        self.call(&hello(2)).await.expect("it is welcome");
    }

    /// Asks for a run and gets it.
    pub(crate) async fn lease(&mut self) -> Leased {
        self.call(&Lease { slots: None }).await.expect("there is a run")
    }
}

pub(crate) fn hello(api: i64) -> Hello {
    Hello { api, name: "peer".into(), version: "0".into(), capabilities: Capabilities { workspace: None } }
}
