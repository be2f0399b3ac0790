//! What is wrong with a document.

use std::fmt;

use super::{Path, Step};
use crate::id::IdError;
use crate::json::Value;

/// How many problems of one document are kept. A document with more is told so in the last one, so that no answer
/// grows with what is wrong in a request.
pub const MAX_PROBLEMS: usize = 100;

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

/// Why a parser refuses a string, without its place: what [`Place::parsed`](super::Place::parsed) reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Its kind.
    pub code: ProblemCode,
    /// What is wrong and what would be right, in words.
    pub message: String,
}

impl From<&str> for Complaint {
    fn from(message: &str) -> Self {
        Self { code: ProblemCode::InvalidFormat, message: message.to_owned() }
    }
}

impl From<String> for Complaint {
    fn from(message: String) -> Self {
        Self { code: ProblemCode::InvalidFormat, message }
    }
}

impl From<IdError> for Complaint {
    fn from(error: IdError) -> Self {
        let code = match error {
            IdError::Empty => ProblemCode::TooSmall,
            IdError::TooLong => ProblemCode::TooBig,
            IdError::ControlCharacter => ProblemCode::InvalidFormat,
        };
        Self { code, message: error.as_str().to_owned() }
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

impl fmt::Display for Problem {
    /// `capabilities.0.id: must not be empty`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.path.iter().enumerate() {
            write!(f, "{}{step}", if at > 0 { "." } else { "" })?;
        }
        write!(f, "{}{}", if self.path.is_empty() { "" } else { ": " }, self.message)
    }
}

/// All problems of one document, in the order in which they were found: the first [`MAX_PROBLEMS`], and how many more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// Adds a problem at `path`.
    pub fn add(&mut self, code: ProblemCode, path: &Path<'_>, message: impl Into<String>) {
        if self.list.len() < MAX_PROBLEMS {
            self.list.push(Problem { code, path: path.steps(), message: message.into() });
        } else {
            self.more += 1;
        }
    }

    /// Adds a problem that is made already.
    pub fn push(&mut self, problem: Problem) {
        if self.list.len() < MAX_PROBLEMS {
            self.list.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// Adds the problems of another part of the same document.
    pub fn append(&mut self, other: Self) {
        let room = MAX_PROBLEMS - self.list.len();
        self.more += other.more + other.list.len().saturating_sub(room);
        self.list.extend(other.list.into_iter().take(room));
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are, those that were not kept included.
    pub fn len(&self) -> usize {
        self.list.len() + self.more
    }

    /// The problems that were kept.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    /// One problem alone.
    pub fn one(code: ProblemCode, path: &Path<'_>, message: impl Into<String>) -> Self {
        let mut problems = Self::default();
        problems.add(code, path, message);
        problems
    }

    /// `value`, when there is no problem.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }

    /// The JSON list that an answer's `message` holds: `[{code, path, message}]`.
    pub fn to_json_text(&self) -> String {
        let mut items: Vec<Value> = self.list.iter().map(problem_json).collect();
        if self.more > 0 {
            let message = format!("{} more problems are not listed", self.more);
            items.push(problem_json(&Problem { code: ProblemCode::Custom, path: Vec::new(), message }));
        }
        Value::Array(items).to_json().as_str().to_owned()
    }
}

impl fmt::Display for Problems {
    /// One line a problem.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.list.iter().enumerate() {
            write!(f, "{}{problem}", if at > 0 { "\n" } else { "" })?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

fn problem_json(problem: &Problem) -> Value {
    let path = problem.path.iter().map(|step| match step {
        Step::Name(name) => Value::from(name.as_str()),
        Step::Index(index) => Value::from(i64::try_from(*index).unwrap_or(i64::MAX)),
    });
    Value::object([
        ("code", Value::from(problem.code.as_str())),
        ("path", Value::Array(path.collect())),
        ("message", Value::from(problem.message.as_str())),
    ])
}
