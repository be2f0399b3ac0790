//! A schema as JSON Schema 2020-12, the language of OpenAPI 3.2.

use nylorun_domain::json::Value;

use super::{Alternative, Least, MAX_SAFE, Member, Need, Others, Schema, Shape};

type Members = Vec<(&'static str, Value)>;

impl Schema {
    /// The schema as an OpenAPI document holds it.
    pub fn to_openapi(&self) -> Value {
        match self {
            Self::Any => Value::object::<&str>([]),
            Self::Bool => typed("boolean", vec![]),
            Self::Constant(constant) => Value::object([("const", Value::from(constant.value()))]),
            Self::Integer { min, max } => typed("integer", range(*min, *max)),
            Self::Number(Least::Zero) => typed("number", vec![("minimum", Value::from(0))]),
            Self::Number(Least::AboveZero) => typed("number", vec![("exclusiveMinimum", Value::from(0))]),
            Self::Text { min, max, format } => {
                let mut members = bounds("minLength", *min, "maxLength", *max);
                if let Some(pattern) = format.and_then(|format| format.pattern) {
                    members.push(("pattern", Value::from(pattern)));
                }
                typed("string", members)
            }
            Self::Words(words) => typed("string", vec![("enum", names(words))]),
            Self::Array { of, min, max } => {
                let mut members = vec![("items", of.to_openapi())];
                members.extend(bounds("minItems", *min, "maxItems", *max));
                typed("array", members)
            }
            Self::AnyObject | Self::AgentManifest => typed("object", vec![]),
            Self::Map(of) => typed("object", vec![("additionalProperties", of.to_openapi())]),
            Self::Object(shape) => shape.to_openapi(None),
            Self::Tagged { tag, cases } => tagged(tag, cases),
            Self::FirstOf(alternatives) => {
                any_of(alternatives.iter().map(|Alternative { schema, .. }| schema.to_openapi()))
            }
            Self::Nullable(schema) => any_of([schema.to_openapi(), typed("null", vec![])].into_iter()),
        }
    }
}

impl Shape {
    fn to_openapi(self, tag: Option<(&'static str, &'static str)>) -> Value {
        let tag_property = tag.map(|(name, word)| (name, Value::object([("const", Value::from(word))])));
        let declared = self.members.iter().map(|member| (member.name, member.schema.to_openapi()));
        let properties = Value::object(tag_property.into_iter().chain(declared));
        let required: Vec<_> = tag.iter().map(|(name, _)| *name).chain(self.required_names()).collect();
        let mut members = vec![("properties", properties)];
        if !required.is_empty() {
            members.push(("required", names(&required)));
        }
        match self.others {
            Others::Refused => members.push(("additionalProperties", Value::from(false))),
            Others::Kept => {}
        }
        if let [group] = self.exactly_one {
            let alternatives = group.iter().map(|name| Value::object([("required", names(&[name]))]));
            members.push(("oneOf", Value::Array(alternatives.collect())));
        }
        typed("object", members)
    }

    fn required_names(&self) -> impl Iterator<Item = &'static str> {
        let required = self.members.iter().filter(|Member { need, .. }| *need == Need::Required);
        required.map(|member| member.name)
    }
}

fn tagged(tag: &'static str, cases: &'static [(&'static str, Shape)]) -> Value {
    let cases = cases.iter().map(|(word, shape)| shape.to_openapi(Some((tag, word))));
    Value::object([
        ("oneOf", Value::Array(cases.collect())),
        ("discriminator", Value::object([("propertyName", Value::from(tag))])),
    ])
}

fn typed(name: &str, members: Members) -> Value {
    Value::object([("type", Value::from(name))].into_iter().chain(members))
}

fn any_of(schemas: impl Iterator<Item = Value>) -> Value {
    Value::object([("anyOf", Value::Array(schemas.collect()))])
}

fn names(names: &[&str]) -> Value {
    Value::Array(names.iter().map(|name| Value::from(*name)).collect())
}

/// Bounds that say something: no minimum of zero, no maximum that is no limit.
fn bounds(min_name: &'static str, min: usize, max_name: &'static str, max: usize) -> Members {
    let mut members = vec![];
    if min > 0 {
        members.push((min_name, Value::from(i64::try_from(min).unwrap_or(MAX_SAFE))));
    }
    if let Ok(max) = i64::try_from(max) {
        members.push((max_name, Value::from(max)));
    }
    members
}

fn range(min: i64, max: i64) -> Members {
    let mut members = vec![];
    if min > -MAX_SAFE {
        members.push(("minimum", Value::from(min)));
    }
    if max < MAX_SAFE {
        members.push(("maximum", Value::from(max)));
    }
    members
}
