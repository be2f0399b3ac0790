//! What an effect gave, as JSON: the journal's `outcome` column.

use nylorun_domain::compaction::{Compacted, Trigger};
use nylorun_domain::effect::{EffectKind, EffectOutcome};
use nylorun_domain::id::EffectId;
use nylorun_domain::json::{Node, Value};
use nylorun_domain::model::{ModelFailure, ModelFailureCode, ModelOutcome};
use nylorun_domain::tool::ToolOutcome;

use crate::candidate::{self, Unreadable, elements, int, json, string, verbatim};
use crate::transcript::{input_from_node, input_to_value};

/// `{kind: "completed", candidate}` or `{kind: "failed", code, message, retryable, usage?, model?}` of a model, with
/// `summary: true` and `compacted?` when a summary was asked for; [`tool_to_value`]'s form of a tool, or
/// `{kind: "asked", wanted, prompt}` when it asks; `{kind: "steered", model, inputs}` of messages that were read.
pub fn to_value(outcome: &EffectOutcome) -> Value {
    match outcome {
        EffectOutcome::Model(outcome) => Value::object(model_members(outcome)),
        EffectOutcome::Summary { outcome, compacted } => {
            let mut members = model_members(outcome);
            members.push(("summary", Value::Bool(true)));
            members.extend(compacted.map(|compacted| ("compacted", compacted_to_value(&compacted))));
            Value::object(members)
        }
        EffectOutcome::Tool(outcome) => tool_to_value(outcome),
        EffectOutcome::Asked { kind, prompt } => Value::object([
            ("kind", Value::from("asked")),
            ("wanted", Value::from(kind.as_str())),
            ("prompt", Value::from(prompt.as_str())),
        ]),
        EffectOutcome::Steer { model, inputs } => Value::object([
            ("kind", Value::from("steered")),
            ("model", Value::from(model.as_str())),
            ("inputs", Value::Array(inputs.iter().map(input_to_value).collect())),
        ]),
    }
}

/// Reads [`to_value`]'s form of an effect of this kind.
pub fn from_node(kind: EffectKind, node: Node<'_>) -> Result<EffectOutcome, Unreadable> {
    match kind {
        EffectKind::Model if node.get("summary").is_some() => Ok(EffectOutcome::Summary {
            outcome: model_from_node(node)?,
            compacted: node.get("compacted").map(compacted_from_node).transpose()?,
        }),
        EffectKind::Model => model_from_node(node).map(EffectOutcome::Model),
        EffectKind::Tool if string(node, "kind")? == "asked" => Ok(EffectOutcome::Asked {
            kind: string(node, "wanted")?.into_owned(),
            prompt: string(node, "prompt")?.into_owned(),
        }),
        EffectKind::Tool => tool_from_node(node).map(EffectOutcome::Tool),
        EffectKind::Steer => Ok(EffectOutcome::Steer {
            model: EffectId::from_trusted(string(node, "model")?),
            inputs: elements(node, "inputs")?.map(input_from_node).collect::<Result<_, _>>()?,
        }),
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
pub fn tool_from_node(node: Node<'_>) -> Result<ToolOutcome, Unreadable> {
    match &*string(node, "kind")? {
        "completed" => Ok(ToolOutcome::Completed { output: json(node, "output")? }),
        "failed" => Ok(ToolOutcome::failed(&string(node, "code")?, string(node, "message")?)),
        _ => Err(Unreadable("the kind of an outcome")),
    }
}

/// `{trigger, tokensBefore, tokensAfter}`
pub(crate) fn compacted_to_value(compacted: &Compacted) -> Value {
    Value::object([
        ("trigger", Value::from(compacted.trigger.as_str())),
        ("tokensBefore", Value::from(compacted.tokens_before)),
        ("tokensAfter", Value::from(compacted.tokens_after)),
    ])
}

/// Reads [`compacted_to_value`]'s form.
pub(crate) fn compacted_from_node(node: Node<'_>) -> Result<Compacted, Unreadable> {
    Ok(Compacted {
        trigger: Trigger::from_wire(&string(node, "trigger")?).ok_or(Unreadable("trigger"))?,
        tokens_before: int(node, "tokensBefore")?,
        tokens_after: int(node, "tokensAfter")?,
    })
}

fn model_members(outcome: &ModelOutcome) -> Vec<(&'static str, Value)> {
    match outcome {
        ModelOutcome::Completed(candidate) => {
            vec![("kind", Value::from("completed")), ("candidate", candidate::to_value(candidate))]
        }
        ModelOutcome::Failed(failure) => failure_members(failure),
    }
}

fn failure_members(failure: &ModelFailure) -> Vec<(&'static str, Value)> {
    let mut members = vec![
        ("kind", Value::from("failed")),
        ("code", Value::from(failure.code.as_str())),
        ("message", Value::from(failure.message.as_str())),
        ("retryable", Value::from(failure.retryable)),
    ];
    members.extend(failure.usage.as_ref().map(|usage| ("usage", candidate::usage_to_value(usage))));
    members.extend(failure.model.as_ref().map(|model| ("model", candidate::model_to_value(model))));
    members
}

fn model_from_node(node: Node<'_>) -> Result<ModelOutcome, Unreadable> {
    match &*string(node, "kind")? {
        "completed" => {
            let candidate = node.get("candidate").ok_or(Unreadable("candidate"))?;
            candidate::from_node(candidate).map(ModelOutcome::Completed)
        }
        "failed" => Ok(ModelOutcome::Failed(ModelFailure {
            code: ModelFailureCode::from_wire(&string(node, "code")?).ok_or(Unreadable("code"))?,
            message: string(node, "message")?.into_owned(),
            retryable: node.get("retryable").and_then(Node::as_bool).ok_or(Unreadable("retryable"))?,
            usage: node.get("usage").map(candidate::usage_from_node).transpose()?,
            model: node.get("model").map(candidate::model_from_node).transpose()?,
        })),
        _ => Err(Unreadable("the kind of an outcome")),
    }
}
