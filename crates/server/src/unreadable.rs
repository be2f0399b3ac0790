//! Requests whose head hyper cannot read: it answers them itself, before any of our code, and without a body. On the
//! way to the socket such an answer is replaced by one with the body of every other refusal.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::StatusCode;
use nylorun_wire::code::Code;
use nylorun_wire::error::Rejection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::listen::MAX_HEAD;

/// How long what a refused client still sends is taken from it, and how much of it: one that is cut off while it sends
/// would see a broken connection instead of the answer.
const LINGER: Duration = Duration::from_secs(2);
const MAX_DISCARDED: usize = 16 << 20;
/// Longer than any answer that hyper makes.
const MAX_AUTOMATIC: usize = 256;

/// A connection on which hyper's own answers have the project's body.
#[derive(Debug)]
pub(crate) struct OwnRefusals<S> {
    inner: S,
    line: RequestLine,
    state: State,
}

/// The line of the request that is being read, by its length so far. It tells a target that is too long from headers
/// that are, which hyper mostly takes for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestLine {
    Open(usize),
    Ended(usize),
}

impl RequestLine {
    const NEW: Self = Self::Open(0);

    fn go_on(self, bytes: &[u8]) -> Self {
        match (self, bytes.iter().position(|byte| *byte == b'\n')) {
            (Self::Ended(_), _) => self,
            (Self::Open(length), Some(rest)) => Self::Ended(length + rest),
            (Self::Open(length), None) => Self::Open(length + bytes.len()),
        }
    }

    /// Whether it takes up most of what a head may have.
    fn is_long(self) -> bool {
        let (Self::Open(length) | Self::Ended(length)) = self;
        length > MAX_HEAD / 2
    }
}

#[derive(Debug)]
enum State {
    /// Everything passes as it is.
    Passing,
    /// Our answer is being written in the place of hyper's.
    Refusing { answer: Vec<u8>, written: usize },
    /// Our answer was written, and hyper will close.
    Refused,
    /// Nothing more is written, and what still comes is thrown away.
    Lingering { until: Pin<Box<Sleep>>, left: usize },
}

