//! Checking values against the JSON Schemas of manifests.

use nylorun_domain::check::{Problem, ProblemCode, Problems, Step};
use nylorun_domain::json::{Json, Value};

use boon::{Compiler, InstanceToken, SchemaIndex, Schemas, UrlLoader, ValidationError};

/// A schema, ready to check values.
pub(super) struct Checker {
    schemas: Schemas,
    index: SchemaIndex,
}

/// Under this name a manifest's schema is known while it is read; nothing stands there.
const NAME: &str = "https://schema.invalid/tool";

impl Checker {
    /// A schema of draft 2020-12, or of what its `$schema` says. Nothing is fetched for a reference: it leads inside
    /// the schema, or the schema cannot be used. The error says what is wrong with it.
    pub(super) fn new(schema: &Json) -> Result<Self, String> {
        let unusable = |error: boon::CompileError| error.to_string();
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(NoLoader));
        compiler.set_default_draft(boon::Draft::V2020_12);
        compiler.add_resource(NAME, convert(&schema.value())).map_err(unusable)?;
        let mut schemas = Schemas::new();
        let index = compiler.compile(NAME, &mut schemas).map_err(unusable)?;
        Ok(Self { schemas, index })
    }

    /// Checks a value. All problems are reported, with their paths.
    pub(super) fn check(&self, value: &Value) -> Result<(), Problems> {
        self.schemas.validate(&convert(value), self.index).map_err(|error| {
            let mut problems = Problems::default();
            add_leaves(&error, &mut problems);
            problems
        })
    }
}

/// A manifest's schema may name files and hosts of ours: neither is read.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
        Err(format!("{url} is not part of the schema").into())
    }
}

/// Adds what is wrong in the end, not the keywords on the way there.
fn add_leaves(error: &ValidationError<'_, '_>, problems: &mut Problems) {
    if !error.causes.is_empty() {
        return error.causes.iter().for_each(|cause| add_leaves(cause, problems));
    }
    let path = error.instance_location.tokens.iter().map(|token| match token {
        InstanceToken::Prop(name) => Step::Name(name.to_string()),
        InstanceToken::Item(index) => Step::Index(*index),
    });
    problems.push(Problem { code: ProblemCode::Custom, path: path.collect(), message: error.kind.to_string() });
}

/// The value as the checker reads it: lone surrogates as U+FFFD, numbers as the nearest that it knows.
fn convert(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(bool) => (*bool).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            (None, float) => float.clamp(f64::MIN, f64::MAX).into(),
        },
        Value::String(text) => text.lossy().into_owned().into(),
        Value::Array(items) => items.iter().map(convert).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.lossy().into_owned(), convert(value))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(schema: &str, value: &str) -> Vec<String> {
        let checker = match Checker::new(&Json::parse(schema).unwrap()) {
            Ok(checker) => checker,
            Err(problem) => return vec![format!("unusable: {problem}")],
        };
        let problems = checker.check(&Json::parse(value).unwrap().value()).err().unwrap_or_default();
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn all_problems_are_named_with_their_paths() {
        let schema = r##"{"type":"object","additionalProperties":false,"required":["to","lines"],"properties":{
            "to":{"type":"string","pattern":"^[a-z]+$"},
            "lines":{"type":"array","items":{"$ref":"#/$defs/line"}}},
            "$defs":{"line":{"type":"object","properties":{"count":{"type":"integer","minimum":1}}}}}"##;
        assert_eq!(problems(schema, r#"{"to":"bob","lines":[{"count":1},{}]}"#), Vec::<String>::new());
        let found = problems(schema, r#"{"to":"Bob","lines":[{"count":0},{"count":"2"}],"more":1}"#);
        let starts = ["lines.0.count: ", "lines.1.count: ", "to: "];
        for start in starts {
            assert!(found.iter().any(|problem| problem.starts_with(start)), "{start} {found:?}");
        }
        assert!(found.iter().any(|problem| problem.contains("more")), "{found:?}");
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(problems(schema, "[]").len(), 1);
    }

    #[test]
    fn numbers_and_texts_of_any_kind_can_be_checked() {
        let number = r#"{"type":"number","maximum":1e308}"#;
        assert_eq!(problems(number, "1e400").len(), 1);
        assert_eq!(problems(number, "-0.0"), Vec::<String>::new());
        assert_eq!(problems(r#"{"type":"string","maxLength":1}"#, r#""\ud800""#), Vec::<String>::new());
        assert_eq!(problems("{}", "{\"\\u0000\":[]}"), Vec::<String>::new());
    }

    #[test]
    fn a_schema_reaches_neither_files_nor_hosts() {
        // A file that is there, and is JSON.
        let file = concat!("file://", env!("CARGO_MANIFEST_DIR"), "/../../data/models.json");
        for elsewhere in [file, "https://example.com/schema.json", "other.json"] {
            let schema = format!(r#"{{"$ref":"{elsewhere}"}}"#);
            let found = problems(&schema, "1");
            assert!(found[0].starts_with("unusable: error loading"), "{found:?}");
        }
        let found = problems(r#"{"type":"nothing"}"#, "1");
        assert!(found[0].starts_with("unusable: "), "{found:?}");
    }

    #[test]
    fn a_schema_of_an_older_draft_is_read_as_that() {
        let schema = r#"{"$schema":"http://json-schema.org/draft-07/schema#",
            "items":[{"type":"string"}],"additionalItems":false}"#;
        assert_eq!(problems(schema, r#"["a"]"#), Vec::<String>::new());
        assert_eq!(problems(schema, r#"["a", 1]"#).len(), 1);
    }
}
