//! How the shapes of the Harness API are printed and read: closed objects, content kept as its author wrote it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nylorun_domain::id::{AgentId, EffectId, SessionId, TenantId, TurnId};
use nylorun_domain::json::{Document, Json, Text, Value, elements_of, members_of};

use crate::writer::Object;

/// Why a frame or a shape is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where: names of members, joined by dots. Empty for the whole.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
}

impl Malformed {
    /// Something is wrong with the whole.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    /// The same, of the member `name` of what is being read.
    #[must_use]
    pub fn within(self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{name}.{}", self.path) };
        Self { path, ..self }
    }
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, problem } = self;
        if path.is_empty() { f.write_str(problem) } else { write!(f, "{path} {problem}") }
    }
}

impl std::error::Error for Malformed {}

/// Something that has a form in JSON. What [`Shape::read`] is given is valid JSON.
pub trait Shape: Sized {
    /// Prints it.
    fn write(&self, out: &mut String);
    /// Reads what [`Shape::write`] prints, and nothing else.
    ///
    /// # Errors
    /// It has another form.
    fn read(text: &str) -> Result<Self, Malformed>;
}

/// A shape as a document.
pub fn encode(shape: &impl Shape) -> Json {
    let mut out = String::new();
    shape.write(&mut out);
    Json::from_trusted(out)
}

/// Reads a document, strictly.
///
/// # Errors
/// It has another form.
pub fn decode<S: Shape>(document: &Json) -> Result<S, Malformed> {
    Document::parse_envelope(document.as_str()).map_err(|error| Malformed::new(format!("is no JSON: {error}")))?;
    S::read(document.as_str())
}

/// The members of a closed object that is being read.
pub(super) struct Fields<'t>(Vec<(Text, &'t str)>);

impl<'t> Fields<'t> {
    /// The members of this object. Of equal names the last counts, as everywhere.
    pub(super) fn of(text: &'t str) -> Result<Self, Malformed> {
        members_of(text).map(Self).ok_or_else(|| Malformed::new("must be an object"))
    }

    /// Takes out the text of a member.
    pub(super) fn take(&mut self, name: &str) -> Option<&'t str> {
        let found = self.0.iter().rev().find(|(key, _)| *key == *name).map(|(_, text)| *text);
        self.0.retain(|(key, _)| *key != *name);
        found
    }

    /// Takes out a member that must be there, or may be absent: its type says which.
    pub(super) fn get<M: Member>(&mut self, name: &str) -> Result<M, Malformed> {
        M::take(self, name)
    }

    /// Refuses what is left.
    pub(super) fn end(self) -> Result<(), Malformed> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Malformed::new("is not a member").within(&name.lossy())),
        }
    }
}

/// A member of an object: a shape, or an optional one.
pub(super) trait Member: Sized {
    /// Prints the member, if it is there.
    fn put(&self, object: &mut Object<'_>, name: &str);
    /// Takes it out of what is being read.
    fn take(fields: &mut Fields<'_>, name: &str) -> Result<Self, Malformed>;
}

impl<S: Shape> Member for S {
    fn put(&self, object: &mut Object<'_>, name: &str) {
        object.printed(name, |out| self.write(out));
    }

    fn take(fields: &mut Fields<'_>, name: &str) -> Result<Self, Malformed> {
        let text = fields.take(name).ok_or_else(|| Malformed::new("is missing").within(name))?;
        S::read(text).map_err(|error| error.within(name))
    }
}

impl<S: Shape> Member for Option<S> {
    fn put(&self, object: &mut Object<'_>, name: &str) {
        if let Some(shape) = self {
            shape.put(object, name);
        }
    }

    fn take(fields: &mut Fields<'_>, name: &str) -> Result<Self, Malformed> {
        fields.take(name).map(|text| S::read(text).map_err(|error| error.within(name))).transpose()
    }
}

/// Closed objects: a struct with its form, `field: Type = "member"`.
macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $member:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)+ }

        impl $crate::harness::shape::Shape for $name {
            fn write(&self, out: &mut String) {
                let mut object = $crate::writer::Object::open(out);
                $($crate::harness::shape::Member::put(&self.$field, &mut object, $member);)+
                object.close();
            }

            fn read(text: &str) -> Result<Self, $crate::harness::shape::Malformed> {
                let mut fields = $crate::harness::shape::Fields::of(text)?;
                let read = Self { $($field: fields.get($member)?,)+ };
                fields.end()?;
                Ok(read)
            }
        }
    )+};
}

/// Closed sets of words, `Variant = "word"`.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The wire's word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The one of this word.
            pub fn from_wire(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }

        impl $crate::harness::shape::Shape for $name {
            fn write(&self, out: &mut String) {
                $crate::harness::shape::Shape::write(&self.as_str().to_owned(), out);
            }

            fn read(text: &str) -> Result<Self, $crate::harness::shape::Malformed> {
                $crate::harness::shape::read_word(text, Self::from_wire)
            }
        }
    )+};
}

