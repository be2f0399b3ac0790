//! What holds for all JSON.

use nylorun_domain::json::{Document, Json, Node, Text, Value, element_of, member_of, parse};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// UTF-16 units of any text, lone surrogates and control characters included.
fn units() -> impl Strategy<Value = Vec<u16>> {
    let unit = prop_oneof![
        4 => 0x20_u16..0x7f,
        1 => 0_u16..0x20,
        2 => 0xd7f0_u16..0xe010,
        1 => any::<u16>(),
    ];
    vec(unit, 0..8)
}

fn number() -> impl Strategy<Value = Value> {
    "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?"
        .prop_map(|number| parse(&number).expect("the pattern is JSON's"))
}

pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        number(),
        units().prop_map(|units| Value::String(Text::from_utf16(units))),
    ];
    leaf.prop_recursive(5, 64, 20, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            btree_map(units(), inner, 0..20).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (Text::from_utf16(name), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_parsed_as_the_same(value in value()) {
        let printed = value.to_json();
        prop_assert_eq!(parse(printed.as_str()), Ok(value));
        let kept = Json::parse(printed.as_str());
        prop_assert_eq!(kept.map(|json| json.as_str().to_owned()), Ok(printed.as_str().to_owned()));
    }

    #[test]
    fn canonical_form_is_idempotent_and_ignores_order(value in value()) {
        let canonical = value.canonical();
        prop_assert_eq!(parse(&canonical).map(|value| value.canonical()), Ok(canonical.clone()));
        prop_assert_eq!(reversed(&value).canonical(), canonical);
    }

    #[test]
    fn parts_are_found_where_the_parser_finds_them(value in value()) {
        let printed = value.to_json();
        for (at, item) in value.as_array().unwrap_or_default().iter().enumerate() {
            let item = item.to_json();
            prop_assert_eq!(element_of(printed.as_str(), at), Some(item.as_str()));
        }
        for (name, member) in value.as_object().unwrap_or_default() {
            if let Some(name) = name.as_str() {
                let member = member.to_json();
                prop_assert_eq!(member_of(printed.as_str(), name), Some(member.as_str()));
            }
        }
    }

    #[test]
    fn a_document_says_in_its_place_what_its_value_says(value in value()) {
        let printed = value.to_json();
        assert_same(Document::parse(printed.as_str()).expect("printed").root(), &value);
    }

    #[test]
    fn the_parser_agrees_with_serde(text in r#"[\[\]{}:,"\\0-9abfnrtuls+\-.eE \n]{0,24}"#) {
        assert_agreement(&text);
    }

    #[test]
    fn the_parser_agrees_with_serde_on_what_is_nearly_json(
        pieces in vec(
            prop::sample::select(vec![
                "[", "]", "{", "}", ",", ":", "\"a\"", "\"\\n\"", "\"\\u0041b\"",
                "1", "-0.5e1", "true", "null", " ", "[]", "{}",
                "\"a\":1", "\"é😀\"", "00", "\"", "\\",
            ]),
            0..10,
        ),
    ) {
        assert_agreement(&pieces.concat());
    }
}

fn assert_same(node: Node<'_>, value: &Value) {
    assert_eq!(node.to_value(), *value);
    assert_eq!(node.as_written(), value.to_json().as_str());
    assert_eq!((node.as_text().as_ref(), node.as_bool()), (value.as_text(), value.as_bool()));
    assert_eq!(node.as_str().as_deref(), value.as_str());
    if value.as_i64().is_some() {
        assert_eq!(node.as_i64(), value.as_i64());
    }
    let elements: Option<Vec<_>> = node.elements().map(Iterator::collect);
    assert_eq!(elements.as_ref().map(Vec::len), value.as_array().map(<[_]>::len));
    for (node, value) in elements.into_iter().flatten().zip(value.as_array().unwrap_or_default()) {
        assert_same(node, value);
    }
    for (name, value) in value.as_object().unwrap_or_default() {
        if let Some(name) = name.as_str() {
            assert_same(node.get(name).expect("the member is there"), value);
        }
    }
}

/// Both refuse the text, or both read the same. Only where serde cannot hold a value do they differ.
fn assert_agreement(text: &str) {
    match (parse(text), serde_json::from_str::<serde_json::Value>(text)) {
        (Ok(ours), Ok(theirs)) => {
            let reread: serde_json::Value = serde_json::from_str(ours.to_json().as_str()).expect("ours is JSON");
            assert_eq!(reread, theirs, "{text}");
        }
        (Err(_), Err(_)) => {}
        (Ok(ours), Err(error)) => {
            let error = error.to_string();
            let beyond_serde = ["out of range", "surrogate", "hex escape"].iter().any(|part| error.contains(part));
            assert!(beyond_serde, "we take {text:?} as {ours:?}, serde says {error}");
        }
        (Err(error), Ok(_)) => panic!("we refuse {text:?}: {error}"),
    }
}

fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(reversed).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Marsaglia's xorshift: the same sequence on every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).expect("below a usize")
    }
}

#[test]
fn mutated_documents_never_break_the_parser() {
    const SEEDS: [&str; 4] = [
        r#"{"a":[1,2.5e-3,{"b":"\ud83d\ude00\n\u0000"}],"c":null,"d":"\ud800x","e":true}"#,
        r#"[[[[["deep"]]]],"\\\"\/\b\f\n\r\t",-0,0.0,1E+400,{"":{"":{}}}]"#,
        r#"{"k":1,"k":2,"k":{"k":[false,false]},"é":"😀","\u006b":3}"#,
        "[ 1 , \"a\" ,\t{ } ,\r\n[ ] ]",
    ];
    const BYTES: &[u8] = b"\"\\{}[]:,u0d8fe-+.19 \n\0\x7f\xc3\xff";
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..40_000 {
        let mut bytes = SEEDS[round % SEEDS.len()].as_bytes().to_vec();
        for _ in 0..=random.below(5) {
            mutate(&mut bytes, BYTES, &mut random);
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(value) = parse(&text) {
            let printed = value.to_json();
            assert!(printed.as_str().len() <= text.len(), "printing never grows: {text}");
            assert_eq!(parse(printed.as_str()), Ok(value), "{text}");
        } else {
            // Finding parts in broken text finds something or nothing.
            member_of(&text, "k");
            element_of(&text, 2);
        }
    }
}

fn mutate(bytes: &mut Vec<u8>, alphabet: &[u8], random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(4) {
        0 => bytes.insert(at, alphabet[random.below(alphabet.len())]),
        1 if !bytes.is_empty() => {
            bytes.remove(at);
        }
        2 if !bytes.is_empty() => bytes[at] = alphabet[random.below(alphabet.len())],
        _ => {
            let end = (at + random.below(12)).min(bytes.len());
            let piece = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, piece);
        }
    }
}