impl<S> OwnRefusals<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, line: RequestLine::NEW, state: State::Passing }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for OwnRefusals<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        if let RequestLine::Open(_) = this.line {
            this.line = this.line.go_on(&buf.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> OwnRefusals<S> {
    /// Writes our answer, and says that hyper's of `length` bytes was written.
    fn poll_refuse(&mut self, cx: &mut Context<'_>, length: usize) -> Poll<io::Result<usize>> {
        while let State::Refusing { answer, written } = &mut self.state {
            let count = ready!(Pin::new(&mut self.inner).poll_write(cx, &answer[*written..]))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *written += count;
            if *written == answer.len() {
                self.state = State::Refused;
            }
        }
        Poll::Ready(Ok(length))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for OwnRefusals<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let State::Passing = this.state {
            let Some(automatic) = Automatic::at_the_end_of(buf) else {
                this.line = RequestLine::NEW;
                return Pin::new(&mut this.inner).poll_write(cx, buf);
            };
            // What hyper had to write before goes first.
            if automatic.start > 0 {
                return Pin::new(&mut this.inner).poll_write(cx, &buf[..automatic.start]);
            }
            this.state = State::Refusing { answer: automatic.replacement(this.line), written: 0 };
        }
        this.poll_refuse(cx, buf.len())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // An answer of hyper's own has no body: it is always alone in its buffer.
        let mut filled = bufs.iter().filter(|buf| !buf.is_empty());
        match (filled.next(), filled.next()) {
            (Some(only), None) => self.poll_write(cx, only),
            _ => {
                let this = self.get_mut();
                this.line = RequestLine::NEW;
                Pin::new(&mut this.inner).poll_write_vectored(cx, bufs)
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match &mut this.state {
                State::Passing | State::Refusing { .. } => return Pin::new(&mut this.inner).poll_shutdown(cx),
                State::Refused => {
                    ready!(Pin::new(&mut this.inner).poll_shutdown(cx))?;
                    let until = Box::pin(tokio::time::sleep_until(Instant::now() + LINGER));
                    this.state = State::Lingering { until, left: MAX_DISCARDED };
                }
                State::Lingering { until, left } => {
                    if until.as_mut().poll(cx).is_ready() || *left == 0 {
                        return Poll::Ready(Ok(()));
                    }
                    let mut scrap = [0; 8_192];
                    let mut buf = ReadBuf::new(&mut scrap);
                    let read = ready!(Pin::new(&mut this.inner).poll_read(cx, &mut buf));
                    if read.is_err() || buf.filled().is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                    *left = left.saturating_sub(buf.filled().len());
                }
            }
        }
    }
}

/// An answer that hyper made by itself.
#[derive(Debug, PartialEq, Eq)]
struct Automatic<'b> {
    /// Where in the buffer it begins.
    start: usize,
    status: StatusCode,
    /// Its header `date`, with the name.
    date: &'b str,
}

impl<'b> Automatic<'b> {
    /// The answer in which `buf` ends. None of ours has this form: each has a content type, and no body holds line
    /// breaks like these.
    fn at_the_end_of(buf: &'b [u8]) -> Option<Self> {
        if !buf.ends_with(b"\r\n\r\n") {
            return None;
        }
        let tail = buf.len().saturating_sub(MAX_AUTOMATIC);
        let start = tail + buf[tail..].windows(7).rposition(|bytes| bytes == b"HTTP/1.")?;
        let head = std::str::from_utf8(&buf[start..]).ok()?.strip_suffix("\r\n\r\n")?;
        let (line, headers) = head.split_once("\r\n")?;
        let status = StatusCode::from_bytes(line.split(' ').nth(1)?.as_bytes()).ok()?;
        let is_automatic = matches!(
            status,
            StatusCode::BAD_REQUEST | StatusCode::URI_TOO_LONG | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        );
        let mut headers: Vec<_> = headers.split("\r\n").filter(|header| *header != "connection: close").collect();
        headers.sort_unstable();
        match headers[..] {
            ["content-length: 0", date] if is_automatic && date.starts_with("date: ") => {
                Some(Self { start, status, date })
            }
            _ => None,
        }
    }

    /// The answer to send instead.
    fn replacement(&self, line: RequestLine) -> Vec<u8> {
        let status = match self.status {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE if line.is_long() => StatusCode::URI_TOO_LONG,
            status => status,
        };
        let message = match status {
            StatusCode::URI_TOO_LONG => "The path and query are too long: a request's head may have at most 64 KiB",
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
                "The headers are too large: a request's head may have at most 64 KiB and 100 headers"
            }
            _ => "The request cannot be read as HTTP/1.1: correct its first line and its headers",
        };
        let body = Rejection::new(status.as_u16(), Code::InvalidRequest, message).to_value().to_json();
        let (length, date, body) = (body.as_str().len(), self.date, body.as_str());
        format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             {date}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const DATE: &str = "date: Mon, 01 Jan 2035 00:00:00 GMT";

    fn automatic(status: &str) -> String {
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n{DATE}\r\n\r\n")
    }

    #[test]
    fn only_answers_of_hypers_own_are_found() {
        for (text, found) in [
            (automatic("400 Bad Request"), Some((0, 400))),
            (automatic("414 URI Too Long"), Some((0, 414))),
            (format!("{{\"tail\":1}}{}", automatic("431 Request Header Fields Too Large")), Some((10, 431))),
            (format!("HTTP/1.0 400 Bad Request\r\ncontent-length: 0\r\n{DATE}\r\n\r\n"), Some((0, 400))),
            (automatic("404 Not Found"), None),
            (automatic("400 Bad Request").replace(": 0", ": 5") + "abcde", None),
            (automatic("400 Bad Request").replace(DATE, &format!("{DATE}\r\ncontent-type: text/plain")), None),
            (format!("HTTP/1.1 204 No Content\r\nallow: GET\r\n{DATE}\r\n\r\n"), None),
            ("0\r\n\r\n".to_owned(), None),
            ("\r\n\r\n".to_owned(), None),
            (String::new(), None),
        ] {
            let answer = Automatic::at_the_end_of(text.as_bytes());
            assert_eq!(answer.map(|answer| (answer.start, answer.status.as_u16())), found, "{text:?}");
        }
    }

    /// What a client that sent `request` is given when hyper writes `written`.
    async fn given(request: &[u8], written: &str) -> String {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        client.write_all(request).await.unwrap();
        let mut server = OwnRefusals::new(server);
        let mut read = vec![0; request.len()];
        server.read_exact(&mut read).await.unwrap();
        server.write_all(written.as_bytes()).await.unwrap();
        let (closed, given) = tokio::join!(server.shutdown(), async {
            let mut given = String::new();
            client.read_to_string(&mut given).await.unwrap();
            drop(client);
            given
        });
        closed.unwrap();
        given
    }

    #[tokio::test]
    async fn a_long_target_is_told_from_large_headers() {
        let too_large = automatic("431 Request Header Fields Too Large");
        let long = "a".repeat(MAX_HEAD - 100);
        for (request, status) in [
            (format!("GET /{long}"), "414 URI Too Long"),
            (format!("GET /{long} HTTP/1.1\r\nx: a"), "414 URI Too Long"),
            (format!("GET / HTTP/1.1\r\nx: {long}"), "431 Request Header"),
        ] {
            let answer = given(request.as_bytes(), &too_large).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("content-length: {}\r\n{DATE}", body.len())), "{answer}");
            assert!(body.starts_with(r#"{"status":"rejected","code":"invalid_request","message":"The "#), "{answer}");
        }
    }

    #[tokio::test]
    async fn everything_else_passes_as_it_is() {
        let earlier = "HTTP/1.1 200 OK\r\n\r\n{}";
        assert_eq!(given(b"GET / HTTP/1.1\r\n\r\n", earlier).await, earlier);
        let both = given(b"GET / HTTP/1.1\r\n\r\n\x01", &format!("{earlier}{}", automatic("400 Bad Request"))).await;
        assert!(both.starts_with(&format!("{earlier}HTTP/1.1 400 Bad Request\r\n")), "{both}");
    }
}
