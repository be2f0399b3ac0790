//! A caller's document: its text and what it says.

use super::place::{Place, read_document};
use super::{Path, Problems};
use crate::json::{JsonError, Value, parse};

/// A parsed document beside its text, so that [`Place::raw`] can give parts of it exactly as they were written.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    text: &'t str,
    value: Value,
}

impl<'t> Document<'t> {
    /// Parses a body.
    pub fn parse(text: &'t str) -> Result<Self, JsonError> {
        Ok(Self { text, value: parse(text)? })
    }

    /// What it says.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// As [`check`](super::check), for this document.
    pub fn check<T>(&self, read: impl FnOnce(Place<'_>) -> Option<T>) -> Result<T, Problems> {
        read_document(&self.value, Some(self.text), Path::ROOT, read)
    }
}