pub(super) use {shapes, words};

/// A word of a closed set.
pub(super) fn read_word<T>(text: &str, from_wire: impl Fn(&str) -> Option<T>) -> Result<T, Malformed> {
    let word = String::read(text)?;
    from_wire(&word).ok_or_else(|| Malformed::new(format!("may not be {word:?}")))
}

impl Shape for String {
    fn write(&self, out: &mut String) {
        Value::from(self.as_str()).write(out);
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let text = document(text)?.root().as_str().map(Cow::into_owned);
        text.ok_or_else(|| Malformed::new("must be a text without lone surrogates"))
    }
}

impl Shape for bool {
    fn write(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Malformed::new("must be true or false")),
        }
    }
}

macro_rules! integers {
    ($($type:ty),+) => {$(
        impl Shape for $type {
            fn write(&self, out: &mut String) {
                out.push_str(&self.to_string());
            }

            fn read(text: &str) -> Result<Self, Malformed> {
                text.parse().map_err(|_| Malformed::new("must be a whole number in its range"))
            }
        }
    )+};
}

integers!(i64, u32, u64, usize);

/// Content: any JSON, byte for byte.
impl Shape for Json {
    fn write(&self, out: &mut String) {
        out.push_str(self.as_str());
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        Json::parse(text).map_err(|error| Malformed::new(error.to_string()))
    }
}

/// Content that is an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonObject(pub Json);

impl Shape for JsonObject {
    fn write(&self, out: &mut String) {
        self.0.write(out);
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        if !text.starts_with('{') {
            return Err(Malformed::new("must be an object"));
        }
        // It may carry content, which nests as deep as content may.
        document(text).map(|_| Self(Json::from_trusted(text)))
    }
}

/// A member that is always there, and may be `null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nullable<T>(pub Option<T>);

impl<S: Shape> Shape for Nullable<S> {
    fn write(&self, out: &mut String) {
        match &self.0 {
            Some(shape) => shape.write(out),
            None => out.push_str("null"),
        }
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        match text {
            "null" => Ok(Self(None)),
            text => S::read(text).map(|shape| Self(Some(shape))),
        }
    }
}

/// A flag that is `true` or absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set;

impl Shape for Set {
    fn write(&self, out: &mut String) {
        out.push_str("true");
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        if text == "true" { Ok(Self) } else { Err(Malformed::new("must be true, or absent")) }
    }
}

/// `{}`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nothing;

impl Shape for Nothing {
    fn write(&self, out: &mut String) {
        out.push_str("{}");
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        Fields::of(text)?.end().map(|()| Self)
    }
}

impl<S: Shape> Shape for Vec<S> {
    fn write(&self, out: &mut String) {
        out.push('[');
        for (at, item) in self.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            item.write(out);
        }
        out.push(']');
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let items = elements_of(text).ok_or_else(|| Malformed::new("must be an array"))?;
        let read = items
            .into_iter()
            .enumerate()
            .map(|(at, item)| S::read(item).map_err(|error| error.within(&at.to_string())));
        read.collect()
    }
}

/// Texts by name.
impl Shape for BTreeMap<String, String> {
    fn write(&self, out: &mut String) {
        Value::object(self.iter().map(|(name, text)| (name.as_str(), Value::from(text.as_str())))).write(out);
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let members = members_of(text).ok_or_else(|| Malformed::new("must be an object"))?;
        let read = members.into_iter().map(|(name, text)| {
            let name = name.as_str().ok_or_else(|| Malformed::new("has a name with a lone surrogate"))?;
            Ok((name.to_owned(), String::read(text).map_err(|error| error.within(name))?))
        });
        read.collect()
    }
}

macro_rules! ids {
    ($($type:ident),+) => {$(
        impl Shape for $type {
            fn write(&self, out: &mut String) {
                Value::from(self.as_str()).write(out);
            }

            fn read(text: &str) -> Result<Self, Malformed> {
                $type::parse(&String::read(text)?).map_err(|error| Malformed::new(error.as_str()))
            }
        }
    )+};
}

ids!(AgentId, EffectId, SessionId, TenantId, TurnId);

/// Domain types that have a form in this crate already: `Type: print, read`.
macro_rules! valued {
    ($($type:ty: $print:path, $read:path;)+) => {$(
        impl $crate::harness::shape::Shape for $type {
            fn write(&self, out: &mut String) {
                $print(self).write(out);
            }

            fn read(text: &str) -> Result<Self, $crate::harness::shape::Malformed> {
                $read($crate::harness::shape::document(text)?.root())
                    .map_err(|error| $crate::harness::shape::Malformed::new(error.to_string()))
            }
        }
    )+};
}
pub(super) use valued;

/// A document that is read in its place.
pub(super) fn document(text: &str) -> Result<Document<'_>, Malformed> {
    Document::parse_envelope(text).map_err(|error| Malformed::new(error.to_string()))
}
