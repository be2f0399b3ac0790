//! JSON from the wire, whatever a record may hold.
//!
//! A session's record keeps what was said exactly as it was written: a lone surrogate (`\ud800`), a number beyond
//! every double (`1e999`), 128 levels of arrays. What serde_json does not read of that is read by the runtime's own
//! reader and put into serde_json's values: a lone surrogate as U+FFFD, such a number as a string of its digits. The
//! event's own text keeps all of it ([`crate::Event::text`]).

use nylorun_domain::json;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads JSON.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match json::parse_envelope(text) {
        Ok(value) => serde_json::from_value(mended(&value)),
        Err(_) => Err(error),
    })
}

/// The value as serde_json can hold it.
fn mended(value: &json::Value) -> Value {
    match value {
        json::Value::Null => Value::Null,
        json::Value::Bool(flag) => Value::Bool(*flag),
        json::Value::Number(number) => {
            serde_json::from_str(number.as_raw()).unwrap_or_else(|_| Value::String(number.as_raw().to_owned()))
        }
        json::Value::String(text) => Value::String(text.lossy().into_owned()),
        json::Value::Array(items) => Value::Array(items.iter().map(mended).collect()),
        json::Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.lossy().into_owned(), mended(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn lone_surrogates_become_replacement_characters_and_nothing_else_changes() {
        let cases = [
            (r#""\ud83d\ude00""#, json!("😀")),
            (r#""a\ud800b""#, json!("a\u{fffd}b")),
            (r#""\udc00\ud800""#, json!("\u{fffd}\u{fffd}")),
            (r#""\ud800\ud83d\ude00""#, json!("\u{fffd}😀")),
            (r#""\\ud800 \ud800""#, json!("\\ud800 \u{fffd}")),
            (r#"{"é":"\u0000\"\ud800é"}"#, json!({"é": "\u{0}\"\u{fffd}é"})),
        ];
        for (text, expected) in cases {
            assert_eq!(parse::<Value>(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn numbers_and_depths_that_a_record_may_hold_are_read() {
        let read = parse::<Value>(r#"{"large":[1e999,-1e999,12345678901234567890123],"small":1.50}"#).unwrap();
        assert_eq!(read, json!({"large": ["1e999", "-1e999", 12345678901234567890123_f64], "small": 1.5}));
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let carried = format!(r#"{{"items":[{{"payload":{{"data":{}}}}}]}}"#, deep(128));
        let read = parse::<Value>(&carried).unwrap();
        assert_eq!(read["items"][0]["payload"]["data"].to_string(), deep(128));
        assert!(parse::<Value>(&deep(1_000)).is_err());
    }

    #[test]
    fn broken_json_stays_broken() {
        for text in ["", "{", r#""\ud8""#, r#""\"#, r#"{"a":"\ud800"#] {
            assert!(parse::<Value>(text).is_err(), "{text}");
        }
    }
}
