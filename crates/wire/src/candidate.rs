//! A model's answer as JSON: in the journal's outcomes and in the transcript.
//!
//! Content (a tool's input and output, a signature) stands as a string that holds its text: it is kept byte for byte,
//! and however deep it nests, what holds it can be read. Readers pass over members that they do not know, so that a
//! newer release's rows stay readable to an older one. They read a document in its place ([`Node`]): a transcript may
//! have thousands of candidates.

use std::borrow::Cow;

use nylorun_domain::id::CallId;
use nylorun_domain::json::{Json, Node, Text, Value};
use nylorun_domain::model::{Candidate, FinishReason, ModelRef, OutputPart, ToolCall, ToolInput, Usage, Window};

/// Why a stored document cannot be read: what it lacks, or what has another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub &'static str);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a stored document cannot be read: {}", self.0)
    }
}

impl std::error::Error for Unreadable {}

/// `{parts, finishReason, usage?, size?, model: {provider, model}, window?: {context, output}}`
pub fn to_value(candidate: &Candidate) -> Value {
    let mut members = vec![
        ("parts", Value::Array(candidate.parts.iter().map(part_to_value).collect())),
        ("finishReason", Value::from(candidate.finish.as_str())),
        ("model", model_to_value(&candidate.model)),
    ];
    members.extend(candidate.usage.as_ref().map(|usage| ("usage", usage_to_value(usage))));
    members.extend(candidate.size.map(|size| ("size", Value::from(size))));
    members.extend(candidate.window.map(|window| {
        ("window", Value::object([("context", Value::from(window.context)), ("output", Value::from(window.output))]))
    }));
    Value::object(members)
}

/// Reads [`to_value`]'s form.
pub fn from_node(node: Node<'_>) -> Result<Candidate, Unreadable> {
    let window = node
        .get("window")
        .map(|window| Ok(Window { context: int(window, "context")?, output: int(window, "output")? }));
    // A transcript holds thousands of these lists, most of one part: they get no room for more.
    let mut parts = Vec::with_capacity(elements(node, "parts")?.count());
    for part in elements(node, "parts")? {
        parts.push(part_from_node(part)?);
    }
    Ok(Candidate {
        parts,
        finish: FinishReason::from_wire(&string(node, "finishReason")?),
        usage: node.get("usage").map(usage_from_node).transpose()?,
        size: node.get("size").map(|_| int(node, "size")).transpose()?,
        model: model_from_node(node.get("model").ok_or(Unreadable("model"))?)?,
        window: window.transpose()?,
    })
}

fn part_to_value(part: &OutputPart) -> Value {
    match part {
        OutputPart::Text(text) => Value::object([("type", Value::from("text")), ("text", Value::from(text.clone()))]),
        OutputPart::Reasoning { text, signature } => {
            let mut members = vec![("type", Value::from("reasoning")), ("text", Value::from(text.clone()))];
            members.extend(signature.as_ref().map(|signature| ("signature", verbatim(signature))));
            Value::object(members)
        }
        OutputPart::ToolCall(call) => {
            let input = match &call.input {
                ToolInput::Json(json) => ("input", verbatim(json)),
                ToolInput::Malformed(text) => ("malformed", Value::from(text.clone())),
            };
            Value::object([
                ("type", Value::from("tool-call")),
                ("callId", Value::from(call.call_id.as_str())),
                ("name", Value::from(call.name.as_str())),
                input,
            ])
        }
    }
}

fn part_from_node(node: Node<'_>) -> Result<OutputPart, Unreadable> {
    match &*string(node, "type")? {
        "text" => Ok(OutputPart::Text(text(node, "text")?)),
        "reasoning" => Ok(OutputPart::Reasoning {
            text: text(node, "text")?,
            signature: node.get("signature").map(|_| json(node, "signature")).transpose()?,
        }),
        "tool-call" => Ok(OutputPart::ToolCall(ToolCall {
            call_id: CallId::from_trusted(string(node, "callId")?),
            name: string(node, "name")?.into_owned(),
            input: match node.get("malformed") {
                Some(_) => ToolInput::Malformed(text(node, "malformed")?),
                None => ToolInput::Json(json(node, "input")?),
            },
        })),
        _ => Err(Unreadable("the type of a part")),
    }
}

/// `{provider, model}`
pub fn model_to_value(model: &ModelRef) -> Value {
    Value::object([("provider", Value::from(model.provider.as_str())), ("model", Value::from(model.model.as_str()))])
}

/// Reads [`model_to_value`]'s form.
pub fn model_from_node(node: Node<'_>) -> Result<ModelRef, Unreadable> {
    Ok(ModelRef { provider: string(node, "provider")?.into_owned(), model: string(node, "model")?.into_owned() })
}

/// `{input, output, cached, cacheWrite, reasoning, total, costNanoUsd?}`: tokens, and billionths of a US dollar.
pub fn usage_to_value(usage: &Usage) -> Value {
    let mut members = vec![
        ("input", Value::from(usage.input)),
        ("output", Value::from(usage.output)),
        ("cached", Value::from(usage.cached)),
        ("cacheWrite", Value::from(usage.cache_write)),
        ("reasoning", Value::from(usage.reasoning)),
        ("total", Value::from(usage.total)),
    ];
    members.extend(usage.cost_nano_usd.map(|cost| ("costNanoUsd", Value::from(cost))));
    Value::object(members)
}

/// Reads [`usage_to_value`]'s form.
pub fn usage_from_node(node: Node<'_>) -> Result<Usage, Unreadable> {
    Ok(Usage {
        input: int(node, "input")?,
        output: int(node, "output")?,
        cached: int(node, "cached")?,
        cache_write: int(node, "cacheWrite")?,
        reasoning: int(node, "reasoning")?,
        total: int(node, "total")?,
        cost_nano_usd: node.get("costNanoUsd").map(|_| int(node, "costNanoUsd")).transpose()?,
    })
}

pub(crate) fn string<'d>(node: Node<'d>, name: &'static str) -> Result<Cow<'d, str>, Unreadable> {
    node.get(name).and_then(Node::as_str).ok_or(Unreadable(name))
}

pub(crate) fn elements<'d>(
    node: Node<'d>,
    name: &'static str,
) -> Result<impl Iterator<Item = Node<'d>> + use<'d>, Unreadable> {
    node.get(name).and_then(Node::elements).ok_or(Unreadable(name))
}

pub(crate) fn text(node: Node<'_>, name: &'static str) -> Result<Text, Unreadable> {
    node.get(name).and_then(Node::as_text).ok_or(Unreadable(name))
}

/// Content, as a string that holds its text.
pub(crate) fn verbatim(json: &Json) -> Value {
    Value::from(json.as_str())
}

/// Reads [`verbatim`]'s form.
pub(crate) fn json(node: Node<'_>, name: &'static str) -> Result<Json, Unreadable> {
    string(node, name).map(Json::from_trusted)
}

/// An integer, also one that no double holds.
pub(crate) fn int(node: Node<'_>, name: &'static str) -> Result<i64, Unreadable> {
    node.get(name).and_then(Node::as_i64).ok_or(Unreadable(name))
}
