//! Checking a value against a schema: every problem at once, each with its path.

use nylorun_domain::check::{self, Object, Place, ProblemCode, Problems, TextRule};
use nylorun_domain::json::{Value, quoted};
use nylorun_domain::manifest::AgentManifest;

use super::{Alternative, Claim, Constant, Format, Least, Member, Need, Others, Schema, Shape};

impl Schema {
    /// Checks `value`.
    ///
    /// # Errors
    /// All problems, in document order.
    pub fn check(&self, value: &Value) -> Result<(), Problems> {
        check::check(value, |place| {
            self.check_at(place);
            Some(())
        })
    }

    fn check_at(&self, place: Place<'_>) {
        match self {
            Self::Any => {}
            Self::Bool => drop(place.boolean()),
            Self::Constant(constant) => check_constant(*constant, place),
            Self::Integer { min, max } => drop(place.integer(*min..=*max)),
            Self::Number(least) => check_number(*least, place),
            Self::Text { min, max, format } => check_text(*min, *max, *format, place),
            Self::Words(words) => check_words(words, place),
            Self::Array { of, min, max } => drop(place.list_of(*min..=*max, |item| {
                of.check_at(item);
                Some(())
            })),
            Self::AnyObject => drop(place.object_json()),
            Self::AgentManifest => drop(AgentManifest::saved(place)),
            Self::Map(of) => drop(place.map(|_, entry| {
                of.check_at(entry);
                Some(())
            })),
            Self::Object(shape) => {
                if let Some(object) = place.object() {
                    shape.check(object);
                }
            }
            Self::Tagged { tag, cases } => check_tagged(tag, cases, place),
            Self::FirstOf(alternatives) => check_first_of(alternatives, place),
            Self::Nullable(schema) => {
                if *place.value() != Value::Null {
                    schema.check_at(place);
                }
            }
        }
    }
}

impl Shape {
    fn check(&self, object: Object<'_>) {
        for member in self.members {
            member.check(&object);
        }
        for group in self.exactly_one {
            object.exactly_one_of(group);
        }
        match self.others {
            Others::Refused => object.finish(),
            Others::Kept => {}
        }
    }
}

impl Member {
    fn check(&self, object: &Object<'_>) {
        let check = |place: Place<'_>| {
            self.schema.check_at(place);
            Some(())
        };
        match self.need {
            Need::Required => drop(object.required(self.name, check)),
            Need::Optional => drop(object.optional(self.name, check)),
        }
    }
}

fn check_constant(constant: Constant, place: Place<'_>) {
    if place.value().as_bool() != Some(constant.value()) {
        place.problem(ProblemCode::InvalidValue, format!("Invalid input: expected {}", constant.value()));
    }
}

fn check_number(least: Least, place: Place<'_>) {
    let Some(number) = place.number() else { return };
    match least {
        Least::Zero if number < 0.0 => {
            place.problem(ProblemCode::TooSmall, "Too small: expected number to be >=0");
        }
        Least::AboveZero if number <= 0.0 => {
            place.problem(ProblemCode::TooSmall, "Too small: expected number to be >0");
        }
        Least::Zero | Least::AboveZero => {}
    }
}

fn check_text(min: usize, max: usize, format: Option<&Format>, place: Place<'_>) {
    let rule = TextRule::length(min, max);
    match format {
        None => drop(place.text(rule)),
        Some(format) => drop(place.string(rule.matching(format.follows, format.expected))),
    }
}

fn check_words(words: &[&str], place: Place<'_>) {
    if place.value().as_str().is_none_or(|text| !words.contains(&text)) {
        let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        let message = format!("Invalid option: expected one of {}{}", words.join("|"), received(place.value()));
        place.problem(ProblemCode::InvalidValue, message);
    }
}

/// The word that stands there instead. What is no word, or a long one, is not repeated.
fn received(value: &Value) -> String {
    const LONGEST: usize = 64;
    match value.as_str() {
        Some(word) if word.len() <= LONGEST => format!(", received {}", quoted(word)),
        Some(_) | None => String::new(),
    }
}

fn check_tagged(tag: &str, cases: &[(&'static str, Shape)], place: Place<'_>) {
    let Some(object) = place.object() else { return };
    let word = object.required(tag, |place| {
        let found = place.value().as_str().and_then(|text| cases.iter().find(|(word, _)| *word == text));
        if found.is_none() {
            let words: Vec<_> = cases.iter().map(|(word, _)| quoted(word)).collect();
            let message =
                format!("Invalid discriminator: expected one of {}{}", words.join("|"), received(place.value()));
            place.problem(ProblemCode::InvalidUnion, message);
        }
        found
    });
    // Without a known tag nobody can say which other members are wrong.
    if let Some((_, shape)) = word {
        shape.check(object);
    }
}

fn check_first_of(alternatives: &[Alternative], place: Place<'_>) {
    match alternatives.iter().find(|alternative| alternative.claims.claims(place.value())) {
        Some(alternative) => alternative.schema.check_at(place),
        None => place.problem(ProblemCode::InvalidUnion, "Invalid input"),
    }
}

impl Claim {
    pub(super) fn claims(self, value: &Value) -> bool {
        match self {
            Self::Booleans => value.as_bool().is_some(),
            Self::Strings => value.as_text().is_some(),
            Self::ObjectsWith(name) => value.get(name).is_some(),
            Self::TheRest => true,
        }
    }
}
