//! The parser: RFC 8259, with lone surrogates allowed in escapes, and bounded depth. It says where the parts of a
//! document stand; what they hold is made when somebody asks (`document.rs`).

use super::document::{Kind, Part};
use super::{Document, Text, Value};

/// How deep arrays and objects may nest.
pub const MAX_DEPTH: usize = 128;

/// Why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong, in words.
    pub problem: &'static str,
    /// Where, in bytes from the start.
    pub offset: usize,
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.offset)
    }
}

impl std::error::Error for JsonError {}

/// How many levels an envelope may have around a document that it carries.
const ENVELOPE_DEPTH: usize = 16;

/// Parses one JSON document; white space around it is allowed.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    Ok(Document::parse(text)?.root().to_value())
}

/// Parses a document that carries others, each of which may nest [`MAX_DEPTH`] levels deep.
pub fn parse_envelope(text: &str) -> Result<Value, JsonError> {
    Ok(Document::parse_envelope(text)?.root().to_value())
}

/// A place in a text of less than 4 GiB: [`parts`] takes no longer one. A document has many parts, so they are small.
fn place(at: usize) -> u32 {
    at as u32
}

/// The parts of one document, in the order of their beginnings.
pub(super) fn parts(text: &str, depth: Depth) -> Result<Vec<Part>, JsonError> {
    let mut parser = Parser::new(text, depth);
    if u32::try_from(text.len()).is_err() {
        return Err(parser.error("longer than 4 GiB"));
    }
    // Most parts have six characters or more; a document that is one long text gets no more than it may need.
    parser.parts.reserve((text.len() / 6).clamp(1, 1024));
    parser.skip_space();
    parser.value(0)?;
    parser.skip_space();
    if parser.at < text.len() {
        return Err(parser.error("unexpected text after the value"));
    }
    Ok(parser.parts)
}

/// How deep a document may nest.
#[derive(Clone, Copy, Debug)]
pub(super) enum Depth {
    /// [`MAX_DEPTH`]
    Content,
    /// Some levels more.
    Envelope,
}

