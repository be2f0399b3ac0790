//! One HTTP request by hand: what no well-behaved client would send.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Sends one request to `http://HOST:PORT` on a connection of its own.
pub(crate) fn send(url: &str, method: &str, target: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Answer {
    try_send(url, method, target, headers, body).unwrap_or_else(|| panic!("{method} {target}: no answer"))
}

/// The same; `None` when the server went away.
pub(crate) fn try_send(
    url: &str,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Option<Answer> {
    let host = url.strip_prefix("http://").expect("a plain URL");
    let mut stream = TcpStream::connect(host).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out can be set");
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(body) = body {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    // A server that refuses a large body by its length may close before it took all of it.
    let _ = stream.write_all(body.unwrap_or_default());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    parse(&answer)
}

fn parse(answer: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, body: body.to_owned() })
}
