//! A value and where it stands.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use super::{Complaint, Object, Path, ProblemCode, Problems, TextRule};
use crate::json::{Json, Text, Value, quoted};

/// Reads a whole document: what `read` gives, or every problem that it reported.
pub fn check<T>(document: &Value, read: impl FnOnce(Place<'_>) -> Option<T>) -> Result<T, Problems> {
    check_at(document, Path::ROOT, read)
}

/// As [`check`], for a document that is itself a part of another and stands there at `path`.
pub fn check_at<T>(document: &Value, path: Path<'_>, read: impl FnOnce(Place<'_>) -> Option<T>) -> Result<T, Problems> {
    read_document(document, None, path, read)
}

/// Reads `document`, whose text is `source` when somebody has it.
pub(super) fn read_document<T>(
    document: &Value,
    source: Option<&str>,
    path: Path<'_>,
    read: impl FnOnce(Place<'_>) -> Option<T>,
) -> Result<T, Problems> {
    let problems = RefCell::default();
    let read = read(Place { value: document, path, source, problems: &problems });
    let problems = problems.into_inner();
    match read {
        Some(value) => problems.or(value),
        // A reader that gives nothing has said why; should one not have, the document is refused all the same.
        None if problems.is_empty() => Err(Problems::one(ProblemCode::Custom, &path, "Invalid input")),
        None => Err(problems),
    }
}

/// A value of a document, where it stands, and where its problems go.
///
/// Every method that gives an `Option` has reported a problem when it gives `None`.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    value: &'a Value,
    path: Path<'a>,
    /// The text of the whole document, from the root of `path` on.
    source: Option<&'a str>,
    problems: &'a RefCell<Problems>,
}

