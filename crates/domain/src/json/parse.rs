//! The parser: RFC 8259, with lone surrogates allowed in escapes, the last of equal names winning, and bounded depth.

use std::collections::HashMap;

use super::{Number, Text, Value};

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
    parse_within(text, MAX_DEPTH)
}

/// Parses a document that carries others, each of which may nest [`MAX_DEPTH`] levels deep.
pub fn parse_envelope(text: &str) -> Result<Value, JsonError> {
    parse_within(text, MAX_DEPTH + ENVELOPE_DEPTH)
}

fn parse_within(text: &str, max_depth: usize) -> Result<Value, JsonError> {
    let mut parser = Parser { text, at: 0, max_depth };
    parser.skip_space();
    let value = parser.value(0)?;
    parser.skip_space();
    if parser.at < text.len() {
        return Err(parser.error("unexpected text after the value"));
    }
    Ok(value)
}

/// The text of a JSON string literal.
pub(super) fn unquote(literal: &str) -> Option<Text> {
    literal.starts_with('"').then(|| Parser { text: literal, at: 0, max_depth: MAX_DEPTH }.string().ok()).flatten()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    max_depth: usize,
}

impl<'a> Parser<'a> {
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

    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.error("unexpected character")),
            None => Err(self.error("unexpected end")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("unexpected character"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn enter(&self, depth: usize) -> Result<(), JsonError> {
        if depth > self.max_depth { Err(self.error("nested deeper than 128 levels")) } else { Ok(()) }
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.enter(depth)?;
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.skip_space();
            items.push(self.value(depth)?);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                Some(_) | None => return Err(self.error("expected ',' or ']'")),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.enter(depth)?;
        self.at += 1;
        let mut members = Members::default();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(Vec::new()));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a name"));
            }
            let name = self.string()?;
            self.skip_space();
            self.expect(b':', "expected ':'")?;
            self.skip_space();
            let value = self.value(depth)?;
            members.put(name, value);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(members.list));
                }
                Some(_) | None => return Err(self.error("expected ',' or '}'")),
            }
        }
    }

    fn number(&mut self) -> Result<Value, JsonError> {
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
        Ok(Value::Number(Number::from_raw(&self.text[start..self.at])))
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

/// Object members while they are read: the last of equal names wins, in the place of the first.
#[derive(Default)]
struct Members {
    list: Vec<(Text, Value)>,
    /// Positions by name, kept once the object is large enough for a scan to cost more.
    index: HashMap<Text, usize>,
}

impl Members {
    const SCAN_UP_TO: usize = 16;

    fn put(&mut self, name: Text, value: Value) {
        match self.position(&name) {
            Some(at) => self.list[at].1 = value,
            None => {
                if self.list.len() >= Self::SCAN_UP_TO {
                    self.index.insert(name.clone(), self.list.len());
                }
                self.list.push((name, value));
            }
        }
    }

    fn position(&mut self, name: &Text) -> Option<usize> {
        if self.list.len() < Self::SCAN_UP_TO {
            return self.list.iter().position(|(key, _)| key == name);
        }
        if self.index.is_empty() {
            self.index = self.list.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
        }
        self.index.get(name).copied()
    }
}
