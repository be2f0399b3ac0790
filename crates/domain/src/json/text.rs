//! A JSON string: any sequence of UTF-16 code units.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// A JSON string, lone surrogates included.
///
/// Two equal strings have one representation: UTF-16 units are kept only where UTF-8 cannot hold the text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Utf8(String),
    /// Holds at least one lone surrogate.
    Utf16(Vec<u16>),
}

impl Text {
    /// The text of these UTF-16 code units.
    pub fn from_utf16(units: Vec<u16>) -> Self {
        match String::from_utf16(&units) {
            Ok(text) => Self(Repr::Utf8(text)),
            Err(_) => Self(Repr::Utf16(units)),
        }
    }

    /// The pieces joined. A surrogate at the end of one and its other half at the beginning of the next become one
    /// character.
    pub fn concat<'a>(pieces: impl IntoIterator<Item = &'a Text>) -> Self {
        let pieces: Vec<&Text> = pieces.into_iter().collect();
        if let Some(plain) = pieces.iter().map(|piece| piece.as_str()).collect::<Option<String>>() {
            return Self(Repr::Utf8(plain));
        }
        let mut units = Vec::new();
        for piece in pieces {
            match &piece.0 {
                Repr::Utf8(text) => units.extend(text.encode_utf16()),
                Repr::Utf16(more) => units.extend_from_slice(more),
            }
        }
        Self::from_utf16(units)
    }

    /// The text as UTF-8, or `None` when it holds a lone surrogate.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::Utf8(text) => Some(text),
            Repr::Utf16(_) => None,
        }
    }

    /// The text as UTF-8, or `None` when it holds a lone surrogate.
    pub fn into_string(self) -> Option<String> {
        match self.0 {
            Repr::Utf8(text) => Some(text),
            Repr::Utf16(_) => None,
        }
    }

    /// The text with each lone surrogate replaced by U+FFFD: what a provider, a shell or a terminal gets.
    pub fn lossy(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Utf8(text) => Cow::Borrowed(text),
            Repr::Utf16(units) => Cow::Owned(String::from_utf16_lossy(units)),
        }
    }

    /// Length in UTF-16 code units, the unit in which the specification counts characters.
    pub fn utf16_len(&self) -> usize {
        match &self.0 {
            Repr::Utf8(text) => utf16_len(text),
            Repr::Utf16(units) => units.len(),
        }
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Repr::Utf8(text) => text.is_empty(),
            Repr::Utf16(units) => units.is_empty(),
        }
    }

    /// Order by UTF-16 code units, as canonical JSON sorts object keys (RFC 8785, 3.2.3).
    pub fn cmp_utf16(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Utf8(a), Repr::Utf8(b)) => a.encode_utf16().cmp(b.encode_utf16()),
            (Repr::Utf8(a), Repr::Utf16(b)) => a.encode_utf16().cmp(b.iter().copied()),
            (Repr::Utf16(a), Repr::Utf8(b)) => a.iter().copied().cmp(b.encode_utf16()),
            (Repr::Utf16(a), Repr::Utf16(b)) => a.cmp(b),
        }
    }

    /// Appends the text as a JSON string literal, escaped exactly as `JSON.stringify` does.
    pub fn write_json(&self, out: &mut String) {
        match &self.0 {
            Repr::Utf8(text) => write_quoted(text, out),
            Repr::Utf16(units) => {
                out.push('"');
                for unit in char::decode_utf16(units.iter().copied()) {
                    match unit {
                        Ok(c) => push_escaped(c, out),
                        Err(lone) => push_hex(lone.unpaired_surrogate(), out),
                    }
                }
                out.push('"');
            }
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Repr::Utf8(text.to_owned()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Repr::Utf8(text))
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(*other)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write_json(&mut out);
        f.write_str(&out)
    }
}

/// Length of a string in UTF-16 code units.
pub fn utf16_len(text: &str) -> usize {
    // Every byte but a continuation begins a character; those of four bytes are two units.
    text.bytes().map(|byte| usize::from(byte & 0xc0 != 0x80) + usize::from(byte >= 0xf0)).sum()
}

/// The longest beginning of `text` that has at most `units` UTF-16 code units.
pub fn utf16_prefix(text: &str, units: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, c)| {
        taken += c.len_utf16();
        taken > units
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Appends `text` as a JSON string literal.
pub fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            out.push_str(&text[plain_from..at]);
            push_escaped(char::from(byte), out);
            plain_from = at + 1;
        }
    }
    out.push_str(&text[plain_from..]);
    out.push('"');
}

fn push_escaped(c: char, out: &mut String) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\u{c}' => out.push_str("\\f"),
        '\r' => out.push_str("\\r"),
        control if u32::from(control) < 0x20 => push_hex(control as u16, out),
        other => out.push(other),
    }
}

fn push_hex(unit: u16, out: &mut String) {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    out.push_str("\\u");
    for shift in [12, 8, 4, 0] {
        out.push(HEX[usize::from((unit >> shift) & 0xf)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_pieces_joins_surrogate_halves() {
        let high = Text::from_utf16(vec![0x61, 0xd834]);
        let low = Text::from_utf16(vec![0xdd1e]);
        assert_eq!(Text::concat([&high, &low]), Text::from("a𝄞"));
        assert_eq!(Text::concat([&low, &high]), Text::from_utf16(vec![0xdd1e, 0x61, 0xd834]));
        assert_eq!(Text::concat([]), Text::from(""));
    }
}
