//! A caller's document: its text and what it says.

use super::place::{Place, read_document};
use super::{Path, Problems, Step};
use crate::json::{JsonError, Value, element_of, member_of, parse};

/// A parsed document beside its text, so that [`Place::raw`] can give parts of it exactly as they were written.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    text: &'t str,
    value: Value,
}

/// What stands at a path of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'t> {
    /// The line on which it begins, from 1; of a member that is missing, that of what lacks it.
    pub line: usize,
    /// Its text; none where nothing stands there.
    pub value: Option<&'t str>,
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

    /// What stands at the path of a problem. Takes time in proportion to the document: for what a person is told.
    pub fn find(&self, path: &[Step]) -> Found<'t> {
        let mut text = Path::ROOT.text_in(self.text).unwrap_or(self.text);
        let mut value = Some(text);
        for step in path {
            value = match step {
                Step::Name(name) => member_of(text, name),
                Step::Index(index) => element_of(text, *index),
            };
            let Some(inner) = value else { break };
            text = inner;
        }
        let before = text.as_ptr().addr() - self.text.as_ptr().addr();
        let line = 1 + self.text.get(..before).unwrap_or_default().matches('\n').count();
        Found { line, value }
    }

    /// As [`check`](super::check), for this document.
    pub fn check<T>(&self, read: impl FnOnce(Place<'_>) -> Option<T>) -> Result<T, Problems> {
        read_document(&self.value, Some(self.text), Path::ROOT, read)
    }
}
