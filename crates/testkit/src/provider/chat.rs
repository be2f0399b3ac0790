//! Streams of Chat Completions.

use serde_json::{Value, json};

use super::{Reply, halves};

/// A tool call: its id, the tool's name and its arguments as the model wrote them.
pub type Call<'a> = (&'a str, &'a str, &'a str);

/// A text in these pieces, with usage of 10 tokens in and 5 out.
pub fn text(pieces: &[&str]) -> Reply {
    let deltas = pieces.iter().map(|piece| chunk(&json!({ "content": piece }), Value::Null));
    answer(deltas.collect(), "stop", json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 }))
}

/// Tool calls, the pieces of their arguments interleaved, as parallel calls come.
pub fn tools(calls: &[Call<'_>]) -> Reply {
    let mut deltas = Vec::new();
    for (index, (id, name, _)) in calls.iter().enumerate() {
        let call =
            json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } });
        deltas.push(chunk(&json!({ "tool_calls": [call] }), Value::Null));
    }
    for half in [0, 1] {
        for (index, (_, _, arguments)) in calls.iter().enumerate() {
            let piece = halves(arguments).nth(half);
            let call = json!({ "index": index, "function": { "arguments": piece } });
            deltas.push(chunk(&json!({ "tool_calls": [call] }), Value::Null));
        }
    }
    answer(deltas, "tool_calls", json!({ "prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28 }))
}

/// A whole answer of these chunks, with this finish reason and usage; `null` usage is left out.
pub fn answer(mut chunks: Vec<String>, finish: &str, usage: Value) -> Reply {
    chunks.insert(0, chunk(&json!({ "role": "assistant", "content": "" }), Value::Null));
    chunks.push(chunk(&json!({}), finish.into()));
    if !usage.is_null() {
        chunks.push(json!({ "object": "chat.completion.chunk", "choices": [], "usage": usage }).to_string());
    }
    chunks.push("[DONE]".to_owned());
    Reply::stream(chunks.iter().map(String::as_str))
}

/// One chunk.
pub fn chunk(delta: &Value, finish: Value) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    json!({ "id": "c-1", "object": "chat.completion.chunk", "model": "stub", "choices": [choice] }).to_string()
}
