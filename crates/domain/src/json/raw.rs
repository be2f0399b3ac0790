//! Validated raw JSON text.

use std::fmt;
use std::sync::Arc;

use super::{Document, JsonError, Value, canonical, parse, value::quoted};

/// One JSON document, kept byte for byte as its author wrote it (white space around it is not kept).
///
/// Cheap to clone. Equality is of the text, not of the meaning: compare [`Json::canonical`] for that.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// Validates `text`: one JSON value, at most [`MAX_DEPTH`](super::MAX_DEPTH) levels deep.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        // Untrimmed, so that an error's place is one in the text that was given.
        Document::parse(text)?;
        Ok(Self(text.trim_matches([' ', '\t', '\n', '\r']).into()))
    }

    /// Takes text that this project itself printed, or that was validated before it was stored.
    pub fn from_trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// `null`
    pub fn null() -> Self {
        Self::from_trusted("null")
    }

    /// A JSON string of this text.
    pub fn string(text: &str) -> Self {
        Self::from_trusted(quoted(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The document, parsed.
    pub fn value(&self) -> Value {
        // The text was validated when it was made; text from a damaged database reads as null.
        parse(&self.0).unwrap_or(Value::Null)
    }

    /// The document printed canonically (RFC 8785): what is hashed and compared.
    pub fn canonical(&self) -> String {
        canonical::print(&self.value())
    }

    /// Lower-case hexadecimal SHA-256 of the canonical form.
    pub fn canonical_sha256(&self) -> String {
        crate::hash::sha256_hex(self.canonical().as_bytes())
    }
}

impl Value {
    /// The value printed canonically (RFC 8785).
    pub fn canonical(&self) -> String {
        canonical::print(self)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
