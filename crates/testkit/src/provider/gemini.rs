//! Streams of Gemini's `streamGenerateContent`.

use serde_json::{Value, json};

use super::Reply;

/// A text in these pieces.
pub fn text(pieces: &[&str]) -> Reply {
    answer(&pieces.iter().map(|piece| json!({ "text": piece })).collect::<Vec<_>>(), "STOP")
}

/// An answer of these parts, each in an event of its own.
pub fn answer(parts: &[Value], finish: &str) -> Reply {
    stream(&events(parts, finish))
}

/// The events of an answer: 12 tokens in, of which 3 were read from the cache, and 7 out, of which 2 were thoughts.
pub fn events(parts: &[Value], finish: &str) -> Vec<Value> {
    let usage = |candidates: u32, thoughts: u32| {
        json!({ "promptTokenCount": 12, "cachedContentTokenCount": 3, "candidatesTokenCount": candidates,
            "thoughtsTokenCount": thoughts, "totalTokenCount": 12 + candidates + thoughts })
    };
    let event = |part: &Value| {
        let content = json!({ "role": "model", "parts": [part] });
        json!({ "candidates": [{ "content": content, "index": 0 }], "usageMetadata": usage(1, 2) })
    };
    let mut events: Vec<_> = parts.iter().map(event).collect();
    events.push(json!({
        "candidates": [{ "content": { "role": "model", "parts": [{ "text": "" }] }, "finishReason": finish }],
        "usageMetadata": usage(5, 2),
        "modelVersion": "stub",
    }));
    events
}

/// An event stream of these events.
pub fn stream(events: &[Value]) -> Reply {
    let events: Vec<_> = events.iter().map(Value::to_string).collect();
    Reply::stream(events.iter().map(String::as_str))
}

/// A function call.
pub fn call(name: &str, args: Value) -> Value {
    json!({ "functionCall": { "name": name, "args": args } })
}
