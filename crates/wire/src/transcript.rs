//! Transcript entries as JSON, in the payload of `transcript.updated` (engine a.6, b.6).

use nylorun_domain::compaction::Compaction;
use nylorun_domain::id::{CallId, InvocationId};
use nylorun_domain::json::{Document, Node, Value, utf16_len};
use nylorun_domain::model::ToolResult;
use nylorun_domain::transcript::{Entry, Input};

use crate::candidate::{self, Unreadable, elements, json, string, text, verbatim};
use crate::outcome::{self, compacted_from_node, compacted_to_value};

/// An entry's length as JSON, in UTF-16 units: what [`Edit::split`](nylorun_domain::transcript::Edit::split) counts.
pub fn entry_len(entry: &Entry) -> usize {
    utf16_len(entry_to_value(entry).to_json().as_str())
}

/// `{type: "input", content | data | parts}`, `{type: "candidate", invocationId, candidate}`,
/// `{type: "tool-results", results: [{callId, name, outcome}]}`,
/// `{type: "compaction", summary, compacted: {trigger, tokensBefore, tokensAfter}}` or `{type: "final", output}`.
pub fn entry_to_value(entry: &Entry) -> Value {
    match entry {
        Entry::Input(input) => Value::object([("type", Value::from("input")), input_member(input)]),
        Entry::Candidate { invocation_id, candidate } => Value::object([
            ("type", Value::from("candidate")),
            ("invocationId", Value::from(invocation_id.as_str())),
            ("candidate", candidate::to_value(candidate)),
        ]),
        Entry::ToolResults(results) => Value::object([
            ("type", Value::from("tool-results")),
            ("results", Value::Array(results.iter().map(result_to_value).collect())),
        ]),
        Entry::Compaction(Compaction { summary, compacted }) => Value::object([
            ("type", Value::from("compaction")),
            ("summary", Value::from(summary.clone())),
            ("compacted", compacted_to_value(compacted)),
        ]),
        Entry::Final { output } => Value::object([("type", Value::from("final")), ("output", verbatim(output))]),
    }
}

/// Entries, a line each: what is compact JSON has no line break of its own.
pub fn entries_to_lines<'e>(entries: impl Iterator<Item = &'e Entry>) -> String {
    let mut lines = String::new();
    for entry in entries {
        entry_to_value(entry).write(&mut lines);
        lines.push('\n');
    }
    lines
}

/// Reads [`entries_to_lines`]'s form, or any whole lines of it.
pub fn entries_from_lines(lines: &str) -> Result<Vec<Entry>, Unreadable> {
    let read = |line| entry_from_node(Document::parse(line).map_err(|_| Unreadable("an entry"))?.root());
    lines.lines().map(read).collect()
}

/// Reads [`entry_to_value`]'s form.
pub fn entry_from_node(node: Node<'_>) -> Result<Entry, Unreadable> {
    match &*string(node, "type")? {
        "input" => input_from_node(node).map(Entry::Input),
        "candidate" => Ok(Entry::Candidate {
            invocation_id: InvocationId::from_trusted(string(node, "invocationId")?),
            candidate: candidate::from_node(node.get("candidate").ok_or(Unreadable("candidate"))?)?.into(),
        }),
        "tool-results" => {
            elements(node, "results")?.map(result_from_node).collect::<Result<_, _>>().map(Entry::ToolResults)
        }
        "compaction" => Ok(Entry::Compaction(Compaction {
            summary: text(node, "summary")?,
            compacted: compacted_from_node(node.get("compacted").ok_or(Unreadable("compacted"))?)?,
        })),
        "final" => Ok(Entry::Final { output: json(node, "output")? }),
        _ => Err(Unreadable("the type of an entry")),
    }
}

/// `{content | data | parts}`, data as a string that holds its text.
pub fn input_to_value(input: &Input) -> Value {
    Value::object([input_member(input)])
}

fn input_member(input: &Input) -> (&'static str, Value) {
    match input {
        Input::Content(text) => ("content", Value::from(text.clone())),
        Input::Data(data) => ("data", verbatim(data)),
        Input::Parts(texts) => {
            let parts = texts
                .iter()
                .map(|text| Value::object([("type", Value::from("text")), ("text", Value::from(text.clone()))]));
            ("parts", Value::Array(parts.collect()))
        }
    }
}

/// Reads [`input_to_value`]'s form.
pub fn input_from_node(node: Node<'_>) -> Result<Input, Unreadable> {
    if node.get("content").is_some() {
        return text(node, "content").map(Input::Content);
    }
    if node.get("data").is_some() {
        return json(node, "data").map(Input::Data);
    }
    let parts = elements(node, "parts").map_err(|_| Unreadable("content, data or parts"))?;
    parts.map(|part| text(part, "text")).collect::<Result<_, _>>().map(Input::Parts)
}

fn result_to_value(result: &ToolResult) -> Value {
    Value::object([
        ("callId", Value::from(result.call_id.as_str())),
        ("name", Value::from(result.name.as_str())),
        ("outcome", outcome::tool_to_value(&result.outcome)),
    ])
}

fn result_from_node(node: Node<'_>) -> Result<ToolResult, Unreadable> {
    Ok(ToolResult {
        call_id: CallId::from_trusted(string(node, "callId")?),
        name: string(node, "name")?.into_owned(),
        outcome: outcome::tool_from_node(node.get("outcome").ok_or(Unreadable("outcome"))?)?,
    })
}

#[cfg(test)]
mod tests;
