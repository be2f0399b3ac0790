//! Values made from a schema: one that follows it, and many that do not. Tests send the second kind to every route.

use nylorun_domain::check::{ProblemCode, Step};
use nylorun_domain::json::{Number, Text, Value};

use super::{Alternative, Claim, Least, Member, Need, Others, Schema, Shape};

/// A value that breaks a schema in one place.
#[derive(Clone, Debug)]
pub struct BadSample {
    /// What is wrong with it, for a test's message.
    pub what: String,
    /// The whole value.
    pub value: Value,
    /// The problem that a check must report.
    pub code: ProblemCode,
    /// Where it must report it.
    pub path: Vec<Step>,
}

/// A value that follows `schema`, with every member that can be there.
pub fn sample(schema: &Schema) -> Value {
    match schema {
        Schema::Any => Value::object([("any", Value::from("thing"))]),
        Schema::Bool => Value::from(true),
        Schema::Constant(constant) => Value::from(constant.value()),
        Schema::Integer { min, max } => Value::from((*min).clamp(*min, *max)),
        Schema::Number(_) => Value::Number(Number::from_billionths(1_500_000_000)),
        Schema::Text { min, format, .. } => match format {
            Some(format) => Value::from(format.sample),
            None => Value::from("a".repeat((*min).max(1))),
        },
        Schema::Words(words) => words.first().map_or(Value::Null, |word| Value::from(*word)),
        Schema::Array { of, min, .. } => Value::Array(vec![sample(of); (*min).max(1)]),
        Schema::AnyObject => Value::object::<&str>([]),
        Schema::AgentManifest => sample_manifest(),
        Schema::Map(of) => Value::object([("name", sample(of))]),
        Schema::Object(shape) => sample_shape(shape, None),
        Schema::Tagged { tag, cases } => match cases.first() {
            Some((word, shape)) => sample_shape(shape, Some((tag, word))),
            None => Value::Null,
        },
        Schema::FirstOf(alternatives) => {
            alternatives.first().map_or(Value::Null, |alternative| sample(&alternative.schema))
        }
        Schema::Nullable(schema) => sample(schema),
    }
}

fn sample_shape(shape: &Shape, tag: Option<(&str, &str)>) -> Value {
    let left_out = |name: &str| shape.exactly_one.iter().any(|group| group.iter().skip(1).any(|other| *other == name));
    let declared = shape.members.iter().filter(|member| !left_out(member.name));
    let tag = tag.map(|(name, word)| (name, Value::from(word)));
    Value::object(tag.into_iter().chain(declared.map(|member| (member.name, sample(&member.schema)))))
}

/// Values that each break `schema` in one place.
pub fn bad_samples(schema: &Schema) -> Vec<BadSample> {
    match schema {
        Schema::Any => vec![],
        Schema::Bool => vec![wrong("no boolean", Value::from("true"), ProblemCode::InvalidType)],
        Schema::Constant(constant) => {
            vec![wrong("the other boolean", Value::from(!constant.value()), ProblemCode::InvalidValue)]
        }
        Schema::Integer { min, max } => bad_integers(*min, *max),
        Schema::Number(least) => bad_numbers(*least),
        Schema::Text { min, max, format } => {
            let mut bad = bad_lengths(*min, *max);
            if let Some(format) = format {
                bad.push(wrong("breaks its grammar", Value::from(format.wrong), ProblemCode::InvalidFormat));
                let lone = Value::String(Text::from_utf16(vec![0xd800; (*min).max(1)]));
                bad.push(wrong("a lone surrogate", lone, ProblemCode::InvalidFormat));
            }
            bad
        }
        Schema::Words(_) => vec![wrong("another word", Value::from("no such word"), ProblemCode::InvalidValue)],
        Schema::Array { of, min, max } => bad_arrays(of, *min, *max),
        Schema::AnyObject => bad_objects(),
        Schema::AgentManifest => bad_manifests(),
        Schema::Map(of) => bad_objects()
            .into_iter()
            .chain(bad_samples(of).into_iter().map(|bad| in_member(&[], "name", bad)))
            .collect(),
        Schema::Object(shape) => bad_shape(shape, None),
        Schema::Tagged { tag, cases } => bad_tagged(tag, cases),
        Schema::FirstOf(alternatives) => bad_alternatives(alternatives),
        Schema::Nullable(schema) => bad_samples(schema).into_iter().filter(|bad| bad.value != Value::Null).collect(),
    }
}

