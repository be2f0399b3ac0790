//! Server-sent events of a session (api 1.11; decisions, Token deltas).

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use hyper::body::Frame as BodyFrame;
use nylorun_app::{Follower, Frame};
use nylorun_domain::event::Visibility;
use nylorun_domain::id::SessionId;
use nylorun_wire::stream::{delta_frame, event_frame, expired_frame};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::reply::Chunks;
use crate::stage::{Stage, Stages};

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
    let state = Stream { session, follower, deltas, ticks, stages };
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
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                biased;
                () = self.stages.reached(Stage::Draining) => return None,
                frame = self.follower.next() => {
                    if let Some(chunk) = self.chunk(&frame?) {
                        self.ticks.reset();
                        return Some(chunk);
                    }
                }
                _ = self.ticks.tick() => return Some(Bytes::from_static(b": keepalive\n\n")),
            }
        }
    }

    /// What this client is sent of it: a frame that all its followers share.
    fn chunk(&self, frame: &Frame) -> Option<Bytes> {
        match frame {
            Frame::Event(event) => match event.visibility {
                Visibility::Public => {
                    Some(event.frame(|event| event_frame(&self.session, event.seq, &event.kind, &event.body).into()))
                }
                Visibility::Internal => None,
            },
            Frame::Delta(delta) => match self.deltas {
                Deltas::Wanted => Some(delta.frame(|delta| delta_frame(&delta.body).into())),
                Deltas::Unwanted => None,
            },
            Frame::TokenExpired => Some(Bytes::from_static(expired_frame().as_bytes())),
        }
    }
}
