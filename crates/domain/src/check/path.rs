//! Where a reader stands in a document.

use std::fmt;

use crate::json::{element_of, member_of};

/// How many characters of a name stand in a path.
const MAX_NAME: usize = 512;

/// One step of a path into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A member of an object.
    Name(String),
    /// An element of an array.
    Index(usize),
}

impl From<&str> for Step {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Index(index) => write!(f, "{index}"),
        }
    }
}

/// Where a reader stands in a document. A linked list on the stack: nothing is allocated until there is a problem.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a>(Option<(&'a Path<'a>, PathStep<'a>)>);

#[derive(Clone, Copy, Debug)]
enum PathStep<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// The document itself.
    pub const ROOT: Path<'static> = Path(None);

    /// The member `name` of what this path names.
    pub fn name(&'a self, name: &'a str) -> Path<'a> {
        Path(Some((self, PathStep::Name(name))))
    }

    /// The element `index` of what this path names.
    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path(Some((self, PathStep::Index(index))))
    }

    /// The text of what this path names in the document that `source` is the text of.
    pub(super) fn text_in<'t>(&self, source: &'t str) -> Option<&'t str> {
        match self.0 {
            None => Some(source.trim_matches([' ', '\t', '\n', '\r'])),
            Some((parent, PathStep::Name(name))) => member_of(parent.text_in(source)?, name),
            Some((parent, PathStep::Index(index))) => element_of(parent.text_in(source)?, index),
        }
    }

    /// The steps from the document's root. Very long names are cut, since a path stands in every problem below it.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = self;
        while let Path(Some((parent, step))) = at {
            steps.push(match step {
                PathStep::Name(name) => Step::Name(shortened(name, MAX_NAME)),
                PathStep::Index(index) => Step::from(*index),
            });
            at = parent;
        }
        steps.reverse();
        steps
    }
}

/// The first `shown` characters of `text`, and an ellipsis where that is not all of it.
pub(super) fn shortened(text: &str, shown: usize) -> String {
    match text.char_indices().nth(shown) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
