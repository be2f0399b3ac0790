//! The rules of a channel, each against an end that sends whatever it likes (engine a.2).

use std::sync::Arc;

use nylorun_domain::json::Json;
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::{Abort, AbortKind};
use nylorun_ports::frames::{FramePort, FrameReceiver, FrameSender, Received, frame_ports};
use nylorun_wire::harness::frame::{ApiError, ErrorCode, Frame};
use tokio::sync::mpsc;

use super::{Channel, Checks, Handled, Handler};

/// Answers `echo` with what it was sent, waits for an abort at `wait`, and panics at anything else.
struct Echo {
    aborted: mpsc::UnboundedSender<AbortKind>,
}

impl Handler for Echo {
    fn handle(&self, method: String, params: Json, mut abort: Abort) -> BoxFuture<'_, Handled> {
        Box::pin(async move {
            match method.as_str() {
                "echo" => Ok(params).into(),
                "wait" => {
                    self.aborted.send(abort.aborted().await).unwrap();
                    Err(ApiError::new(ErrorCode::Unavailable, "given up")).into()
                }
                other => panic!("{other}"),
            }
        })
    }
}

/// A channel, and the bare other end.
struct Bare {
    channel: Channel,
    sender: FrameSender,
    receiver: FrameReceiver,
    aborted: mpsc::UnboundedReceiver<AbortKind>,
}

impl Bare {
    fn open(checks: Checks) -> Self {
        let (near, far): (FramePort, FramePort) = frame_ports();
        let (aborts, aborted) = mpsc::unbounded_channel();
        let channel = Channel::open(near, checks, Arc::new(Echo { aborted: aborts }));
        let (sender, receiver) = far.split();
        Self { channel, sender, receiver, aborted }
    }

    fn send(&self, frame: &str) {
        self.sender.send(frame.to_owned());
    }

    async fn heard(&mut self) -> String {
        match self.receiver.receive().await {
            Received::Frame(text) => text,
            Received::Closed(reason) => panic!("closed: {reason}"),
        }
    }

    async fn closed(&mut self) -> String {
        match self.receiver.receive().await {
            Received::Closed(reason) => reason,
            Received::Frame(text) => panic!("{text}"),
        }
    }

    /// A request that this end sends, in a task of its own.
    fn asks(&self) -> tokio::task::JoinHandle<Result<Json, ApiError>> {
        let channel = self.channel.clone();
        tokio::spawn(async move { channel.request("echo", Json::from_trusted("1")).await })
    }
}

fn refused(result: Result<Json, ApiError>) -> ErrorCode {
    result.expect_err("it is refused").code
}

