//! The one table of newer and older names (decisions, Compatibility). The record holds the newer; clients up to
//! protocol 10, which are all that are served now, know the older.

use std::borrow::Cow;

/// Event types: newer, older.
const EVENT_TYPES: &[(&str, &str)] = &[
    ("environment.state", "sandbox.state"),
    ("environment.exec", "sandbox.exec"),
    ("environment.attached", "sandbox.attached"),
];

/// An event's type as a client up to protocol 10 knows it.
pub fn older_event_type(newer: &str) -> &str {
    EVENT_TYPES.iter().find(|(name, _)| *name == newer).map_or(newer, |(_, older)| older)
}

/// An event's type as the record holds it.
pub fn newer_event_type(older: &str) -> &str {
    EVENT_TYPES.iter().find(|(_, name)| *name == older).map_or(older, |(newer, _)| newer)
}

/// An event of type `kind` as a client up to protocol 10 knows it. Only events whose type has an older name are copied.
pub fn older_event<'a>(kind: &str, body: &'a str) -> Cow<'a, str> {
    let older = older_event_type(kind);
    if older == kind {
        return Cow::Borrowed(body);
    }
    // The envelope is printed by this program, its type before its payload, and quotation marks inside its strings are
    // escaped: the first place that reads so is the envelope's own member.
    Cow::Owned(body.replacen(&format!("\"type\":\"{kind}\""), &format!("\"type\":\"{older}\""), 1))
}

#[cfg(test)]
mod tests {
    use super::{EVENT_TYPES, newer_event_type, older_event, older_event_type};

    #[test]
    fn maps_both_ways() {
        for (newer, older) in EVENT_TYPES {
            assert_eq!(older_event_type(newer), *older);
            assert_eq!(newer_event_type(older), *newer);
        }
        assert_eq!(older_event_type("turn.failed"), "turn.failed");
        assert_eq!(newer_event_type("turn.failed"), "turn.failed");
    }

    #[test]
    fn renames_the_envelope_alone() {
        let event = |kind: &str| {
            let id = r#""sessionId":"\"type\":\"environment.exec\"""#;
            format!(r#"{{{id},"type":"{kind}","payload":{{"type":"environment.exec"}}}}"#)
        };
        let body = event("environment.exec");
        assert_eq!(older_event("environment.exec", &body), event("sandbox.exec"));
        assert_eq!(older_event("turn.failed", &body), body);
    }
}
