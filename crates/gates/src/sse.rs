//! An incremental parser of server-sent events (WHATWG HTML, 9.2.6), for streams from outside: every size is bounded.
//!
//! Written here, since the crates at hand bound neither line nor event and keep a stream's bytes in a string that
//! must be valid UTF-8 chunk by chunk.

/// Longest event, in bytes. Answers stream in small pieces; one this long is an attack or a fault.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Its `event` field; empty when it has none.
    pub(crate) name: String,
    /// Its `data` lines, joined by line feeds.
    pub(crate) data: String,
}

/// The stream holds an event longer than [`MAX_EVENT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventTooLong;

/// The parser. Give it bytes as they come.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// Whether the byte before was a carriage return, whose line feed is still to be skipped.
    after_cr: bool,
    /// Whether the first line was read, before which a byte order mark may stand.
    begun: bool,
    name: String,
    data: String,
    has_data: bool,
}

impl SseParser {
    /// Takes the next bytes and adds the events that they complete to `events`.
    pub(crate) fn push(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), EventTooLong> {
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (content, end) = match part {
                [content @ .., end @ (b'\n' | b'\r')] => (content, Some(*end)),
                content => (content, None),
            };
            let second_half = self.after_cr && content.is_empty() && end == Some(b'\n');
            self.after_cr = end == Some(b'\r');
            if second_half {
                continue;
            }
            if self.line.len() + self.data.len() + content.len() > MAX_EVENT_BYTES {
                return Err(EventTooLong);
            }
            self.line.extend_from_slice(content);
            if end.is_some() {
                self.end_line(events);
            }
        }
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) {
        let bytes = std::mem::take(&mut self.line);
        let decoded = String::from_utf8_lossy(&bytes);
        let line = if self.begun { &*decoded } else { decoded.strip_prefix('\u{feff}').unwrap_or(&decoded) };
        self.begun = true;
        if line.is_empty() {
            self.end_event(events);
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            // Comments have an empty field name; `id` and `retry` mean nothing to a stream that is not resumed.
            _ => {}
        }
    }

    fn end_event(&mut self, events: &mut Vec<SseEvent>) {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            events.push(SseEvent { name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<SseEvent> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        for chunk in chunks {
            parser.push(chunk, &mut events).unwrap();
        }
        events
    }

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { name: name.into(), data: data.into() }
    }

    #[test]
    fn reads_fields_comments_and_every_line_end() {
        let text = "\u{feff}data: a\n\n: comment\n\nevent: x\r\ndata:b\r\ndata:  c\r\n\r\nid: 1\rdata\r\rdata: lost";
        let expected = vec![event("", "a"), event("x", "b\n c"), event("", "")];
        assert_eq!(parse([text.as_bytes()]), expected);
    }

    #[test]
    fn refuses_an_event_without_end() {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let line = [b"data: ".as_slice(), &[b'x'; 1024 * 1024], b"\n"].concat();
        let refused = (0..9).find_map(|_| parser.push(&line, &mut events).err());
        assert_eq!(refused, Some(EventTooLong));
        let mut parser = SseParser::default();
        assert_eq!(parser.push(&vec![b'x'; MAX_EVENT_BYTES + 1], &mut events), Err(EventTooLong));
        assert_eq!(events, []);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            lines in proptest::collection::vec(
                proptest::sample::select(vec!["data: é𝄞", "data:{\"a\":1}", "event: m", ": c", "", "x", "\u{feff}"]),
                0..30,
            ),
            ends in proptest::collection::vec(proptest::sample::select(vec!["\n", "\r\n", "\r"]), 30),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let text: String = lines.iter().zip(&ends).flat_map(|(line, end)| [*line, *end]).collect();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(parse(chunks), parse([bytes]));
        }
    }
}
