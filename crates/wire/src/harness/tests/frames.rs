//! Frames: their texts, and what is none.

use nylorun_domain::json::Json;
use proptest::prelude::*;

use super::values::{content, text};
use crate::harness::frame::{ApiError, BadFrame, ErrorCode, Frame};

fn frames() -> impl Strategy<Value = Frame> {
    let id = 1..=u64::MAX;
    let error = (prop::sample::select(ErrorCode::ALL), text());
    let error = error.prop_map(|(code, message)| ApiError { code, message: message.lossy().into_owned() });
    let result = prop_oneof![content().prop_map(Ok), error.prop_map(Err)];
    let method = "[a-z.]{1,12}";
    prop_oneof![
        (id.clone(), method, content()).prop_map(|(id, method, params)| Frame::Request { id, method, params }),
        (id.clone(), result).prop_map(|(id, result)| Frame::Response { id, result }),
        (method, content()).prop_map(|(method, params)| Frame::Message { method, params }),
        id.prop_map(|id| Frame::Abort { id }),
        Just(Frame::Ping),
    ]
}

proptest! {
    #[test]
    fn a_frame_is_read_back(frame in frames()) {
        prop_assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
    }

    #[test]
    fn no_text_breaks_the_reader(text in "\\PC{0,40}") {
        let _read = Frame::decode(&text);
    }
}

#[test]
fn frames_look_like_this() {
    let params = || Json::from_trusted("{}");
    for (frame, text) in [
        (
            Frame::Request { id: 1, method: "lease".into(), params: params() },
            r#"{"t":"req","id":1,"m":"lease","p":{}}"#,
        ),
        (Frame::Response { id: 2, result: Ok(params()) }, r#"{"t":"res","id":2,"ok":true,"r":{}}"#),
        (
            Frame::Response { id: 3, result: Err(ApiError::new(ErrorCode::RunNotHeld, "no")) },
            r#"{"t":"res","id":3,"ok":false,"e":{"code":"run_not_held","message":"no"}}"#,
        ),
        (Frame::Message { method: "cancel".into(), params: params() }, r#"{"t":"msg","m":"cancel","p":{}}"#),
        (Frame::Abort { id: 4 }, r#"{"t":"abort","id":4}"#),
        (Frame::Ping, r#"{"t":"ping"}"#),
    ] {
        assert_eq!(frame.encode(), text);
        assert_eq!(Frame::decode(text), Ok(frame));
    }
}

#[test]
fn a_bad_request_is_known_by_its_id_and_anything_else_is_not_kept() {
    enum Bad {
        Request(u64),
        Message,
        Other,
    }
    for (text, bad) in [
        (r#"{"t":"req","id":1}"#, Bad::Request(1)),
        (r#"{"t":"req","id":2,"m":"a"}"#, Bad::Request(2)),
        (r#"{"t":"req","id":3,"m":"","p":1}"#, Bad::Request(3)),
        (r#"{"t":"req","id":4,"m":7,"p":1}"#, Bad::Request(4)),
        (r#"{"t":"req","id":5,"m":"a","p":1,"x":1}"#, Bad::Request(5)),
        (r#"{"t":"req","id":0,"m":"a","p":1}"#, Bad::Other),
        (r#"{"t":"req","id":-1,"m":"a","p":1}"#, Bad::Other),
        (r#"{"t":"req","id":1.5,"m":"a","p":1}"#, Bad::Other),
        (r#"{"t":"req","id":"1","m":"a","p":1}"#, Bad::Other),
        (r#"{"t":"req","m":"a","p":1}"#, Bad::Other),
        (r#"{"t":"msg","m":"a"}"#, Bad::Message),
        (r#"{"t":"msg","p":1}"#, Bad::Message),
        (r#"{"t":"msg","m":"a","p":1,"id":1}"#, Bad::Message),
        (r#"{"t":"res","id":1,"ok":true}"#, Bad::Other),
        (r#"{"t":"res","id":1,"ok":true,"e":{"code":"invalid","message":""}}"#, Bad::Other),
        (r#"{"t":"res","id":1,"ok":false,"r":1}"#, Bad::Other),
        (r#"{"t":"res","id":1,"ok":1,"r":1}"#, Bad::Other),
        (r#"{"t":"res","id":1,"ok":false,"e":{"code":"other","message":""}}"#, Bad::Other),
        (r#"{"t":"res","id":1,"ok":false,"e":{"code":"invalid","message":"","x":1}}"#, Bad::Other),
        (r#"{"t":"abort"}"#, Bad::Other),
        (r#"{"t":"abort","id":1,"m":"a"}"#, Bad::Other),
        (r#"{"t":"ping","id":1}"#, Bad::Other),
        (r#"{"t":"pong"}"#, Bad::Other),
        (r#"{"id":1}"#, Bad::Other),
        ("[]", Bad::Other),
        ("1", Bad::Other),
        ("", Bad::Other),
        (r#"{"t":"ping"} {}"#, Bad::Other),
    ] {
        match (Frame::decode(text), bad) {
            (Err(BadFrame::Request(id, _)), Bad::Request(wanted)) => assert_eq!(id, wanted, "{text}"),
            (Err(BadFrame::Message(_)), Bad::Message) | (Err(BadFrame::Other(_)), Bad::Other) => {}
            (read, _) => panic!("{text}: {read:?}"),
        }
    }
}

#[test]
fn content_may_nest_as_deep_as_anywhere_inside_a_frame() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let frame = |levels| format!(r#"{{"t":"msg","m":"a","p":{}}}"#, deep(levels));
    assert!(Frame::decode(&frame(128)).is_ok());
    assert!(matches!(Frame::decode(&frame(1_000)), Err(BadFrame::Other(_))));
}
