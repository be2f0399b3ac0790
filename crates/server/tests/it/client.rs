//! A plain HTTP/1.1 client over one connection: it sends exactly what a test says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use nylorun_domain::json::{Json, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

/// Longest that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        Json::parse(&self.body).expect("the body is JSON").value()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.json().get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status, self.text("code"))
    }
}

/// One connection.
pub(crate) struct Client {
    stream: BufStream<TcpStream>,
    addr: SocketAddr,
    /// Whether the next answer has a head only.
    bodiless: bool,
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.expect("the server listens");
        Self { stream: BufStream::new(stream), addr, bodiless: false }
    }

    /// Sends a request. `Host` and `Content-Length` are added where they are not given.
    pub(crate) async fn send(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: Option<&[u8]>) {
        self.bodiless = method == "HEAD";
        let given = |name: &str| headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
        let mut head = format!("{method} {target} HTTP/1.1\r\n");
        if !given("host") {
            head.push_str(&format!("host: {}\r\n", self.addr));
        }
        if let Some(body) = body.filter(|_| !given("content-length") && !given("transfer-encoding")) {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        for (name, value) in headers.iter().filter(|(name, _)| !name.is_empty()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.write(head.as_bytes()).await;
        if let Some(body) = body {
            self.write(body).await;
        }
    }

    /// Sends these bytes. A server that has answered and closed already is not an error.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
        let _ = self.stream.flush().await;
    }

    /// Reads the head of the next answer.
    pub(crate) async fn head(&mut self) -> Answer {
        let status = self.line().await;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let mut headers = BTreeMap::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        Answer { status, headers, body: String::new() }
    }

    /// Reads the next answer whole.
    pub(crate) async fn answer(&mut self) -> Answer {
        let mut answer = self.head().await;
        if self.bodiless {
            return answer;
        }
        let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0_usize);
        let mut body = vec![0; length];
        within(self.stream.read_exact(&mut body)).await.expect("the whole body");
        answer.body = String::from_utf8(body).expect("UTF-8");
        answer
    }

    /// The next chunk of a chunked body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<String> {
        let size = self.line().await;
        let size = usize::from_str_radix(&size, 16).ok()?;
        let mut chunk = vec![0; size + 2];
        within(self.stream.read_exact(&mut chunk)).await.ok()?;
        chunk.truncate(size);
        (size > 0).then(|| String::from_utf8(chunk).expect("UTF-8"))
    }

    /// The next event-stream frame, comments left out, without its blank line; `None` when the stream ended.
    pub(crate) async fn frame(&mut self, pending: &mut String) -> Option<String> {
        loop {
            while let Some((frame, rest)) = pending.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                *pending = rest;
                if !frame.starts_with(':') {
                    return Some(frame);
                }
            }
            pending.push_str(&self.chunk().await?);
        }
    }

    /// A line without its end; empty when the connection ended.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = within(self.stream.read_line(&mut line)).await;
        line.trim_end_matches(['\r', '\n']).to_owned()
    }
}

/// What `work` gives; fails the test when it takes too long.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("in time")
}