fn wrong(what: &str, value: Value, code: ProblemCode) -> BadSample {
    BadSample { what: what.to_owned(), value, code, path: vec![] }
}

fn bad_integers(min: i64, max: i64) -> Vec<BadSample> {
    let mut bad = vec![wrong("a string for a number", Value::from("1"), ProblemCode::InvalidType)];
    if min > -super::MAX_SAFE {
        bad.push(wrong("below the smallest", Value::from(min - 1), ProblemCode::TooSmall));
    }
    if max < super::MAX_SAFE {
        bad.push(wrong("above the largest", Value::from(max + 1), ProblemCode::TooBig));
    }
    bad
}

fn bad_numbers(least: Least) -> Vec<BadSample> {
    let small = match least {
        Least::Zero => -1,
        Least::AboveZero => 0,
    };
    vec![
        wrong("a string for a number", Value::from("1.5"), ProblemCode::InvalidType),
        wrong("null for a number", Value::Null, ProblemCode::InvalidType),
        wrong("too small", Value::from(small), ProblemCode::TooSmall),
    ]
}

fn bad_lengths(min: usize, max: usize) -> Vec<BadSample> {
    /// Texts beyond this would be refused for the body's size first.
    const LONGEST_TRIED: usize = 100_000;
    let mut bad = vec![
        wrong("a number for a string", Value::from(7), ProblemCode::InvalidType),
        wrong("null for a string", Value::Null, ProblemCode::InvalidType),
    ];
    if min > 0 {
        bad.push(wrong("too short", Value::from("a".repeat(min - 1)), ProblemCode::TooSmall));
    }
    if max < LONGEST_TRIED {
        bad.push(wrong("too long", Value::from("a".repeat(max + 1)), ProblemCode::TooBig));
    }
    bad
}

fn bad_arrays(of: &Schema, min: usize, max: usize) -> Vec<BadSample> {
    /// Arrays beyond this would be refused for the body's size first.
    const LONGEST_TRIED: usize = 1_000;
    let mut bad = vec![wrong("an object for an array", Value::object::<&str>([]), ProblemCode::InvalidType)];
    if min > 0 {
        bad.push(wrong("too few", Value::Array(vec![sample(of); min - 1]), ProblemCode::TooSmall));
    }
    if max < LONGEST_TRIED {
        bad.push(wrong("too many", Value::Array(vec![sample(of); max + 1]), ProblemCode::TooBig));
    }
    bad.extend(bad_samples(of).into_iter().map(|mut item| {
        item.what = format!("element: {}", item.what);
        item.value = Value::Array(vec![item.value]);
        item.path.insert(0, Step::from(0));
        item
    }));
    bad
}

fn bad_objects() -> Vec<BadSample> {
    vec![
        wrong("an array for an object", Value::Array(vec![]), ProblemCode::InvalidType),
        wrong("null for an object", Value::Null, ProblemCode::InvalidType),
    ]
}

fn sample_manifest() -> Value {
    Value::object([
        ("manifestSchemaVersion", Value::from(5)),
        ("id", Value::from("sample-1")),
        ("capabilities", Value::Array(vec![])),
    ])
}

fn bad_manifests() -> Vec<BadSample> {
    let mut bad = bad_objects();
    let manifest = sample_manifest();
    let members = manifest.as_object().unwrap_or_default();
    for name in ["manifestSchemaVersion", "id", "capabilities"] {
        let value = Value::Object(without(members, &[name]));
        let what = format!("{name} is missing");
        bad.push(BadSample { what, value, code: ProblemCode::InvalidType, path: vec![Step::from(name)] });
    }
    let more = members.iter().cloned().chain([(Text::from("noSuchMember"), Value::from(1))]);
    bad.push(wrong("an unknown member", Value::Object(more.collect()), ProblemCode::UnrecognizedKeys));
    bad
}

