//! Server-sent events of a session (api 1.11; decisions, Token deltas).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use hyper::body::Frame as BodyFrame;
use nylorun_app::{Follower, Frame, StoredEvent};
use nylorun_domain::event::Visibility;
use nylorun_domain::id::SessionId;
use nylorun_wire::{cursor, names};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::reply::Chunks;
use crate::stage::{Stage, Stages};

/// Bodies up to this size are copied into their frame; longer ones are shared by all followers without a copy.
const COPIED_UP_TO: usize = 2_048;

/// Whether a client asked for the pieces of answers that are being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deltas {
    /// It did.
    Wanted,
    /// It did not.
    Unwanted,
}

/// A stream of what `follower` gives, with comments while there is nothing. It ends with the follower, and when the
/// server drains.
pub(crate) fn events(
    session: SessionId,
    follower: Follower,
    deltas: Deltas,
    keepalive: Duration,
    stages: Stages,
) -> Chunks {
    let mut ticks = interval_at(Instant::now() + keepalive, keepalive);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let state = Stream { session, follower, deltas, ticks, stages, ready: VecDeque::new() };
    Box::pin(stream::unfold(state, |mut state| async {
        let chunk = state.next().await?;
        Some((Ok(BodyFrame::data(chunk)), state))
    }))
}

struct Stream {
    session: SessionId,
    follower: Follower,
    deltas: Deltas,
    ticks: tokio::time::Interval,
    stages: Stages,
    ready: VecDeque<Bytes>,
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(chunk);
            }
            tokio::select! {
                biased;
                () = self.stages.reached(Stage::Draining) => return None,
                frame = self.follower.next() => self.take(frame?),
                _ = self.ticks.tick() => return Some(Bytes::from_static(b": keepalive\n\n")),
            }
        }
    }

    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Event(event) => match event.visibility {
                Visibility::Public => self.ready.extend(event_chunks(&self.session, &event)),
                Visibility::Internal => return,
            },
            Frame::Delta(data) => match self.deltas {
                Deltas::Wanted => self.ready.push_back(delta_chunk(&data)),
                Deltas::Unwanted => return,
            },
        }
        self.ticks.reset();
    }
}

/// The frame of one event, in one chunk or, when it is long, in three of which the middle one is shared.
fn event_chunks(session: &SessionId, event: &Arc<StoredEvent>) -> Vec<Bytes> {
    let kind = names::older_event_type(&event.kind);
    let mut head = format!("id: {}\nevent: {kind}\n", cursor::event(session, event.seq));
    let one_line = !event.body.contains(['\n', '\r']);
    if one_line && kind == &*event.kind && event.body.len() > COPIED_UP_TO {
        head.push_str("data: ");
        return vec![head.into(), Bytes::from_owner(SharedBody(event.body.clone())), Bytes::from_static(b"\n\n")];
    }
    push_data(&mut head, &names::older_event(&event.kind, &event.body));
    vec![head.into()]
}

fn delta_chunk(data: &str) -> Bytes {
    let mut frame = "event: message.delta\n".to_owned();
    push_data(&mut frame, data);
    frame.into()
}

/// A `data:` line a line of text, and the blank line that ends the frame. Content that a caller wrote over several
/// lines is kept so; a reader joins them again.
fn push_data(out: &mut String, data: &str) {
    for line in data.split(['\n', '\r']) {
        out.push_str("data: ");
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
}

struct SharedBody(Arc<str>);

impl AsRef<[u8]> for SharedBody {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nylorun_domain::event::Visibility;
    use nylorun_domain::id::SessionId;
    use nylorun_domain::time::Millis;

    use super::{COPIED_UP_TO, StoredEvent, delta_chunk, event_chunks};

    fn frame(kind: &str, body: &str) -> String {
        let event = StoredEvent {
            seq: 3,
            kind: kind.into(),
            visibility: Visibility::Public,
            body: body.into(),
            committed_at: Millis(0),
        };
        let chunks = event_chunks(&SessionId::from_trusted("s"), &Arc::new(event));
        String::from_utf8(chunks.concat()).unwrap()
    }

    #[test]
    fn frames_are_the_same_in_one_chunk_or_three() {
        for length in [1, COPIED_UP_TO + 1] {
            let body = "x".repeat(length);
            assert_eq!(frame("turn.failed", &body), format!("id: czoz\nevent: turn.failed\ndata: {body}\n\n"));
        }
    }

    #[test]
    fn names_are_those_of_the_protocol() {
        let body = r#"{"type":"environment.exec","payload":{}}"#;
        assert_eq!(
            frame("environment.exec", body),
            "id: czoz\nevent: sandbox.exec\ndata: {\"type\":\"sandbox.exec\",\"payload\":{}}\n\n"
        );
    }

    #[test]
    fn line_breaks_never_end_a_frame() {
        let long = " ".repeat(COPIED_UP_TO);
        assert_eq!(
            frame("t", "{\n\r\"a\":1\r\n}"),
            "id: czoz\nevent: t\ndata: {\ndata: \ndata: \"a\":1\ndata: \ndata: }\n\n"
        );
        assert!(frame("t", &format!("{{\n{long}}}")).contains("data: {\ndata:  "));
        assert_eq!(delta_chunk("{}"), "event: message.delta\ndata: {}\n\n");
    }
}
