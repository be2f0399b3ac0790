//! An object that is read member by member, and has no others.

use std::cell::Cell;

use super::path::shortened;
use super::{Place, ProblemCode, TextRule};
use crate::json::{Text, Value, quoted};

/// A strict object: members that nobody asked for are reported by [`Object::finish`].
#[must_use = "call `finish`, or unknown members are not refused"]
pub struct Object<'a> {
    place: Place<'a>,
    members: &'a [(Text, Value)],
    /// Whether somebody asked for the member at this position.
    asked: Vec<Cell<bool>>,
}

impl<'a> Object<'a> {
    /// How many unknown members are named in a message.
    const NAMED_UNKNOWN: usize = 10;
    /// How many characters of each.
    const SHOWN_OF_NAME: usize = 100;

    pub(super) fn new(place: Place<'a>, members: &'a [(Text, Value)]) -> Self {
        Self { place, members, asked: vec![Cell::new(false); members.len()] }
    }

    /// The object itself, for problems over several members.
    pub fn place(&self) -> Place<'a> {
        self.place
    }

    /// The member of this name, when it is there. A member that is `null` is there.
    pub fn get<'b>(&'b self, name: &'b str) -> Option<Place<'b>> {
        let at = self.members.iter().position(|(key, _)| *key == name)?;
        self.asked[at].set(true);
        Some(self.place.member(name, &self.members[at].1))
    }

    /// Whether the member is there.
    pub fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(key, _)| *key == name)
    }

    /// A member that must be there.
    pub fn required<'b, T>(&'b self, name: &'b str, read: impl FnOnce(Place<'b>) -> Option<T>) -> Option<T> {
        if let Some(place) = self.get(name) {
            return read(place);
        }
        self.place.problem_in(name, ProblemCode::InvalidType, "Invalid input: required, received undefined");
        None
    }

    /// A member that may be missing. `None` also after a problem, which is reported.
    pub fn optional<'b, T>(&'b self, name: &'b str, read: impl FnOnce(Place<'b>) -> Option<T>) -> Option<T> {
        self.get(name).and_then(read)
    }

    /// A required string without lone surrogates.
    pub fn required_string(&self, name: &str, rule: TextRule) -> Option<String> {
        self.required(name, |place| place.string(rule))
    }

    /// An optional string without lone surrogates.
    pub fn optional_string(&self, name: &str, rule: TextRule) -> Option<String> {
        self.optional(name, |place| place.string(rule))
    }

    /// Reports `message` at the member of this name, when it is there.
    pub fn refuse(&self, name: &str, message: &str) {
        if let Some(place) = self.get(name) {
            place.custom(message);
        }
    }

    /// Exactly one of these members must be there. Gives it; reports and gives `None` otherwise.
    pub fn exactly_one_of(&self, names: &[&'static str]) -> Option<&'static str> {
        let mut present = names.iter().copied().filter(|name| self.has(name));
        if let (Some(only), None) = (present.next(), present.next()) {
            return Some(only);
        }
        let message = format!("Exactly one of {} must be given", list_of(names));
        self.place.problem(ProblemCode::InvalidUnion, message);
        None
    }

    /// At most one of these members may be there.
    pub fn at_most_one_of(&self, names: &[&'static str]) {
        if names.iter().filter(|name| self.has(name)).count() > 1 {
            let message = format!("At most one of {} may be given", list_of(names));
            self.place.problem(ProblemCode::InvalidUnion, message);
        }
    }

    /// Reports the members that nobody asked for, in one problem at the object.
    pub fn finish(self) {
        let unknown = self.members.iter().zip(&self.asked).filter(|(_, asked)| !asked.get());
        let mut names: Vec<_> = unknown.map(|((name, _), _)| name).collect();
        let count = names.len();
        if count == 0 {
            return;
        }
        names.truncate(Self::NAMED_UNKNOWN);
        let listed: Vec<_> = names.iter().map(|name| quoted(&shortened(&name.lossy(), Self::SHOWN_OF_NAME))).collect();
        let more = if count > names.len() { format!(" and {} more", count - names.len()) } else { String::new() };
        let plural = if count > 1 { "s" } else { "" };
        let message = format!("Unrecognized key{plural}: {}{more}", listed.join(", "));
        self.place.problem(ProblemCode::UnrecognizedKeys, message);
    }
}

/// `a, b or c`
fn list_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
