//! JSON from the wire, lone surrogates included.
//!
//! A session's record keeps text exactly as it was written, so an event may hold `\ud800` without its partner. Rust
//! strings cannot; such an escape is read as U+FFFD here, and the event's own text keeps it ([`crate::Event::text`]).

use serde::de::DeserializeOwned;

/// Reads JSON; an escape of a lone surrogate becomes U+FFFD.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match without_lone_surrogates(text) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// The text with each escape of a lone surrogate replaced, or `None` when it has none.
fn without_lone_surrogates(text: &str) -> Option<String> {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    let mut found = false;
    while let Some(at) = rest.find('\\') {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let take = match (surrogate(rest), rest.get(6..).and_then(surrogate)) {
            (Some(Half::High), Some(Half::Low)) => 12,
            (Some(Half::High | Half::Low), _) => {
                found = true;
                mended.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            // The escaped character belongs to the escape: `\\ud800` is a backslash and five plain characters.
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        mended.push_str(&rest[..take]);
        rest = &rest[take..];
    }
    mended.push_str(rest);
    found.then_some(mended)
}

#[derive(Clone, Copy)]
enum Half {
    High,
    Low,
}

/// Which half of a pair the escape at the start of `text` names, if it is `\uXXXX` of a surrogate.
fn surrogate(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
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
    fn broken_json_stays_broken() {
        for text in ["", "{", r#""\ud8""#, r#""\"#, r#"{"a":"\ud800"#] {
            assert!(parse::<Value>(text).is_err(), "{text}");
        }
    }
}