fn bad_shape(shape: &Shape, tag: Option<(&str, &str)>) -> Vec<BadSample> {
    let mut bad = if tag.is_none() { bad_objects() } else { vec![] };
    let whole = sample_shape(shape, tag);
    let members = whole.as_object().unwrap_or_default();
    if shape.others == Others::Refused {
        let more = members.iter().cloned().chain([(Text::from("noSuchMember"), Value::from(1))]);
        bad.push(wrong("an unknown member", Value::Object(more.collect()), ProblemCode::UnrecognizedKeys));
    }
    for member in shape.members {
        bad.extend(bad_member(shape, member, members));
    }
    for group in shape.exactly_one {
        bad.extend(bad_group(shape, group, members));
    }
    bad
}

fn bad_member(shape: &Shape, member: &Member, members: &[(Text, Value)]) -> Vec<BadSample> {
    let group = shape.exactly_one.iter().find(|group| group.contains(&member.name)).copied().unwrap_or_default();
    let without_siblings = without(members, group);
    let mut bad = vec![];
    if member.need == Need::Required {
        let value = Value::Object(without(members, &[member.name]));
        let path = vec![Step::from(member.name)];
        let what = format!("{} is missing", member.name);
        bad.push(BadSample { what, value, code: ProblemCode::InvalidType, path });
    }
    bad.extend(bad_samples(&member.schema).into_iter().map(|one| in_member(&without_siblings, member.name, one)));
    bad
}

fn bad_group(shape: &Shape, group: &[&str], members: &[(Text, Value)]) -> Vec<BadSample> {
    let none = Value::Object(without(members, group));
    let of_group = shape.members.iter().filter(|member| group.contains(&member.name));
    let all = of_group.map(|member| (Text::from(member.name), sample(&member.schema)));
    let all = Value::Object(without(members, group).into_iter().chain(all).collect());
    vec![
        wrong(&format!("none of {}", group.join(", ")), none, ProblemCode::InvalidUnion),
        wrong(&format!("all of {}", group.join(", ")), all, ProblemCode::InvalidUnion),
    ]
}

fn bad_tagged(tag: &'static str, cases: &[(&'static str, Shape)]) -> Vec<BadSample> {
    let mut bad = bad_objects();
    let at_tag = |what: &str, value: Value, code| BadSample {
        what: format!("{tag}: {what}"),
        value,
        code,
        path: vec![Step::from(tag)],
    };
    bad.push(at_tag("missing", Value::object::<&str>([]), ProblemCode::InvalidType));
    let unknown = Value::object([(tag, Value::from("no such word"))]);
    bad.push(at_tag("another word", unknown, ProblemCode::InvalidUnion));
    for (word, shape) in cases {
        bad.extend(bad_shape(shape, Some((tag, word))).into_iter().map(|mut one| {
            one.what = format!("{word}: {}", one.what);
            one
        }));
    }
    bad
}

fn bad_alternatives(alternatives: &[Alternative]) -> Vec<BadSample> {
    let bad = alternatives.iter().enumerate().flat_map(|(at, alternative)| {
        let judged_elsewhere = move |value: &Value| {
            let earlier = alternatives[..at].iter().any(|other| other.claims.claims(value));
            earlier || !alternative.claims.claims(value)
        };
        bad_samples(&alternative.schema).into_iter().filter(move |bad| !judged_elsewhere(&bad.value))
    });
    let unclaimed = alternatives.iter().all(|alternative| !matches!(alternative.claims, Claim::TheRest));
    let nobodys = unclaimed.then(|| wrong("none of the alternatives", Value::from(7), ProblemCode::InvalidUnion));
    bad.chain(nobodys).collect()
}

fn in_member(others: &[(Text, Value)], name: &'static str, mut bad: BadSample) -> BadSample {
    bad.what = format!("{name}: {}", bad.what);
    bad.path.insert(0, Step::from(name));
    let member = [(Text::from(name), bad.value)];
    let mut members = without(others, &[name]);
    members.extend(member);
    bad.value = Value::Object(members);
    bad
}

fn without(members: &[(Text, Value)], names: &[&str]) -> Vec<(Text, Value)> {
    members.iter().filter(|(key, _)| !names.iter().any(|name| key == name)).cloned().collect()
}
