//! The frames of the supervisor's protocol.
//!
//! A frame is two little-endian 32-bit lengths, then as many bytes of JSON, then as many of data.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Largest JSON or data of one frame, in bytes.
pub(crate) const MAX_FRAME: usize = 128 << 20;

/// What the host asks.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    /// The request's number, from 1; of [`Op::Cancel`], the request that is to end.
    pub(crate) id: u64,
    pub(crate) op: Op,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Op {
    /// Runs a command in a fresh shell. Answered by [`Body::Exec`].
    Exec { command: String, cwd: String, env: Vec<(String, String)>, time_limit_ms: u64 },
    /// Runs a file tool on its input, raw JSON. Answered by [`Body::Completed`], [`Body::Failed`] or [`Body::Stopped`].
    Tool { tool: String, input: String },
    /// Reads a file. Answered by [`Body::Bytes`], [`Body::Missing`], [`Body::TooLarge`] or [`Body::Failed`].
    ReadBytes { path: String, max: u64 },
    /// Lists the files below a directory. Answered by [`Body::Files`], [`Body::Missing`] or [`Body::Failed`].
    ListFiles { dir: String, max_entries: u32 },
    /// Ends a command, or a tool that only reads. Has no answer of its own.
    Cancel,
}

/// What the supervisor answers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reply {
    /// The request's number; 0 for the first frame.
    pub(crate) id: u64,
    pub(crate) body: Body,
}

/// The answers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Body {
    /// The first frame: requests may be sent.
    Hello { protocol: u32 },
    /// The first frame, and the last: it cannot serve.
    Refused { reason: String },
    /// How a command ended.
    Exec {
        exit_code: i32,
        stdout: String,
        stderr: String,
        truncated: bool,
        killed: Option<KilledBy>,
        /// The shell did not stop when it was to: what it does is not over until this process is killed.
        stuck: bool,
    },
    /// A tool's output, raw JSON.
    Completed { output: String },
    /// A failure.
    Failed { code: String, message: String },
    /// The tool was cancelled.
    Stopped,
    /// A file's bytes, in the frame's data.
    Bytes,
    /// There is no such file or directory.
    Missing,
    /// The file has more bytes than were asked for.
    TooLarge { size: u64 },
    /// Files with their sizes.
    Files { entries: Vec<(String, u64)>, truncated: bool },
}

/// Why a command was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum KilledBy {
    TimeLimit,
    Cancel,
}

/// A frame's bytes.
pub(crate) fn encode<T: Serialize>(message: &T, data: &[u8]) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(message)?;
    let length = |bytes: &[u8]| match u32::try_from(bytes.len()) {
        Ok(length) if bytes.len() <= MAX_FRAME => Ok(length),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "too large for a frame")),
    };
    let mut frame = Vec::with_capacity(8 + json.len() + data.len());
    frame.extend_from_slice(&length(&json)?.to_le_bytes());
    frame.extend_from_slice(&length(data)?.to_le_bytes());
    frame.extend_from_slice(&json);
    frame.extend_from_slice(data);
    Ok(frame)
}

/// The lengths of a frame's JSON and data.
pub(crate) fn decode_header(header: [u8; 8]) -> io::Result<(usize, usize)> {
    let [a, b, c, d, e, f, g, h] = header;
    let (json, data) = (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize);
    if json > MAX_FRAME || data > MAX_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too large"));
    }
    Ok((json, data))
}

/// Writes one frame.
pub(crate) fn write_frame<T: Serialize>(to: &mut impl Write, message: &T, data: &[u8]) -> io::Result<()> {
    to.write_all(&encode(message, data)?)?;
    to.flush()
}

/// Reads one frame; `None` at the end of the stream.
pub(crate) fn read_frame<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<(T, Vec<u8>)>> {
    let mut header = [0; 8];
    match from.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let (json_length, data_length) = decode_header(header)?;
    let mut json = vec![0; json_length];
    from.read_exact(&mut json)?;
    let mut data = vec![0; data_length];
    from.read_exact(&mut data)?;
    Ok(Some((serde_json::from_slice(&json)?, data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were_sent() {
        let request = Request { id: 7, op: Op::ReadBytes { path: "a\u{0}\"\n".to_owned(), max: u64::MAX } };
        let reply = Reply { id: 7, body: Body::Bytes };
        let mut stream = Vec::new();
        write_frame(&mut stream, &request, b"").unwrap();
        write_frame(&mut stream, &reply, b"\x00\xff").unwrap();
        let mut stream = &stream[..];
        assert_eq!(read_frame::<Request>(&mut stream).unwrap(), Some((request, Vec::new())));
        assert_eq!(read_frame::<Reply>(&mut stream).unwrap(), Some((reply, b"\x00\xff".to_vec())));
        assert_eq!(read_frame::<Reply>(&mut stream).unwrap(), None);
    }

    #[test]
    fn a_header_that_asks_for_too_much_is_refused() {
        let mut stream = &[0xff_u8; 8][..];
        assert_eq!(read_frame::<Reply>(&mut stream).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
