//! Manifests, settings and identity files, in JSON or YAML.

use std::io::Read as _;

use nylorun_domain::json;
use serde_json::Value;

use super::args::Source;
use super::failure::Failure;

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An agent's.
    Manifest,
    /// The tenant's settings for workspaces.
    Settings,
    /// The operator's, of trusted issuers.
    IdentityFile,
}

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Self::Manifest => "a manifest",
            Self::Settings => "a file of settings",
            Self::IdentityFile => "an identity file",
        }
    }

    fn is_a_mapping(self) -> String {
        format!("{} is a mapping of names to values", self.noun())
    }
}

/// Reads a document, which is an object.
///
/// # Errors
/// The file cannot be read, or is neither JSON nor YAML; the message says the line and column.
pub(crate) fn read(source: &Source, kind: Kind) -> Result<Value, Failure> {
    let (name, bytes) = match source {
        Source::Stdin => {
            let mut bytes = Vec::new();
            ("standard input".to_owned(), std::io::stdin().read_to_end(&mut bytes).map(|_| bytes))
        }
        Source::File(path) => (path.display().to_string(), std::fs::read(path)),
    };
    let bytes = bytes.map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::new(format!("{name} is not UTF-8 text")))?;
    parse(&text, kind).map_err(|problem| Failure::new(format!("{name}: {problem}")))
}

/// JSON when it begins as an object of JSON does, YAML otherwise. YAML has mappings in braces too, but their names are
/// hardly ever in quotation marks, and a mistake in JSON is told best by a reader of JSON.
fn parse(text: &str, kind: Kind) -> Result<Value, String> {
    let text = text.trim_start_matches('\u{feff}');
    let inside = text.trim_start().strip_prefix('{').map(str::trim_start);
    if inside.is_some_and(|inside| inside.starts_with(['"', '}'])) {
        serde_json::from_str(text).map_err(|_| not_json(text))
    } else {
        yaml(text, kind)
    }
}

fn yaml(text: &str, kind: Kind) -> Result<Value, String> {
    // `no` and `on` are words in a manifest, not booleans.
    let options = serde_saphyr::options! { strict_booleans: true };
    match serde_saphyr::from_str_with_options(text, options) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(Value::Null) => Err(format!("it is empty: {}", kind.is_a_mapping())),
        Ok(_) => Err(kind.is_a_mapping()),
        Err(error) => Err(not_yaml(&error, kind)),
    }
}

/// Why this is not JSON, or none that fits into a manifest, and where.
pub(crate) fn not_json(text: &str) -> String {
    match json::parse(text) {
        Err(error) => {
            let before = text.get(..error.offset).unwrap_or(text);
            let line = 1 + before.matches('\n').count();
            let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
            format!("not JSON: {} at line {line}, column {column}", error.problem)
        }
        Ok(_) => {
            "a number in it is beyond 1.7e308, or it nests deeper than 127 levels: write the number as a text, or \
                  flatten it"
                .to_owned()
        }
    }
}

/// Why this is not YAML, and where.
fn not_yaml(error: &serde_saphyr::Error, kind: Kind) -> String {
    use serde_saphyr::Error;

    let place = error.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
    let place = place.unwrap_or_default();
    match cause(error) {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the name {key:?} stands a second time{place}: keep one of them")
        }
        Error::DuplicateMappingKey { .. } => format!("a name stands a second time{place}: keep one of them"),
        Error::Eof { .. } => format!("it is empty: {}", kind.is_a_mapping()),
        Error::MultipleDocuments { .. } => format!("a second document begins{place}: {} is one", kind.noun()),
        Error::NonFiniteFloat { value, .. } => format!(
            "{value}{place} is no number that JSON has: write one up to 1.7e308, or the word in quotation marks"
        ),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "it is too large, too deep, or its anchors repeat too much: write it out plainly".to_owned()
        }
        _ => format!(
            "not YAML{place}: look there and on the line before for the indentation, and for a `:`, a bracket or a \
             quotation mark that is missing or too many; a text with `: ` or ` #` in it needs quotation marks"
        ),
    }
}

