//! Transcript entries as JSON, in the payload of `transcript.updated` (engine a.6, b.6).

use nylorun_domain::compaction::Compaction;
use nylorun_domain::id::{CallId, InvocationId};
use nylorun_domain::json::{Value, utf16_len};
use nylorun_domain::model::ToolResult;
use nylorun_domain::transcript::{Entry, Input};

use crate::candidate::{self, Unreadable, json, string, text, verbatim};
use crate::outcome::{self, compacted_from_value, compacted_to_value};

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

/// Reads [`entry_to_value`]'s form.
pub fn entry_from_value(value: &Value) -> Result<Entry, Unreadable> {
    match string(value, "type")? {
        "input" => input_from_value(value).map(Entry::Input),
        "candidate" => Ok(Entry::Candidate {
            invocation_id: InvocationId::from_trusted(string(value, "invocationId")?),
            candidate: candidate::from_value(value.get("candidate").ok_or(Unreadable("candidate"))?)?,
        }),
        "tool-results" => {
            let results = value.get("results").and_then(Value::as_array).ok_or(Unreadable("results"))?;
            results.iter().map(result_from_value).collect::<Result<_, _>>().map(Entry::ToolResults)
        }
        "compaction" => Ok(Entry::Compaction(Compaction {
            summary: text(value, "summary")?,
            compacted: compacted_from_value(value.get("compacted").ok_or(Unreadable("compacted"))?)?,
        })),
        "final" => Ok(Entry::Final { output: json(value, "output")? }),
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
pub fn input_from_value(value: &Value) -> Result<Input, Unreadable> {
    if value.get("content").is_some() {
        return text(value, "content").map(Input::Content);
    }
    if value.get("data").is_some() {
        return json(value, "data").map(Input::Data);
    }
    let parts = value.get("parts").and_then(Value::as_array).ok_or(Unreadable("content, data or parts"))?;
    parts.iter().map(|part| text(part, "text")).collect::<Result<_, _>>().map(Input::Parts)
}

fn result_to_value(result: &ToolResult) -> Value {
    Value::object([
        ("callId", Value::from(result.call_id.as_str())),
        ("name", Value::from(result.name.as_str())),
        ("outcome", outcome::tool_to_value(&result.outcome)),
    ])
}

fn result_from_value(value: &Value) -> Result<ToolResult, Unreadable> {
    Ok(ToolResult {
        call_id: CallId::from_trusted(string(value, "callId")?),
        name: string(value, "name")?.to_owned(),
        outcome: outcome::tool_from_value(value.get("outcome").ok_or(Unreadable("outcome"))?)?,
    })
}

#[cfg(test)]
mod tests;
