//! Outcomes of a session's workspace tools on the wire (api 2.5).

use nylorun_domain::check::{Path, ProblemCode, Problems};
use nylorun_domain::json::{Json, Value};
use nylorun_domain::tool::ToolOutcome;

use crate::body::Body;

/// The input of `POST /v1/sessions/{id}/sandbox/{tool}`: the body without `requestId`.
///
/// # Errors
/// The body is no object.
pub fn tool_input(body: &Body) -> Result<Json, Problems> {
    let Some(members) = body.value().as_object() else {
        return Err(Problems::one(ProblemCode::InvalidType, &Path::ROOT, "must be an object"));
    };
    let kept = members.iter().filter(|(name, _)| *name != "requestId").cloned().collect();
    Ok(Value::Object(kept).to_json())
}

/// `{kind:"completed", output}` or `{kind:"failed", code, message}`.
pub fn outcome(outcome: &ToolOutcome) -> Value {
    match outcome {
        ToolOutcome::Completed { output } => {
            Value::object([("kind", Value::from("completed")), ("output", output.value())])
        }
        ToolOutcome::Failed { code, message } => Value::object([
            ("kind", Value::from("failed")),
            ("code", Value::from(code.as_str())),
            ("message", Value::from(message.as_str())),
        ]),
    }
}
