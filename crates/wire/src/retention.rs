//! The tenant's retention on the wire: `GET` and `PUT /v1/tenant/retention` (`docs/guide/retention.md`).

use nylorun_domain::check::{Path, ProblemCode, Problems};
use nylorun_domain::json::Value;
use nylorun_domain::retention::{Keep, Retention};

/// Reads a body that follows the route's schema, or [`to_value`]'s form. What is absent or null is kept for ever.
///
/// # Errors
/// The members that are no duration.
pub fn read(value: &Value) -> Result<Retention, Problems> {
    let mut problems = Problems::default();
    let mut keep = |name: &str| {
        let parsed = value.get(name).and_then(Value::as_str).map(Keep::parse).transpose();
        parsed.unwrap_or_else(|problem| {
            problems.add(ProblemCode::Custom, &Path::ROOT.name(name), problem);
            None
        })
    };
    let retention = Retention { sessions: keep("sessions"), events: keep("events") };
    problems.or(retention)
}

/// `{sessions, events}`: durations such as `90d`, or null for ever.
pub fn to_value(retention: &Retention) -> Value {
    let keep = |keep: Option<Keep>| keep.map_or(Value::Null, |keep| Value::from(keep.print()));
    Value::object([("sessions", keep(retention.sessions)), ("events", keep(retention.events))])
}

#[cfg(test)]
mod tests {
    use nylorun_domain::json::Json;

    use super::{read, to_value};

    #[test]
    fn reads_what_it_prints_and_names_what_is_no_duration() {
        for text in [r#"{"sessions":"90d","events":"36h"}"#, r#"{"sessions":null,"events":null}"#] {
            assert_eq!(to_value(&read(&Json::from_trusted(text).value()).unwrap()).to_json().as_str(), text);
        }
        assert_eq!(read(&Json::from_trusted("{}").value()).unwrap(), Default::default());
        let wrong = read(&Json::from_trusted(r#"{"sessions":"0d","events":"soon"}"#).value()).unwrap_err();
        let text = wrong.to_json_text();
        assert!(text.contains("sessions") && text.contains("events"), "{text}");
    }
}
