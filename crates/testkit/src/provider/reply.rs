//! What the stub answers with.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::watch;

/// A piece of a streamed answer.
#[derive(Clone, Debug)]
pub enum Piece {
    /// These bytes, in a write of their own.
    Bytes(Bytes),
    /// Nothing, for so long.
    Wait(Duration),
    /// The connection breaks.
    Cut,
    /// Nothing comes any more.
    Hang,
}

/// A reply.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    pieces: Vec<Piece>,
    before: Option<Piece>,
    released: Option<watch::Receiver<bool>>,
}

impl Reply {
    /// This status with a plain text body.
    pub fn status(status: u16, body: &str) -> Self {
        let pieces = vec![Piece::Bytes(Bytes::copy_from_slice(body.as_bytes()))];
        Self {
            status,
            headers: vec![("content-type".into(), "text/plain".into())],
            pieces,
            before: None,
            released: None,
        }
    }

    /// This status with a JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self { headers: Vec::new(), ..Self::status(status, &body.to_string()) }
            .header("content-type", "application/json")
    }

    /// An event stream of these events' data.
    pub fn stream<'a>(events: impl IntoIterator<Item = &'a str>) -> Self {
        let pieces = events.into_iter().map(|data| Piece::Bytes(format!("data: {data}\n\n").into())).collect();
        Self { status: 200, headers: Vec::new(), pieces, before: None, released: None }
            .header("content-type", "text/event-stream")
    }

    /// An event stream of these events: name and data.
    pub fn named_stream<'a>(events: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let event = |(name, data)| Piece::Bytes(format!("event: {name}\ndata: {data}\n\n").into());
        let pieces = events.into_iter().map(event).collect();
        Self { pieces, ..Self::stream([]) }
    }

    /// No answer at all.
    pub fn never() -> Self {
        Self { before: Some(Piece::Hang), ..Self::stream([]) }
    }

    /// Not before this says so.
    pub fn after(mut self, released: watch::Receiver<bool>) -> Self {
        self.released = Some(released);
        self
    }

    /// With a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With something after the pieces so far.
    pub fn piece(mut self, piece: Piece) -> Self {
        self.pieces.push(piece);
        self
    }

    /// Only the first `count` pieces, and then the connection breaks.
    pub fn cut_after(mut self, count: usize) -> Self {
        self.pieces.truncate(count);
        self.piece(Piece::Cut)
    }

    /// Only the first `count` pieces, and then nothing.
    pub fn hang_after(mut self, count: usize) -> Self {
        self.pieces.truncate(count);
        self.piece(Piece::Hang)
    }

    /// The same bytes in writes of `size` bytes, which cuts lines and characters anywhere.
    pub fn in_chunks_of(mut self, size: usize) -> Self {
        let cut = |piece: Piece| match piece {
            Piece::Bytes(bytes) => bytes.chunks(size).map(|part| Piece::Bytes(Bytes::copy_from_slice(part))).collect(),
            other @ (Piece::Wait(_) | Piece::Cut | Piece::Hang) => vec![other],
        };
        self.pieces = self.pieces.into_iter().flat_map(cut).collect();
        self
    }

    /// The same bytes in one write, as fast as can be: for benchmarks. What is not bytes is dropped.
    pub fn at_once(mut self) -> Self {
        self.pieces = vec![Piece::Bytes(self.bytes().into())];
        self
    }

    /// The bytes of its body, without what else happens while they come.
    pub fn bytes(&self) -> Vec<u8> {
        let bytes = self.pieces.iter().flat_map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.to_vec(),
            Piece::Wait(_) | Piece::Cut | Piece::Hang => Vec::new(),
        });
        bytes.collect()
    }

    pub(super) async fn into_response(self) -> Response {
        if let Some(Piece::Hang) = self.before {
            std::future::pending::<()>().await;
        }
        if let Some(mut released) = self.released {
            // Who drops the other side releases it too.
            let _ = released.wait_for(|released| *released).await;
        }
        let only_bytes = self.pieces.iter().all(|piece| matches!(piece, Piece::Bytes(_)));
        let body = if only_bytes && self.pieces.len() == 1 { whole(self.pieces) } else { streamed(self.pieces) };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in self.headers {
            let header = (HeaderName::try_from(name), HeaderValue::try_from(value));
            if let (Ok(name), Ok(value)) = header {
                response.headers_mut().insert(name, value);
            }
        }
        response.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("text/event-stream"));
        response
    }
}

fn whole(pieces: Vec<Piece>) -> Body {
    match pieces.into_iter().next() {
        Some(Piece::Bytes(bytes)) => Body::from(bytes),
        Some(Piece::Wait(_) | Piece::Cut | Piece::Hang) | None => Body::empty(),
    }
}

fn streamed(pieces: Vec<Piece>) -> Body {
    let pieces = stream::iter(pieces).then(|piece| async move {
        match piece {
            Piece::Bytes(bytes) => {
                // Lets the bytes before go out in a write of their own.
                tokio::task::yield_now().await;
                Ok(bytes)
            }
            Piece::Wait(time) => {
                tokio::time::sleep(time).await;
                Ok(Bytes::new())
            }
            Piece::Cut => {
                tokio::task::yield_now().await;
                Err(io::Error::other("cut on demand"))
            }
            Piece::Hang => std::future::pending().await,
        }
    });
    Body::from_stream(pieces)
}
