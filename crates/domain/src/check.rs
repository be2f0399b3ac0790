//! What is wrong with a caller's document: every problem at once, each with its path (`decisions.md`, Validation answers).

use crate::json::Value;

/// Kinds of problem, as clients of the existing implementation know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemCode {
    /// Missing, or of another JSON type.
    InvalidType,
    /// A member that the schema does not have.
    UnrecognizedKeys,
    /// Shorter, smaller or fewer than allowed.
    TooSmall,
    /// Longer, larger or more than allowed.
    TooBig,
    /// A string that does not follow its grammar.
    InvalidFormat,
    /// Not one of the values allowed.
    InvalidValue,
    /// None, or more than one, of alternatives.
    InvalidUnion,
    /// A rule over several members.
    Custom,
}

impl ProblemCode {
    /// The code as the wire has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidType => "invalid_type",
            Self::UnrecognizedKeys => "unrecognized_keys",
            Self::TooSmall => "too_small",
            Self::TooBig => "too_big",
            Self::InvalidFormat => "invalid_format",
            Self::InvalidValue => "invalid_value",
            Self::InvalidUnion => "invalid_union",
            Self::Custom => "custom",
        }
    }
}

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

/// One problem in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its kind.
    pub code: ProblemCode,
    /// Where it is; empty for the document itself.
    pub path: Vec<Step>,
    /// What is wrong and what would be right, in words.
    pub message: String,
}

/// All problems of one document, in document order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Adds a problem at `path`.
    pub fn add(&mut self, code: ProblemCode, path: &Path<'_>, message: impl Into<String>) {
        self.0.push(Problem { code, path: path.steps(), message: message.into() });
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The problems.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// One problem alone.
    pub fn one(code: ProblemCode, path: &Path<'_>, message: impl Into<String>) -> Self {
        let mut problems = Self::default();
        problems.add(code, path, message);
        problems
    }

    /// The JSON list that an answer's `message` holds: `[{code, path, message}]`.
    pub fn to_json_text(&self) -> String {
        let items = self.0.iter().map(|problem| {
            let path = problem.path.iter().map(|step| match step {
                Step::Name(name) => Value::from(name.as_str()),
                Step::Index(index) => Value::from(i64::try_from(*index).unwrap_or(i64::MAX)),
            });
            Value::object([
                ("code", Value::from(problem.code.as_str())),
                ("path", Value::Array(path.collect())),
                ("message", Value::from(problem.message.as_str())),
            ])
        });
        Value::Array(items.collect()).to_json().as_str().to_owned()
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

    /// The steps from the document's root.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = self;
        while let Path(Some((parent, step))) = at {
            steps.push(match step {
                PathStep::Name(name) => Step::from(*name),
                PathStep::Index(index) => Step::from(*index),
            });
            at = parent;
        }
        steps.reverse();
        steps
    }
}
