//! A parsed document that is looked into where it stands. Nothing is made of its parts before somebody asks for it, so
//! that a form of many small members is read without a value for each.

use std::borrow::Cow;
use std::collections::HashMap;

use super::parse::{Depth, parts, unquote};
use super::{JsonError, Number, Text, Value};

/// A JSON document that was parsed.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    text: &'t str,
    /// At least one.
    parts: Vec<Part>,
}

impl<'t> Document<'t> {
    /// Parses one JSON document; white space around it is allowed.
    pub fn parse(text: &'t str) -> Result<Self, JsonError> {
        Ok(Self { text, parts: parts(text, Depth::Content)? })
    }

    /// Parses a document that carries others, each of which may nest [`MAX_DEPTH`](super::MAX_DEPTH) levels deep.
    pub fn parse_envelope(text: &'t str) -> Result<Self, JsonError> {
        Ok(Self { text, parts: parts(text, Depth::Envelope)? })
    }

    /// The value that the document is.
    pub fn root(&self) -> Node<'_> {
        Node { document: self, at: 0 }
    }
}

/// A value of a [`Document`], in its place there.
#[derive(Clone, Copy, Debug)]
pub struct Node<'d> {
    document: &'d Document<'d>,
    /// Which part of the document.
    at: u32,
}

impl<'d> Node<'d> {
    fn part(self) -> Part {
        self.document.parts[self.at as usize]
    }

    /// The value as its author wrote it.
    pub fn as_written(self) -> &'d str {
        let Part { start, end, .. } = self.part();
        &self.document.text[start as usize..end as usize]
    }

    /// The member of this name, when this is an object that has it: the last of equal names.
    pub fn get(self, name: &str) -> Option<Node<'d>> {
        if self.part().kind != Kind::Object {
            return None;
        }
        let (mut at, end) = (self.at + 1, self.part().next);
        let mut found = None;
        while at < end {
            let (key, value) = (Node { at, ..self }, Node { at: at + 1, ..self });
            if key.is(name) {
                found = Some(value.at);
            }
            at = value.part().next;
        }
        found.map(|at| Node { at, ..self })
    }

    /// Whether this is a string of this text.
    fn is(self, text: &str) -> bool {
        let Part { kind, start, end, .. } = self.part();
        let (start, end) = (start as usize, end as usize);
        match kind {
            // Most names are of another length, and are not looked at.
            Kind::Plain => {
                end - start == text.len() + 2 && self.document.text.as_bytes()[start + 1..end - 1] == *text.as_bytes()
            }
            Kind::Escaped => self.as_text().is_some_and(|own| own == *text),
            Kind::Null | Kind::True | Kind::False | Kind::Number | Kind::Array | Kind::Object => false,
        }
    }

    /// The string, when this is one.
    pub fn as_text(self) -> Option<Text> {
        match self.part().kind {
            Kind::Plain => Some(self.between_quotes().into()),
            Kind::Escaped => unquote(self.as_written()),
            Kind::Null | Kind::True | Kind::False | Kind::Number | Kind::Array | Kind::Object => None,
        }
    }

    /// The string as UTF-8, when this is a string without lone surrogates.
    pub fn as_str(self) -> Option<Cow<'d, str>> {
        match self.part().kind {
            Kind::Plain => Some(Cow::Borrowed(self.between_quotes())),
            Kind::Escaped => unquote(self.as_written())?.into_string().map(Cow::Owned),
            Kind::Null | Kind::True | Kind::False | Kind::Number | Kind::Array | Kind::Object => None,
        }
    }

    /// The boolean, when this is one.
    pub fn as_bool(self) -> Option<bool> {
        match self.part().kind {
            Kind::True => Some(true),
            Kind::False => Some(false),
            Kind::Null | Kind::Number | Kind::Plain | Kind::Escaped | Kind::Array | Kind::Object => None,
        }
    }

    /// The integer, when this is a whole number: written plainly, or one that a double holds exactly (`1.0`, `1e3`).
    pub fn as_i64(self) -> Option<i64> {
        if self.part().kind != Kind::Number {
            return None;
        }
        let raw = self.as_written();
        raw.parse().ok().or_else(|| Number::from_raw(raw).as_i64())
    }

    /// The elements, when this is an array.
    pub fn elements(self) -> Option<impl Iterator<Item = Node<'d>>> {
        (self.part().kind == Kind::Array).then(|| self.inner())
    }

    /// The members, when this is an object, each name with its value. Equal names stand more than once.
    fn members(self) -> Option<impl Iterator<Item = (Node<'d>, Node<'d>)>> {
        let mut inner = (self.part().kind == Kind::Object).then(|| self.inner())?;
        Some(std::iter::from_fn(move || Some((inner.next()?, inner.next()?))))
    }

    /// The value with all that is in it, made.
    pub fn to_value(self) -> Value {
        match self.part().kind {
            Kind::Null => Value::Null,
            Kind::True => Value::Bool(true),
            Kind::False => Value::Bool(false),
            Kind::Number => Value::Number(Number::from_raw(self.as_written())),
            Kind::Plain | Kind::Escaped => Value::String(self.as_text().unwrap_or_else(|| "".into())),
            Kind::Array => Value::Array(self.inner().map(Node::to_value).collect()),
            Kind::Object => {
                let mut members = Members::default();
                for (name, value) in self.members().into_iter().flatten() {
                    members.put(name.as_text().unwrap_or_else(|| "".into()), value.to_value());
                }
                Value::Object(members.list)
            }
        }
    }

    /// The parts of an array or an object, one after the other.
    fn inner(self) -> impl Iterator<Item = Node<'d>> {
        let (mut at, end) = (self.at + 1, self.part().next);
        std::iter::from_fn(move || {
            let node = (at < end).then_some(Node { at, ..self })?;
            at = node.part().next;
            Some(node)
        })
    }

    fn between_quotes(self) -> &'d str {
        let literal = self.as_written();
        &literal[1..literal.len() - 1]
    }
}

/// What stands at a place of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    True,
    False,
    Number,
    /// A string without escapes: its text stands between its quotation marks.
    Plain,
    /// A string with escapes.
    Escaped,
    Array,
    Object,
}

/// A value of a document, and where its text stands. An array's elements follow it; an object's members do, each name
/// before its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
    /// The part that follows this one and all that is in it.
    pub(super) next: u32,
}

/// Object members while a value is made of them: the last of equal names wins, in the place of the first.
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
