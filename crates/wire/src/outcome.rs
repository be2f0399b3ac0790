//! What an effect gave, as JSON: the journal's `outcome` column.

use nylorun_domain::effect::{EffectKind, EffectOutcome};
use nylorun_domain::json::Value;
use nylorun_domain::model::{ModelFailure, ModelFailureCode, ModelOutcome};
use nylorun_domain::tool::ToolOutcome;

use crate::candidate::{self, Unreadable, json, string, verbatim};

/// `{kind: "completed", candidate}` or `{kind: "failed", code, message, retryable, usage?, model?}` of a model;
/// [`tool_to_value`]'s form of a tool.
pub fn to_value(outcome: &EffectOutcome) -> Value {
    match outcome {
        EffectOutcome::Model(ModelOutcome::Completed(candidate)) => {
            Value::object([("kind", Value::from("completed")), ("candidate", candidate::to_value(candidate))])
        }
        EffectOutcome::Model(ModelOutcome::Failed(failure)) => failure_to_value(failure),
        EffectOutcome::Tool(outcome) => tool_to_value(outcome),
    }
}

/// Reads [`to_value`]'s form of an effect of this kind.
pub fn from_value(kind: EffectKind, value: &Value) -> Result<EffectOutcome, Unreadable> {
    match kind {
        EffectKind::Model => model_from_value(value).map(EffectOutcome::Model),
        EffectKind::Tool => tool_from_value(value).map(EffectOutcome::Tool),
        EffectKind::Delegation | EffectKind::Agent => Err(Unreadable("the effect's kind has no outcome yet")),
    }
}

/// `{kind: "completed", output}`, the output as a string that holds its text, or `{kind: "failed", code, message}`.
pub fn tool_to_value(outcome: &ToolOutcome) -> Value {
    match outcome {
        ToolOutcome::Completed { output } => {
            Value::object([("kind", Value::from("completed")), ("output", verbatim(output))])
        }
        ToolOutcome::Failed { code, message } => Value::object([
            ("kind", Value::from("failed")),
            ("code", Value::from(code.as_str())),
            ("message", Value::from(message.as_str())),
        ]),
    }
}

/// Reads [`tool_to_value`]'s form.
pub fn tool_from_value(value: &Value) -> Result<ToolOutcome, Unreadable> {
    match string(value, "kind")? {
        "completed" => Ok(ToolOutcome::Completed { output: json(value, "output")? }),
        "failed" => Ok(ToolOutcome::failed(string(value, "code")?, string(value, "message")?)),
        _ => Err(Unreadable("the kind of an outcome")),
    }
}

fn failure_to_value(failure: &ModelFailure) -> Value {
    let mut members = vec![
        ("kind", Value::from("failed")),
        ("code", Value::from(failure.code.as_str())),
        ("message", Value::from(failure.message.as_str())),
        ("retryable", Value::from(failure.retryable)),
    ];
    members.extend(failure.usage.as_ref().map(|usage| ("usage", candidate::usage_to_value(usage))));
    members.extend(failure.model.as_ref().map(|model| ("model", candidate::model_to_value(model))));
    Value::object(members)
}

fn model_from_value(value: &Value) -> Result<ModelOutcome, Unreadable> {
    match string(value, "kind")? {
        "completed" => {
            let value = value.get("candidate").ok_or(Unreadable("candidate"))?;
            candidate::from_value(value).map(ModelOutcome::Completed)
        }
        "failed" => Ok(ModelOutcome::Failed(ModelFailure {
            code: ModelFailureCode::from_wire(string(value, "code")?).ok_or(Unreadable("code"))?,
            message: string(value, "message")?.to_owned(),
            retryable: value.get("retryable").and_then(Value::as_bool).ok_or(Unreadable("retryable"))?,
            usage: value.get("usage").map(candidate::usage_from_value).transpose()?,
            model: value.get("model").map(candidate::model_from_value).transpose()?,
        })),
        _ => Err(Unreadable("the kind of an outcome")),
    }
}
