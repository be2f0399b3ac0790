//! Streams of Messages.

use serde_json::{Value, json};

use super::{Reply, halves};

/// One content block of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Block<'a> {
    /// Text in pieces.
    Text(&'a [&'a str]),
    /// Thinking and its signature.
    Thinking(&'a str, &'a str),
    /// Thinking that only the provider can read.
    Redacted(&'a str),
    /// A tool call: its id, the tool's name and its input as the model wrote it.
    Tool(&'a str, &'a str, &'a str),
}

/// A text in these pieces.
pub fn text(pieces: &[&str]) -> Reply {
    answer(&[Block::Text(pieces)], "end_turn")
}

/// An answer of these blocks: 12 tokens in, 3 read from the cache, 4 written to it, 7 out.
pub fn answer(blocks: &[Block<'_>], stop_reason: &str) -> Reply {
    let input = json!({
        "input_tokens": 12, "output_tokens": 1,
        "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4,
    });
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": input });
    let mut events = vec![json!({ "type": "message_start", "message": message }), json!({ "type": "ping" })];
    for (index, block) in blocks.iter().enumerate() {
        events.extend(block_events(index, *block));
    }
    let delta = json!({ "stop_reason": stop_reason, "stop_sequence": null });
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 7 } }));
    events.push(json!({ "type": "message_stop" }));
    stream(&events)
}

/// An event stream of these events, named by their `type`.
pub fn stream(events: &[Value]) -> Reply {
    let named: Vec<_> =
        events.iter().map(|event| (event["type"].as_str().unwrap_or_default(), event.to_string())).collect();
    Reply::named_stream(named.iter().map(|(name, data)| (*name, data.as_str())))
}

fn block_events(index: usize, block: Block<'_>) -> Vec<Value> {
    let start = |content: Value| json!({ "type": "content_block_start", "index": index, "content_block": content });
    let delta = |delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let mut events = match block {
        Block::Text(pieces) => {
            let pieces = pieces.iter().map(|piece| delta(json!({ "type": "text_delta", "text": piece })));
            [start(json!({ "type": "text", "text": "" }))].into_iter().chain(pieces).collect()
        }
        Block::Thinking(text, signature) => vec![
            start(json!({ "type": "thinking", "thinking": "", "signature": "" })),
            delta(json!({ "type": "thinking_delta", "thinking": text })),
            delta(json!({ "type": "signature_delta", "signature": signature })),
        ],
        Block::Redacted(data) => vec![start(json!({ "type": "redacted_thinking", "data": data }))],
        Block::Tool(id, name, input) => {
            let pieces = halves(input).map(|half| delta(json!({ "type": "input_json_delta", "partial_json": half })));
            let begun = start(json!({ "type": "tool_use", "id": id, "name": name, "input": {} }));
            [begun].into_iter().chain(pieces).collect()
        }
    };
    events.push(json!({ "type": "content_block_stop", "index": index }));
    events
}
