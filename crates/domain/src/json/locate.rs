//! Finding a part of a document in its text, so that it can be kept as it was written.
//!
//! The text must be valid JSON; in other text nothing is found, or a wrong part, but nothing breaks.

use super::Text;
use super::parse::unquote;

/// The text of the member `name` of the object that `object` is: the last one of that name, as the parser takes it.
pub fn member_of<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    let mut cursor = Cursor::enter(object, b'{')?;
    let mut found = None;
    while let Some(key) = cursor.value() {
        cursor.skip(b':')?;
        let value = cursor.value()?;
        if is_name(key, name) {
            found = Some(value);
        }
        if cursor.skip(b',').is_none() {
            break;
        }
    }
    found
}

/// Whether this literal is this name. Most literals hold no escape and are compared as they stand.
fn is_name(literal: &str, name: &str) -> bool {
    match literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => plain == name,
        Some(_) | None => unquote(literal).is_some_and(|literal| literal == *name),
    }
}

/// The members of the object that `object` is, in order, each with its text; `None` when it is no object. Equal names
/// stand more than once.
pub fn members_of(object: &str) -> Option<Vec<(Text, &str)>> {
    let mut cursor = Cursor::enter(object, b'{')?;
    let mut members = Vec::new();
    if cursor.skip(b'}').is_some() {
        return Some(members);
    }
    loop {
        let name = unquote(cursor.value()?)?;
        cursor.skip(b':')?;
        members.push((name, cursor.value()?));
        if cursor.skip(b',').is_none() {
            return cursor.skip(b'}').map(|()| members);
        }
    }
}

/// The texts of the elements of the array that `array` is; `None` when it is no array.
pub fn elements_of(array: &str) -> Option<Vec<&str>> {
    let mut cursor = Cursor::enter(array, b'[')?;
    let mut elements = Vec::new();
    if cursor.skip(b']').is_some() {
        return Some(elements);
    }
    loop {
        elements.push(cursor.value()?);
        if cursor.skip(b',').is_none() {
            return cursor.skip(b']').map(|()| elements);
        }
    }
}

/// The text of the element `index` of the array that `array` is.
pub fn element_of(array: &str, index: usize) -> Option<&str> {
    let mut cursor = Cursor::enter(array, b'[')?;
    for _ in 0..index {
        cursor.value()?;
        cursor.skip(b',')?;
    }
    cursor.value()
}

struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    /// Stands behind the bracket that opens `text`.
    fn enter(text: &'t str, bracket: u8) -> Option<Self> {
        let mut cursor = Self { text, at: 0 };
        cursor.skip(bracket)?;
        Some(cursor)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Moves over white space and this byte, when it is what follows.
    fn skip(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        if self.peek()? != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }

    /// Moves over one value and gives its text; `None` where none begins.
    fn value(&mut self) -> Option<&'t str> {
        self.skip_space();
        let start = self.at;
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => self.nested(),
            _scalar => {
                while !matches!(self.peek(), None | Some(b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')) {
                    self.at += 1;
                }
            }
        }
        self.text.get(start..self.at).filter(|text| !text.is_empty())
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return;
            }
        }
    }

    fn nested(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _other => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{elements_of, members_of};

    #[test]
    fn all_parts_of_a_document_are_found_as_they_were_written() {
        let members = members_of(r#" { "a" : [1, {"b":"}"}] ,"\u0061":"\ud800", "c":{ } } "#).unwrap();
        let members: Vec<_> = members.iter().map(|(name, text)| (name.lossy(), *text)).collect();
        let expected = [("a", r#"[1, {"b":"}"}]"#), ("a", r#""\ud800""#), ("c", "{ }")];
        assert_eq!(members, expected.map(|(name, text)| (name.into(), text)));
        assert_eq!(elements_of(r#"[ 1.0 ,"]", [2] ]"#), Some(vec!["1.0", "\"]\"", "[2]"]));
    }

    #[test]
    fn an_empty_document_has_no_parts_and_another_kind_has_none_to_give() {
        assert_eq!((members_of("{ }"), elements_of("[ ]")), (Some(vec![]), Some(vec![])));
        assert_eq!((members_of("[]"), elements_of("{}"), members_of("1")), (None, None, None));
    }
}