/// The error itself, without what surrounds it.
fn cause(error: &serde_saphyr::Error) -> &serde_saphyr::Error {
    match error.without_snippet() {
        serde_saphyr::Error::AliasError { error, .. } => cause(error),
        bare => bare,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Kind;

    fn parse(text: &str) -> Result<serde_json::Value, String> {
        super::parse(text, Kind::Manifest)
    }

    #[test]
    fn what_is_empty_is_said_to_be_and_named_for_what_it_is() {
        for empty in ["", "\n", "# nothing yet\n", "---\n"] {
            assert_eq!(
                parse(empty).unwrap_err(),
                "it is empty: a manifest is a mapping of names to values",
                "{empty:?}"
            );
        }
        let identity = |text| super::parse(text, Kind::IdentityFile).unwrap_err();
        assert_eq!(identity(""), "it is empty: an identity file is a mapping of names to values");
        assert_eq!(identity("- a\n"), "an identity file is a mapping of names to values");
    }

    #[test]
    fn numbers_that_json_has_not_are_named() {
        for value in [".inf", "-.inf", ".nan", "1e999"] {
            let error = parse(&format!("a: 1\nb: {value}\n")).unwrap_err();
            let remedy = "write one up to 1.7e308, or the word in quotation marks";
            assert_eq!(error, format!("{value} at line 2, column 4 is no number that JSON has: {remedy}"));
        }
        assert_eq!(parse("a: '.inf'\n").unwrap(), json!({"a": ".inf"}));
    }

    #[test]
    fn json_and_yaml_give_the_same() {
        let json = r#"{"id": "a", "capabilities": [{"instructions": ["x\ny\n"], "n": 1, "ok": true, "none": null}]}"#;
        let yaml = "# an agent\nid: a\ncapabilities:\n  - instructions:\n      - |\n        x\n        y\n\
            \x20   n: 1\n    ok: true\n    none:\n";
        assert_eq!(parse(json).unwrap(), parse(yaml).unwrap());
        assert_eq!(parse("{id: a}").unwrap(), json!({"id": "a"}));
    }

    #[test]
    fn words_stay_words_and_order_is_kept() {
        let value = parse("b: no\na: on\nc: 'true'\nd: 1.50\ne: 2026-01-01\n").unwrap();
        assert_eq!(value.to_string(), r#"{"b":"no","a":"on","c":"true","d":1.5,"e":"2026-01-01"}"#);
    }

    #[test]
    fn anchors_work_and_bombs_do_not() {
        assert_eq!(parse("a: &x {k: 1}\nb: *x\n").unwrap(), json!({"a": {"k": 1}, "b": {"k": 1}}));
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let one = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![one; 9].join(",")));
        }
        assert!(parse(&bomb).unwrap_err().contains("its anchors repeat too much"));
    }

    #[test]
    fn mistakes_say_where() {
        assert_eq!(parse("{\"a\":\n  é }").unwrap_err(), "not JSON: unexpected character at line 2, column 3");
        assert!(parse("{\"a\": 1e999}").unwrap_err().starts_with("a number in it is beyond 1.7e308"));
        let error = parse("id: a\n  b: [1\n").unwrap_err();
        assert!(error.starts_with("not YAML at line 2, column "), "{error}");
        assert_eq!(parse("- a\n").unwrap_err(), "a manifest is a mapping of names to values");
        assert_eq!(
            parse("a: 1\n---\nb: 2\n").unwrap_err(),
            "a second document begins at line 3, column 1: a manifest is one"
        );
        assert!(parse("").is_err());
        let twice = parse("a: 1\na: 2\n").unwrap_err();
        assert_eq!(twice, "the name \"a\" stands a second time at line 2, column 1: keep one of them");
    }
}