/// The text of a JSON string literal.
pub(super) fn unquote(literal: &str) -> Option<Text> {
    literal.starts_with('"').then(|| Parser::new(literal, Depth::Content).string().ok()).flatten()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    max_depth: usize,
    parts: Vec<Part>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, depth: Depth) -> Self {
        let max_depth = match depth {
            Depth::Content => MAX_DEPTH,
            Depth::Envelope => MAX_DEPTH + ENVELOPE_DEPTH,
        };
        Self { text, at: 0, max_depth, parts: Vec::new() }
    }

    fn error(&self, problem: &'static str) -> JsonError {
        JsonError { problem, offset: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), JsonError> {
        if self.peek() != Some(byte) {
            return Err(self.error(problem));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.literal(),
            Some(b't') => self.word("true", Kind::True),
            Some(b'f') => self.word("false", Kind::False),
            Some(b'n') => self.word("null", Kind::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.error("unexpected character")),
            None => Err(self.error("unexpected end")),
        }
    }

    /// Notes a part without others in it that began at `start` and ends here.
    fn note(&mut self, kind: Kind, start: usize) {
        let next = place(self.parts.len() + 1);
        self.parts.push(Part { kind, start: place(start), end: place(self.at), next });
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<(), JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("unexpected character"));
        }
        let start = self.at;
        self.at += word.len();
        self.note(kind, start);
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonError> {
        let part = self.open(Kind::Array, depth)?;
        self.elements(depth)?;
        self.close(part);
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), JsonError> {
        let part = self.open(Kind::Object, depth)?;
        self.members(depth)?;
        self.close(part);
        Ok(())
    }

    /// Notes an array or an object and moves over its bracket. Where it ends is noted by [`Parser::close`].
    fn open(&mut self, kind: Kind, depth: usize) -> Result<usize, JsonError> {
        if depth > self.max_depth {
            return Err(self.error("nested deeper than 128 levels"));
        }
        let part = self.parts.len();
        self.note(kind, self.at);
        self.at += 1;
        Ok(part)
    }

    fn close(&mut self, part: usize) {
        let next = place(self.parts.len());
        if let Some(part) = self.parts.get_mut(part) {
            (part.end, part.next) = (place(self.at), next);
        }
    }

    fn elements(&mut self, depth: usize) -> Result<(), JsonError> {
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_space();
            self.value(depth)?;
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) | None => return Err(self.error("expected ',' or ']'")),
            }
        }
    }

    fn members(&mut self, depth: usize) -> Result<(), JsonError> {
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a name"));
            }
            self.literal()?;
            self.skip_space();
            self.expect(b':', "expected ':'")?;
            self.skip_space();
            self.value(depth)?;
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) | None => return Err(self.error("expected ',' or '}'")),
            }
        }
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            Some(_) | None => return Err(self.error("expected a digit")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.at_least_one_digit()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.at_least_one_digit()?;
        }
        self.note(Kind::Number, start);
        Ok(())
    }

    fn at_least_one_digit(&mut self) -> Result<(), JsonError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.error("expected a digit"));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    /// A string, whose text is made later.
    fn literal(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        let mut kind = Kind::Plain;
        self.at += 1;
        while self.plain_run()? != b'"' {
            kind = Kind::Escaped;
            self.escape()?;
        }
        self.at += 1;
        self.note(kind, start);
        Ok(())
    }

    fn string(&mut self) -> Result<Text, JsonError> {
        self.at += 1;
        let start = self.at;
        match self.plain_run()? {
            b'"' => {
                let text = Text::from(&self.text[start..self.at]);
                self.at += 1;
                Ok(text)
            }
            _escape => self.escaped_string(start),
        }
    }

    /// Moves over plain characters to the quotation mark or the backslash that ends them, and gives that byte.
    fn plain_run(&mut self) -> Result<u8, JsonError> {
        let rest = &self.text.as_bytes()[self.at..];
        let ends_run = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
        let Some(length) = rest.iter().position(ends_run) else {
            self.at = self.text.len();
            return Err(self.error("unterminated string"));
        };
        self.at += length;
        match rest[length] {
            end @ (b'"' | b'\\') => Ok(end),
            _control => Err(self.error("control character in a string")),
        }
    }

    /// A string that holds an escape, read from its first character at `start` on.
    fn escaped_string(&mut self, start: usize) -> Result<Text, JsonError> {
        self.at = start;
        let mut text = String::new();
        loop {
            let run = self.at;
            let end = self.plain_run()?;
            text.push_str(&self.text[run..self.at]);
            if end == b'"' {
                self.at += 1;
                return Ok(Text::from(text));
            }
            match self.escaped_char()? {
                Some(c) => text.push(c),
                None => return self.string_with_lone_surrogate(start),
            }
        }
    }

    /// One escape, or two that are the halves of one character; `None` for a lone half.
    fn escaped_char(&mut self) -> Result<Option<char>, JsonError> {
        let unit = self.escape()?;
        let high_half = (0xd800..0xdc00).contains(&unit);
        if high_half && self.text.as_bytes()[self.at..].starts_with(b"\\u") {
            let low = self.escape()?;
            return Ok(char::decode_utf16([unit, low]).next().and_then(Result::ok));
        }
        Ok(char::from_u32(u32::from(unit)))
    }

    /// A string that UTF-8 cannot hold, read from its first character at `start` on.
    fn string_with_lone_surrogate(&mut self, start: usize) -> Result<Text, JsonError> {
        self.at = start;
        let mut units = Vec::new();
        loop {
            let run = self.at;
            let end = self.plain_run()?;
            units.extend(self.text[run..self.at].encode_utf16());
            if end == b'"' {
                self.at += 1;
                return Ok(Text::from_utf16(units));
            }
            units.push(self.escape()?);
        }
    }

    /// One escape, as the UTF-16 unit that it stands for.
    fn escape(&mut self) -> Result<u16, JsonError> {
        self.at += 1;
        let unit = match self.peek() {
            Some(b'"') => 0x22,
            Some(b'\\') => 0x5c,
            Some(b'/') => 0x2f,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => 0x0a,
            Some(b'r') => 0x0d,
            Some(b't') => 0x09,
            Some(b'u') => return self.unicode_escape(),
            Some(_) | None => return Err(self.error("unknown escape")),
        };
        self.at += 1;
        Ok(unit)
    }

    fn unicode_escape(&mut self) -> Result<u16, JsonError> {
        self.at += 1;
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let valid = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let Some(digits) = valid.and_then(|digits| std::str::from_utf8(digits).ok()) else {
            return Err(self.error("expected four hexadecimal digits"));
        };
        let unit = u16::from_str_radix(digits, 16).map_err(|_| self.error("expected four hexadecimal digits"))?;
        self.at += 4;
        Ok(unit)
    }
}