impl<'a> Place<'a> {
    /// The value.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// Where it stands.
    pub fn path(&self) -> &Path<'a> {
        &self.path
    }

    /// The member `name` of this object, `value` being its value.
    pub(super) fn member<'b>(&'b self, name: &'b str, value: &'b Value) -> Place<'b> {
        Place { value, path: self.path.name(name), ..*self }
    }

    fn element<'b>(&'b self, index: usize, value: &'b Value) -> Place<'b> {
        Place { value, path: self.path.index(index), ..*self }
    }

    /// Reports a problem with this value.
    pub fn problem(&self, code: ProblemCode, message: impl Into<String>) {
        self.problems.borrow_mut().add(code, &self.path, message);
    }

    /// Reports a problem with the member `name` of this object, present or not.
    pub fn problem_in(&self, name: &str, code: ProblemCode, message: impl Into<String>) {
        self.problems.borrow_mut().add(code, &self.path.name(name), message);
    }

    /// Reports a broken rule over several members ([`ProblemCode::Custom`]).
    pub fn custom(&self, message: impl Into<String>) {
        self.problem(ProblemCode::Custom, message);
    }

    fn wrong_type(&self, expected: &str) {
        let received = type_name(self.value);
        self.problem(ProblemCode::InvalidType, format!("Invalid input: expected {expected}, received {received}"));
    }

    /// This value as an object, to read member by member.
    pub fn object(self) -> Option<Object<'a>> {
        match self.value {
            Value::Object(members) => Some(Object::new(self, members)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.wrong_type("object");
                None
            }
        }
    }

    /// Any value, exactly as it was written, when the document came as a [`Document`](super::Document); else as
    /// [`Place::json`] gives it. Takes time in proportion to the whole document: for a body's content, not for each
    /// of many parts.
    pub fn raw(self) -> Option<Json> {
        match self.source.and_then(|source| self.path.text_in(source)) {
            Some(text) => Some(Json::from_trusted(text)),
            None => self.json(),
        }
    }

    /// Any value, printed compactly; numbers stay as written.
    pub fn json(self) -> Option<Json> {
        Some(self.value.to_json())
    }

    /// An object of any members: a JSON Schema, metadata.
    pub fn object_json(self) -> Option<Json> {
        if self.value.as_object().is_none() {
            self.wrong_type("object");
            return None;
        }
        self.json()
    }

    /// A string under `rule`, lone surrogates included.
    pub fn text(self, rule: TextRule) -> Option<Text> {
        let Some(text) = self.value.as_text() else {
            self.wrong_type("string");
            return None;
        };
        match rule.complaint(text) {
            None => Some(text.clone()),
            Some(complaint) => self.complain(complaint),
        }
    }

    /// A string under `rule`; lone surrogates are refused. Use it for names and keys, and [`Place::text`] for content.
    pub fn string(self, rule: TextRule) -> Option<String> {
        let text = self.text(rule)?;
        let Some(text) = text.as_str() else {
            return self.complain(Complaint::from("Invalid string: must not hold lone surrogates"));
        };
        Some(text.to_owned())
    }

    /// A string that `parse` accepts: `place.parsed(SessionId::parse)`. The parser says what is wrong.
    pub fn parsed<T, E: Into<Complaint>>(self, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        let text = self.string(TextRule::ANY)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => self.complain(error.into()),
        }
    }

    /// Reports a parser's complaint; gives `None`, to return it.
    pub fn complain<T>(self, complaint: Complaint) -> Option<T> {
        self.problem(complaint.code, complaint.message);
        None
    }

    /// One of some words: `place.one_of(WorkspaceTool::ALL, WorkspaceTool::as_str)`.
    pub fn one_of<T: Copy>(self, all: &[T], word: fn(T) -> &'static str) -> Option<T> {
        let found = self.value.as_str().and_then(|text| all.iter().copied().find(|one| word(*one) == text));
        if found.is_none() {
            let words: Vec<_> = all.iter().map(|one| quoted(word(*one))).collect();
            let message = match &words[..] {
                [only] => format!("Invalid input: expected {only}"),
                several => format!("Invalid option: expected one of {}", several.join("|")),
            };
            self.problem(ProblemCode::InvalidValue, message);
        }
        found
    }

    /// A number that a double holds.
    pub fn number(self) -> Option<f64> {
        let value = self.value.as_f64().filter(|number| number.is_finite());
        if value.is_none() {
            self.wrong_type("number");
        }
        value
    }

    /// `true` or `false`.
    pub fn boolean(self) -> Option<bool> {
        let value = self.value.as_bool();
        if value.is_none() {
            self.wrong_type("boolean");
        }
        value
    }

    /// A whole number in `range`; `1.0` and `1e3` are whole, as for JavaScript.
    pub fn integer<N: Copy + Into<i64> + TryFrom<i64>>(self, range: RangeInclusive<N>) -> Option<N> {
        if !matches!(self.value, Value::Number(_)) {
            self.wrong_type("number");
            return None;
        }
        let Some(number) = self.value.as_i64() else {
            self.problem(ProblemCode::InvalidType, "Invalid input: expected int, received number");
            return None;
        };
        let (min, max): (i64, i64) = ((*range.start()).into(), (*range.end()).into());
        if number < min {
            self.problem(ProblemCode::TooSmall, format!("Too small: expected number to be >={min}"));
            return None;
        }
        if number > max {
            self.problem(ProblemCode::TooBig, format!("Too big: expected number to be <={max}"));
            return None;
        }
        N::try_from(number).ok()
    }

    /// An array, each element read by `read`.
    pub fn list<'b, T>(&'b self, read: impl FnMut(Place<'b>) -> Option<T>) -> Option<Vec<T>> {
        self.list_of(0..=usize::MAX, read)
    }

    /// An array of as many elements as `count` allows, each read by `read`.
    pub fn list_of<'b, T>(
        &'b self,
        count: RangeInclusive<usize>,
        mut read: impl FnMut(Place<'b>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(items) = self.value.as_array() else {
            self.wrong_type("array");
            return None;
        };
        let counted = self.counted(items.len(), count, "array to have", "items");
        // Every element is read, so that the problems of all are found.
        let read: Vec<_> = items.iter().enumerate().map(|(at, item)| read(self.element(at, item))).collect();
        counted?;
        read.into_iter().collect()
    }

    /// An object used as a map, in the order of the document, each entry read by `read`. Names that hold lone
    /// surrogates are refused.
    pub fn map<T>(self, read: impl FnMut(&str, Place<'_>) -> Option<T>) -> Option<Vec<(String, T)>> {
        self.map_of(0..=usize::MAX, read)
    }

    /// As [`Place::map`], with as many entries as `count` allows.
    pub fn map_of<T>(
        self,
        count: RangeInclusive<usize>,
        mut read: impl FnMut(&str, Place<'_>) -> Option<T>,
    ) -> Option<Vec<(String, T)>> {
        let Some(members) = self.value.as_object() else {
            self.wrong_type("object");
            return None;
        };
        let counted = self.counted(members.len(), count, "object to have", "entries");
        let entry = |(name, value): &(Text, Value)| {
            let lossy = name.lossy();
            let place = self.member(&lossy, value);
            let Some(name) = name.as_str() else {
                return place.complain(Complaint::from("Invalid key: must not hold lone surrogates"));
            };
            Some((name.to_owned(), read(name, place)?))
        };
        let read: Vec<_> = members.iter().map(entry).collect();
        counted?;
        read.into_iter().collect()
    }

    fn counted(&self, found: usize, count: RangeInclusive<usize>, what: &str, unit: &str) -> Option<()> {
        let (code, message) = if found < *count.start() {
            (ProblemCode::TooSmall, format!("Too small: expected {what} >={} {unit}", count.start()))
        } else if found > *count.end() {
            (ProblemCode::TooBig, format!("Too big: expected {what} <={} {unit}", count.end()))
        } else {
            return Some(());
        };
        self.problem(code, message);
        None
    }
}

/// The JSON type of a value, in words.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