#[tokio::test]
async fn ids_count_from_1_and_answers_find_their_requests_in_any_order() {
    let mut bare = Bare::open(Checks::Off);
    let first = bare.asks();
    assert_eq!(bare.heard().await, r#"{"t":"req","id":1,"m":"echo","p":1}"#);
    let second = bare.asks();
    assert_eq!(bare.heard().await, r#"{"t":"req","id":2,"m":"echo","p":1}"#);
    bare.send(r#"{"t":"res","id":2,"ok":true,"r":"\ud800\u0000"}"#);
    bare.send(r#"{"t":"res","id":1,"ok":false,"e":{"code":"effect_drift","message":"other"}}"#);
    assert_eq!(second.await.unwrap(), Ok(Json::from_trusted(r#""\ud800\u0000""#)));
    assert_eq!(first.await.unwrap(), Err(ApiError::new(ErrorCode::EffectDrift, "other")));
}

#[tokio::test]
async fn a_request_is_answered_and_a_panic_is_internal() {
    let mut bare = Bare::open(Checks::Off);
    bare.send(r#"{"t":"req","id":7,"m":"echo","p":{"a":1.0}}"#);
    assert_eq!(bare.heard().await, r#"{"t":"res","id":7,"ok":true,"r":{"a":1.0}}"#);
    bare.send(r#"{"t":"req","id":8,"m":"boom","p":{}}"#);
    let answer = bare.heard().await;
    assert!(answer.starts_with(r#"{"t":"res","id":8,"ok":false,"e":{"code":"internal""#), "{answer}");
}

#[tokio::test]
async fn a_request_that_is_given_up_is_aborted_and_its_late_answer_ignored() {
    let mut bare = Bare::open(Checks::Off);
    let request = bare.asks();
    bare.heard().await;
    request.abort();
    assert_eq!(bare.heard().await, r#"{"t":"abort","id":1}"#);
    bare.send(r#"{"t":"res","id":1,"ok":true,"r":1}"#);
    // The channel goes on.
    bare.send(r#"{"t":"req","id":1,"m":"echo","p":2}"#);
    assert_eq!(bare.heard().await, r#"{"t":"res","id":1,"ok":true,"r":2}"#);
}

#[tokio::test]
async fn whoever_answers_is_told_that_the_requester_gave_up() {
    let mut bare = Bare::open(Checks::Off);
    bare.send(r#"{"t":"req","id":1,"m":"wait","p":{}}"#);
    bare.send(r#"{"t":"abort","id":9}"#);
    bare.send(r#"{"t":"abort","id":1}"#);
    assert_eq!(bare.aborted.recv().await, Some(AbortKind::Shutdown));
}

#[tokio::test]
async fn a_close_fails_what_is_pending_and_tells_who_answers() {
    let mut bare = Bare::open(Checks::Off);
    let request = bare.asks();
    bare.heard().await;
    bare.send(r#"{"t":"req","id":1,"m":"wait","p":{}}"#);
    bare.sender.close("goodbye");
    assert_eq!(refused(request.await.unwrap()), ErrorCode::Unavailable);
    assert_eq!(bare.aborted.recv().await, Some(AbortKind::Shutdown));
    // Any number may wait for it, also afterwards.
    assert_eq!((bare.channel.closed().await, bare.channel.closed().await), ("goodbye".into(), "goodbye".into()));
}

#[tokio::test]
async fn after_a_close_requests_fail_and_messages_are_dropped() {
    let mut bare = Bare::open(Checks::Off);
    bare.channel.close("enough");
    assert_eq!(bare.closed().await, "enough");
    assert_eq!(refused(bare.channel.request("echo", Json::null()).await), ErrorCode::Unavailable);
    bare.channel.notify("cancel", Json::null());
    let Bare { channel, mut receiver, .. } = bare;
    drop(channel);
    assert_eq!(receiver.receive().await, Received::Closed("the other end is gone".to_owned()));
}

#[tokio::test]
async fn an_end_that_is_dropped_is_closed() {
    let Bare { channel, sender, receiver, .. } = Bare::open(Checks::Off);
    drop((sender, receiver));
    assert_eq!(channel.closed().await, "the other end is gone");
}

#[tokio::test]
async fn messages_reach_every_listener_and_malformed_ones_nobody() {
    let bare = Bare::open(Checks::Off);
    let (mut one, mut two) = (bare.channel.messages(), bare.channel.messages());
    bare.send(r#"{"t":"msg","m":"cancel"}"#);
    bare.send(r#"{"t":"msg","m":"cancel","p":{},"x":1}"#);
    bare.send(r#"{"t":"ping"}"#);
    bare.send(r#"{"t":"msg","m":"cancel","p":1}"#);
    let expected = Some(("cancel".to_owned(), Json::from_trusted("1")));
    assert_eq!((one.recv().await, two.recv().await), (expected.clone(), expected));
}

#[tokio::test]
async fn a_malformed_request_is_answered_and_the_connection_kept() {
    let mut bare = Bare::open(Checks::Off);
    for bad in
        [r#"{"t":"req","id":4}"#, r#"{"t":"req","id":4,"m":"","p":1}"#, r#"{"t":"req","id":4,"m":"a","p":1,"q":2}"#]
    {
        bare.send(bad);
        let answer = bare.heard().await;
        assert!(answer.starts_with(r#"{"t":"res","id":4,"ok":false,"e":{"code":"invalid""#), "{bad}: {answer}");
    }
}

#[tokio::test]
async fn whoever_sends_anything_else_is_not_kept() {
    for bad in [
        "",
        "[]",
        "{",
        r#"{"t":"req","m":"echo","p":1}"#,
        r#"{"t":"req","id":"1","m":"echo","p":1}"#,
        r#"{"t":"what"}"#,
    ] {
        let mut bare = Bare::open(Checks::Off);
        bare.send(bad);
        let reason = bare.closed().await;
        assert!(reason.starts_with("malformed frame: "), "{bad}: {reason}");
        assert_eq!(bare.channel.closed().await, reason);
    }
}

#[tokio::test]
async fn an_id_is_not_used_again_while_it_is_answered() {
    let mut bare = Bare::open(Checks::Off);
    bare.send(r#"{"t":"req","id":1,"m":"wait","p":{}}"#);
    bare.send(r#"{"t":"req","id":1,"m":"echo","p":{}}"#);
    assert_eq!(bare.closed().await, "request 1 came while it was being answered");
}

#[tokio::test]
async fn with_checks_nothing_wrong_is_sent() {
    let mut bare = Bare::open(Checks::On);
    assert_eq!(refused(bare.channel.request("lease", Json::from_trusted("{\"x\":1}")).await), ErrorCode::Invalid);
    bare.channel.notify("cancel", Json::null());
    // An answer of another form than its method's.
    bare.send(r#"{"t":"req","id":1,"m":"echo","p":{}}"#);
    let answer = bare.heard().await;
    assert!(answer.starts_with(r#"{"t":"res","id":1,"ok":false,"e":{"code":"internal""#), "{answer}");
}

#[tokio::test]
async fn what_is_done_after_an_answer_comes_after_it() {
    struct Then(std::sync::OnceLock<Channel>);
    impl Handler for Then {
        fn handle(&self, _method: String, params: Json, _abort: Abort) -> BoxFuture<'_, Handled> {
            let channel = self.0.get().expect("it is set").clone();
            let then = Box::new(move || channel.notify("after", Json::null()));
            Box::pin(async move { Handled { result: Ok(params), then: Some(then) } })
        }
    }
    let (near, far) = frame_ports();
    let handler = Arc::new(Then(std::sync::OnceLock::new()));
    let channel = Channel::open(near, Checks::Off, Arc::<Then>::clone(&handler));
    assert!(handler.0.set(channel).is_ok());
    let (sender, mut receiver) = far.split();
    sender.send(Frame::Request { id: 1, method: "m".into(), params: Json::null() }.encode());
    let frames = [receiver.receive().await, receiver.receive().await];
    let expected = [r#"{"t":"res","id":1,"ok":true,"r":null}"#, r#"{"t":"msg","m":"after","p":null}"#];
    assert_eq!(frames, expected.map(|text| Received::Frame(text.to_owned())));
}
