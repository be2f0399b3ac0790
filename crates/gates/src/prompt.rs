//! What every adapter says in the same words.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nylorun_domain::hash::sha256_hex;
use nylorun_domain::id::{CallId, InvocationId, SessionId};
use nylorun_domain::image::Image;
use nylorun_domain::json::{Json, Text, Value};
use nylorun_domain::model::{Prompt, ToolInput};
use nylorun_domain::tool::ToolOutcome;
use serde_json::value::RawValue;

/// The system text: the instructions, and what is said of the output schema. Empty when there is nothing to say.
pub(crate) fn system_text(prompt: &Prompt) -> String {
    let mut paragraphs = prompt.instructions.clone();
    if let Some(schema) = &prompt.output_schema {
        paragraphs.push(format!(
            "Your final answer must be one JSON document that follows this JSON Schema, with no other text:\n{}",
            schema.as_str()
        ));
    }
    paragraphs.join("\n\n")
}

/// What a tool gave, as text: a string as it is, anything else as JSON.
pub(crate) fn outcome_text(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Completed { output } => match output.value() {
            Value::String(text) => text.lossy().into_owned(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => outgoing(output),
        },
        ToolOutcome::Failed { code, message } => {
            Value::object([("error", error(code, message))]).to_json().as_str().to_owned()
        }
    }
}

/// What a model is told of a failed tool call.
pub(crate) fn error(code: &str, message: &str) -> Value {
    Value::object([("code", Value::from(code)), ("message", Value::from(message))])
}

/// What stands for a message without any text, where an API refuses that.
pub(crate) const NOTHING: &str = "(empty)";

/// A picture's bytes as base64.
pub(crate) fn base64(image: &Image) -> String {
    STANDARD.encode(image.bytes())
}

/// A picture as a URL that holds it.
pub(crate) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.format().media_type(), base64(image))
}

/// A tool's input for an API that takes objects alone.
pub(crate) fn object_input(input: &ToolInput) -> Box<RawValue> {
    match input {
        ToolInput::Json(json) if json.as_str().starts_with('{') => raw(json),
        ToolInput::Json(json) => raw_text(format!(r#"{{"input":{}}}"#, raw(json).get())),
        ToolInput::Malformed(text) => raw_text(malformed(text)),
    }
}

/// A tool's input as text that is JSON: servers that render it into the prompt refuse anything else.
pub(crate) fn input_text(input: &ToolInput) -> String {
    match input {
        ToolInput::Json(json) => outgoing(json),
        ToolInput::Malformed(text) => malformed(text),
    }
}

fn malformed(text: &Text) -> String {
    let written = Value::from(text.lossy().into_owned());
    Value::object([("malformed", written)]).to_json().as_str().to_owned()
}

/// A call id in letters, digits, `_` and `-`, at most 64 of them, since APIs refuse more and another provider's ids
/// may hold more.
pub(crate) fn plain_call_id(id: &CallId) -> String {
    let id = id.as_str();
    if id.len() > MAX_CALL_ID {
        return format!("call_{}", &sha256_hex(id.as_bytes())[..32]);
    }
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// Longest call id that every API takes, in characters.
const MAX_CALL_ID: usize = 64;

/// What a provider may know a session by: enough to find its cached prompts again, and not the session's own id.
pub(crate) fn cache_key(session: &SessionId) -> String {
    sha256_hex(session.as_str().as_bytes())[..32].to_owned()
}

/// A call id for a model that gave none, or gave one twice: the same at each reading of the same answer.
pub(crate) fn made_call_id(invocation: &InvocationId, at: usize) -> CallId {
    let digest = sha256_hex(invocation.as_str().as_bytes());
    CallId::from_trusted(format!("{MADE}{}_{at}", &digest[..16]))
}

/// Whether this id was made here, so that the provider knows nothing of it.
pub(crate) fn is_made(id: &CallId) -> bool {
    id.as_str().starts_with(MADE)
}

/// How ids that are made here begin.
const MADE: &str = "call_";

/// JSON text for a provider: as written, but with U+FFFD in the place of lone surrogates, which many refuse.
pub(crate) fn outgoing(json: &Json) -> String {
    let text = json.as_str();
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return text.to_owned();
    }
    well_formed(json.value()).to_json().as_str().to_owned()
}

/// [`outgoing`], to stand inside a request's body as it is.
pub(crate) fn raw(json: &Json) -> Box<RawValue> {
    raw_text(outgoing(json))
}

/// JSON text that is known to be JSON.
pub(crate) fn raw_text(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn well_formed(value: Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
        Value::String(text) => Value::String(lossy(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(well_formed).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (lossy(&name), well_formed(value))).collect())
        }
    }
}

fn lossy(text: &Text) -> Text {
    text.lossy().into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_leave_as_replacement_characters() {
        let written = Json::parse(r#"{"a\ud800": ["x\uDC00y", "\ud834\udd1e", 1.0]}"#).unwrap();
        assert_eq!(outgoing(&written), "{\"a\u{fffd}\":[\"x\u{fffd}y\",\"𝄞\",1.0]}");
        let plain = Json::parse(r#"{ "a" : "\u0000" }"#).unwrap();
        assert_eq!(outgoing(&plain), r#"{ "a" : "\u0000" }"#);
    }

    #[test]
    fn call_ids_of_others_are_made_plain() {
        let plain = |id: &str| plain_call_id(&CallId::from_trusted(id));
        assert_eq!(plain("call|é_1-x"), "call___1-x");
        assert_eq!(plain(&"a".repeat(64)), "a".repeat(64));
        assert_eq!(plain(&"a".repeat(65)).len(), 37);
        assert_ne!(plain(&"a".repeat(65)), plain(&"a".repeat(66)));
    }

    #[test]
    fn outcomes_read_as_the_model_expects() {
        let completed = |json: &str| outcome_text(&ToolOutcome::Completed { output: Json::from_trusted(json) });
        assert_eq!(completed(r#""a\nb""#), "a\nb");
        assert_eq!(completed(r#"{"exitCode":0}"#), r#"{"exitCode":0}"#);
        let failed = outcome_text(&ToolOutcome::failed("sandbox.not_found", "No \"a\""));
        assert_eq!(failed, r#"{"error":{"code":"sandbox.not_found","message":"No \"a\""}}"#);
    }
}
