//! `reasoning_details`: reasoning as a router passes it on from many providers. It comes in pieces, and must go back
//! as one list.

use nylorun_domain::json::{Text, Value};

use crate::providers::{Pieces, text};

/// The member of a delta, of a message, and of a signature.
pub(super) const DETAILS: &str = "reasoning_details";

/// The details of one answer.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Detail>);

/// One detail. What grows is its text, or its summary.
#[derive(Debug)]
struct Detail {
    kind: Text,
    index: Option<i64>,
    members: Vec<(Text, Value)>,
    growing: Option<(&'static str, Pieces)>,
}

impl Details {
    /// Takes the details of a delta.
    pub(super) fn take(&mut self, details: &[Value]) {
        for detail in details {
            let Some(members) = detail.as_object() else { continue };
            let kind = text(detail, "type");
            let index = detail.get("index").and_then(Value::as_i64);
            let known = self.0.iter_mut().rfind(|known| known.kind == kind && known.index == index);
            match known.filter(|known| known.growing.is_some()) {
                Some(known) => known.extend(members),
                None => {
                    let growing = growing(&kind).map(|name| (name, Pieces::default()));
                    let mut fresh = Detail { kind, index, members: Vec::new(), growing };
                    fresh.extend(members);
                    self.0.push(fresh);
                }
            }
        }
    }

    /// The whole list, when there is any detail.
    pub(super) fn into_value(self) -> Option<Value> {
        let details: Vec<_> = self.0.into_iter().map(Detail::into_value).collect();
        (!details.is_empty()).then_some(Value::Array(details))
    }
}

impl Detail {
    fn extend(&mut self, members: &[(Text, Value)]) {
        for (name, value) in members {
            match (&mut self.growing, value) {
                (Some((growing, pieces)), Value::String(piece)) if name == *growing => pieces.push(piece),
                (_, Value::Null) => {}
                _ => match self.members.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known)) => known.clone_from(value),
                    None => self.members.push((name.clone(), value.clone())),
                },
            }
        }
    }

    fn into_value(self) -> Value {
        let grown = self.growing.map(|(name, pieces)| (Text::from(name), Value::from(pieces.join())));
        Value::Object(self.members.into_iter().chain(grown).collect())
    }
}

/// The member in which a detail of this kind comes in pieces. An encrypted one comes whole.
fn growing(kind: &Text) -> Option<&'static str> {
    match kind.as_str() {
        Some("reasoning.text") => Some("text"),
        Some("reasoning.summary") => Some("summary"),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use nylorun_domain::json::parse;

    use super::*;

    #[test]
    fn pieces_of_a_detail_are_put_together() {
        let mut details = Details::default();
        for delta in [
            r#"[{"type":"reasoning.text","index":0,"text":"Hm","signature":null,"format":"f"}]"#,
            r#"[{"type":"reasoning.text","index":0,"text":"m.","signature":"s"}, 7]"#,
            r#"[{"type":"reasoning.summary","index":1,"summary":"a"}]"#,
            r#"[{"type":"reasoning.summary","index":2,"summary":"b"}]"#,
            r#"[{"type":"reasoning.encrypted","data":"x"},{"type":"reasoning.encrypted","data":"y","id":"call_1"}]"#,
            r#"[{"type":"reasoning.summary","index":1,"summary":"c"}]"#,
        ] {
            details.take(parse(delta).unwrap().as_array().unwrap());
        }
        let expected = [
            r#"{"type":"reasoning.text","index":0,"format":"f","signature":"s","text":"Hmm."}"#,
            r#"{"type":"reasoning.summary","index":1,"summary":"ac"}"#,
            r#"{"type":"reasoning.summary","index":2,"summary":"b"}"#,
            r#"{"type":"reasoning.encrypted","data":"x"}"#,
            r#"{"type":"reasoning.encrypted","data":"y","id":"call_1"}"#,
        ];
        assert_eq!(details.into_value().unwrap().to_json().as_str(), format!("[{}]", expected.join(",")));
        assert_eq!(Details::default().into_value(), None);
    }
}
