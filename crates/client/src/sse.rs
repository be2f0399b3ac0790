//! Server-sent events, read as their bytes arrive: for who brings a connection of their own. [`crate::Events`] follows
//! and resumes by itself.

/// The longest frame that is read, in UTF-16 units (api 1.11).
pub const MAX_FRAME_CHARS: usize = 2_000_000;

/// No character needs more bytes for one UTF-16 unit, so a line beyond this is too long whatever it holds.
const MAX_FRAME_BYTES: usize = 3 * MAX_FRAME_CHARS;

/// A frame over [`MAX_FRAME_CHARS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server sent an event of more than {MAX_FRAME_CHARS} characters")]
pub struct FrameTooLarge;

/// A whole frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The `id:` line of this frame, if it has one.
    pub id: Option<String>,
    /// The `event:` line; empty when there is none.
    pub event: String,
    /// The `data:` lines, joined by line feeds.
    pub data: String,
}

/// Takes bytes as they come, cut anywhere, and gives the frames that are complete. What is left when the connection
/// ends is dropped, as the format asks.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    after_carriage_return: bool,
    begun: bool,
    frame: Frame,
    has_data: bool,
    /// UTF-16 units of the frame so far.
    chars: usize,
}

impl Parser {
    /// Feeds bytes. Frames without data (keep-alive comments, say) are not given.
    ///
    /// # Errors
    /// A frame over [`MAX_FRAME_CHARS`]; what comes after it cannot be read.
    pub fn push(&mut self, bytes: &[u8], mut emit: impl FnMut(Frame)) -> Result<(), FrameTooLarge> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_carriage_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.extend_line(rest);
            };
            self.extend_line(&rest[..end])?;
            self.after_carriage_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if let Some(frame) = self.end_line()? {
                emit(frame);
            }
        }
        Ok(())
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), FrameTooLarge> {
        if self.line.len() + bytes.len() > MAX_FRAME_BYTES {
            return Err(FrameTooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<Frame>, FrameTooLarge> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let line = if std::mem::replace(&mut self.begun, true) { &*text } else { text.trim_start_matches('\u{feff}') };
        if line.is_empty() {
            return Ok(self.end_frame());
        }
        self.chars += line.chars().map(char::len_utf16).sum::<usize>();
        if self.chars > MAX_FRAME_CHARS {
            return Err(FrameTooLarge);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        self.field(field, value.strip_prefix(' ').unwrap_or(value));
        Ok(None)
    }

    fn field(&mut self, name: &str, value: &str) {
        match name {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.frame.data.push('\n');
                }
                self.frame.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.frame.event),
            "id" if !value.contains('\0') => self.frame.id = Some(value.to_owned()),
            // Comments (an empty name), `retry` and whatever a later server sends.
            _ => {}
        }
    }

    fn end_frame(&mut self) -> Option<Frame> {
        let frame = std::mem::take(&mut self.frame);
        self.chars = 0;
        std::mem::take(&mut self.has_data).then_some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: Option<&str>, event: &str, data: &str) -> Frame {
        Frame { id: id.map(str::to_owned), event: event.into(), data: data.into() }
    }

    fn read(chunks: &[&[u8]]) -> Vec<Frame> {
        let mut parser = Parser::default();
        let mut frames = Vec::new();
        for chunk in chunks {
            parser.push(chunk, |frame| frames.push(frame)).unwrap();
        }
        frames
    }

    const TEXT: &str = "\u{feff}id: c1\nevent: a\ndata: {\"x\":1}\n\n: keepalive\n\n\
        event:b\r\ndata: é😀\r\ndata:second\r\n\r\nid\rdata\r\r\
        retry: 5\n\nevent: never ended\ndata: x\n";

    fn expected() -> Vec<Frame> {
        vec![frame(Some("c1"), "a", "{\"x\":1}"), frame(None, "b", "é😀\nsecond"), frame(Some(""), "", "")]
    }

    #[test]
    fn frames_are_the_same_however_the_bytes_are_cut() {
        let bytes = TEXT.as_bytes();
        assert_eq!(read(&[bytes]), expected());
        for size in 1..bytes.len() {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(read(&chunks), expected(), "chunks of {size}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), expected(), "cut at {cut}");
        }
    }

    #[test]
    fn a_frame_at_the_limit_is_read_and_one_beyond_is_refused() {
        let of = |size: usize| format!("data:{}\n\n", "x".repeat(size - 5)).into_bytes();
        assert_eq!(read(&[&of(MAX_FRAME_CHARS)]).len(), 1);
        assert_eq!(Parser::default().push(&of(MAX_FRAME_CHARS + 1), |_| {}), Err(FrameTooLarge));
        let endless = vec![b'x'; 1 << 20];
        let mut parser = Parser::default();
        let refused = (0..10).find_map(|_| parser.push(&endless, |_| {}).err());
        assert_eq!(refused, Some(FrameTooLarge));
    }

    #[test]
    fn the_limit_is_of_one_frame_not_of_the_stream() {
        let half = format!("data:{}\n\n", "x".repeat(MAX_FRAME_CHARS / 2)).into_bytes();
        assert_eq!(read(&[&half, &half, &half]).len(), 3);
    }
}
