//! Streams of Responses.

use serde_json::{Value, json};

use super::{Reply, halves};

/// One item of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A message in pieces, and its phase.
    Text(&'a [&'a str], &'a str),
    /// Reasoning: what the provider shows of it, and what only it can read.
    Reasoning(&'a str, &'a str),
    /// A function call: its id, the function's name and its arguments as the model wrote them.
    Call(&'a str, &'a str, &'a str),
}

/// A text in these pieces.
pub fn text(pieces: &[&str]) -> Reply {
    answer(&[Item::Text(pieces, "final_answer")])
}

/// A whole answer of these items.
pub fn answer(items: &[Item<'_>]) -> Reply {
    stream(&events(items, json!({ "status": "completed" })))
}

/// The events of an answer of these items, the last with these members of its response: 12 tokens in, of which 3 were
/// read from the cache and 4 written to it, and 7 out, of which 2 were reasoning.
pub fn events(items: &[Item<'_>], end: Value) -> Vec<Value> {
    let mut events = vec![
        json!({ "type": "response.created", "response": { "id": "resp_1", "status": "in_progress" } }),
        json!({ "type": "response.in_progress", "response": { "id": "resp_1", "status": "in_progress" } }),
    ];
    for (index, item) in items.iter().enumerate() {
        events.extend(item_events(index, *item));
    }
    let mut response = json!({
        "id": "resp_1",
        "object": "response",
        "output": items.iter().map(|item| whole(*item)).collect::<Vec<_>>(),
        "usage": {
            "input_tokens": 12, "input_tokens_details": { "cached_tokens": 3, "cache_write_tokens": 4 },
            "output_tokens": 7, "output_tokens_details": { "reasoning_tokens": 2 },
            "total_tokens": 19,
        },
    });
    if let (Some(response), Value::Object(end)) = (response.as_object_mut(), end) {
        response.extend(end);
    }
    let status = response["status"].as_str().unwrap_or("completed").to_owned();
    events.push(json!({ "type": format!("response.{status}"), "response": response }));
    events
}

/// An event stream of these events, named by their `type` and numbered.
pub fn stream(events: &[Value]) -> Reply {
    let named = events.iter().enumerate().map(|(number, event)| {
        let mut event = event.clone();
        event["sequence_number"] = number.into();
        (event["type"].as_str().unwrap_or_default().to_owned(), event.to_string())
    });
    let named: Vec<_> = named.collect();
    Reply::named_stream(named.iter().map(|(name, data)| (name.as_str(), data.as_str())))
}

/// An item as it stands when it is done.
fn whole(item: Item<'_>) -> Value {
    match item {
        Item::Text(pieces, phase) => {
            let content = json!([{ "type": "output_text", "text": pieces.concat(), "annotations": [] }]);
            json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": phase,
                "content": content })
        }
        Item::Reasoning(summary, encrypted) => {
            let summary =
                if summary.is_empty() { json!([]) } else { json!([{ "type": "summary_text", "text": summary }]) };
            json!({ "type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": encrypted })
        }
        Item::Call(id, name, arguments) => json!({ "type": "function_call", "id": "fc_1", "call_id": id,
            "name": name, "arguments": arguments, "status": "completed" }),
    }
}

/// An item as it stands when it begins.
fn begun(item: Item<'_>) -> Value {
    let mut begun = whole(item);
    for (member, empty) in [("content", json!([])), ("summary", json!([])), ("arguments", json!(""))] {
        if begun.get(member).is_some() {
            begun[member] = empty;
        }
    }
    if begun.get("encrypted_content").is_some() {
        begun["encrypted_content"] = "not whole yet".into();
    }
    begun
}

fn item_events(index: usize, item: Item<'_>) -> Vec<Value> {
    let delta = |kind: &str, delta: &str| {
        let kind = format!("response.{kind}.delta");
        json!({ "type": kind, "output_index": index, "item_id": "i", "delta": delta })
    };
    let mut events = vec![json!({ "type": "response.output_item.added", "output_index": index, "item": begun(item) })];
    match item {
        Item::Text(pieces, _) => {
            events.push(json!({ "type": "response.content_part.added", "output_index": index, "content_index": 0 }));
            events.extend(pieces.iter().map(|piece| delta("output_text", piece)));
        }
        Item::Reasoning("", _) => {}
        Item::Reasoning(summary, _) => {
            events.push(json!({ "type": "response.reasoning_summary_part.added", "output_index": index }));
            events.extend(halves(summary).map(|half| delta("reasoning_summary_text", half)));
        }
        Item::Call(_, _, arguments) => {
            events.extend(halves(arguments).map(|half| delta("function_call_arguments", half)));
        }
    }
    events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": whole(item) }));
    events
}
