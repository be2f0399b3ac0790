//! A request's JSON body: parsed once, checked against its route's schema, then read into a typed struct.

use nylorun_domain::check::{Path, ProblemCode, Problems};
use nylorun_domain::hash::sha256_hex;
use nylorun_domain::json::{self, Json, JsonError, Text, Value};

use crate::raw;

/// A body whose schema was checked. Readers take it as given that required members are there and of their type.
#[derive(Clone, Debug)]
pub struct Body {
    raw: Json,
    value: Value,
}

impl Body {
    /// A body from its document. Check its schema before reading it.
    pub fn new(raw: Json) -> Self {
        let value = raw.value();
        Self { raw, value }
    }

    /// Parses a document, once.
    ///
    /// # Errors
    /// It is no JSON, or nested too deeply.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let value = json::parse(text)?;
        Ok(Self { raw: Json::from_trusted(text.trim_matches([' ', '\t', '\n', '\r'])), value })
    }

    /// The document as it was sent.
    pub fn raw(&self) -> &Json {
        &self.raw
    }

    /// The document, parsed.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The member `name`, verbatim.
    pub fn json(&self, name: &str) -> Option<Json> {
        raw::member(&self.raw, name)
    }

    /// A required text.
    pub fn text(&self, name: &str) -> Result<String, Problems> {
        text_of(&self.value, name)
    }

    /// A text that may be absent.
    pub fn optional_text(&self, name: &str) -> Option<String> {
        self.value.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    /// SHA-256 of the canonical form without the members `left_out`: what tells two bodies apart (api 1.9).
    pub fn identity(&self, left_out: &[&str]) -> String {
        let kept = self.value.as_object().unwrap_or_default().iter();
        let kept = kept.filter(|(name, _)| !left_out.iter().any(|out| name == out)).cloned();
        sha256_hex(Value::Object(kept.collect()).canonical().as_bytes())
    }
}

/// A required text of an object.
pub(crate) fn text_of(object: &Value, name: &str) -> Result<String, Problems> {
    object.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| missing(name))
}

/// A required text of an object, lone surrogates kept.
pub(crate) fn content_of(object: &Value, name: &str) -> Result<Text, Problems> {
    object.get(name).and_then(Value::as_text).cloned().ok_or_else(|| missing(name))
}

/// The problem of a member that is not there, or not of its type.
pub(crate) fn missing(name: &str) -> Problems {
    Problems::one(ProblemCode::InvalidType, &Path::ROOT.name(name), "required")
}

/// The strings of an array member, when it is there.
pub(crate) fn texts_of(object: &Value, name: &str) -> Option<Vec<String>> {
    let items = object.get(name)?.as_array()?;
    Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
