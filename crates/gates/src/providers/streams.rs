//! Properties of every reader of an answer: cuts of the stream mean nothing, and nothing that a provider sends makes
//! it panic.

use std::sync::LazyLock;

use nylorun_domain::model::{FinishReason, OutputPart};
use nylorun_testkit::provider::{Reply, chat, gemini, messages, responses};
use proptest::prelude::*;
use serde_json::json;

use super::{Answer, Api};
use crate::catalogue::Catalogue;
use crate::failure::Fault;
use crate::recorded::read_answer;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::load(None).unwrap());

/// The APIs with a provider that speaks each, and an answer of every kind of part in it.
fn answers() -> [(Api, &'static str, Reply); 4] {
    let call = r#"{"command":"é𝄞"}"#;
    let detail = json!({"type": "reasoning.text", "text": "Hm.", "index": 0});
    let mut signed = gemini::call("bash", json!({"command": "é𝄞"}));
    signed["thoughtSignature"] = "s".into();
    let chunks = vec![
        chat::chunk(&json!({"reasoning": "Hm.", "reasoning_details": [detail]}), serde_json::Value::Null),
        chat::chunk(&json!({"content": "é𝄞"}), serde_json::Value::Null),
        chat::chunk(
            &json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash", "arguments": call}}]}),
            serde_json::Value::Null,
        ),
    ];
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.1});
    [
        (Api::Chat, "openrouter", chat::answer(chunks, "tool_calls", usage)),
        (
            Api::Messages,
            "anthropic",
            messages::answer(
                &[
                    messages::Block::Thinking("Hm.", "s"),
                    messages::Block::Redacted("d"),
                    messages::Block::Text(&["é", "𝄞"]),
                    messages::Block::Tool("c", "bash", call),
                ],
                "tool_use",
            ),
        ),
        (
            Api::Responses,
            "openai",
            responses::answer(&[
                responses::Item::Reasoning("Hm.", "e"),
                responses::Item::Text(&["é", "𝄞"], "commentary"),
                responses::Item::Call("c", "bash", call),
            ]),
        ),
        (
            Api::Gemini,
            "google",
            gemini::answer(&[json!({"text": "Hm.", "thought": true}), json!({"text": "é𝄞"}), signed], "STOP"),
        ),
    ]
}

fn read<'a>(api: Api, provider: &str, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Result<Answer, Fault>, String) {
    read_answer(api, provider, &CATALOGUE, chunks)
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    for (api, provider, reply) in answers() {
        let bytes = reply.bytes();
        let whole = read(api, provider, [bytes.as_slice()]);
        let answer = whole.0.as_ref().unwrap();
        assert_eq!((answer.finish, whole.1.as_str()), (FinishReason::ToolCalls, "é𝄞"), "{api:?}");
        let kinds: Vec<_> = answer.parts.iter().map(kind).collect();
        assert_eq!((kinds.first(), kinds.last()), (Some(&"reasoning"), Some(&"call")), "{api:?}");
        for cut in 0..=bytes.len() {
            assert_eq!(read(api, provider, [&bytes[..cut], &bytes[cut..]]), whole, "{api:?} at {cut}");
        }
        assert_eq!(read(api, provider, bytes.chunks(1)), whole, "{api:?} byte by byte");
    }
}

#[test]
fn an_end_at_any_byte_is_survived() {
    for (api, provider, reply) in answers() {
        let bytes = reply.bytes();
        for end in 0..bytes.len() {
            let (answer, text) = read(api, provider, [&bytes[..end]]);
            let texts: String = answer.unwrap().parts.iter().filter_map(said).collect();
            assert_eq!(texts, text, "{api:?} up to {end}");
        }
    }
}

fn kind(part: &OutputPart) -> &'static str {
    match part {
        OutputPart::Text(_) => "text",
        OutputPart::Reasoning { .. } => "reasoning",
        OutputPart::ToolCall(_) => "call",
    }
}

fn said(part: &OutputPart) -> Option<String> {
    match part {
        OutputPart::Text(text) => Some(text.lossy().into_owned()),
        OutputPart::Reasoning { .. } | OutputPart::ToolCall(_) => None,
    }
}

/// Words that mean something to one of the readers, as names and as values.
const WORDS: &[&str] = &[
    "arguments",
    "args",
    "blockReason",
    "candidates",
    "choices",
    "code",
    "content",
    "content_block",
    "cost",
    "data",
    "delta",
    "encrypted_content",
    "error",
    "finishReason",
    "finish_reason",
    "function",
    "functionCall",
    "id",
    "index",
    "input",
    "input_json_delta",
    "item",
    "message",
    "message_delta",
    "message_start",
    "name",
    "object",
    "output",
    "output_index",
    "partial_json",
    "parts",
    "phase",
    "promptFeedback",
    "reasoning",
    "reasoning_details",
    "refusal",
    "response",
    "response.completed",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.function_call_arguments.delta",
    "response.reasoning_summary_text.delta",
    "signature",
    "signature_delta",
    "status",
    "stop_reason",
    "summary",
    "text",
    "text_delta",
    "thinking",
    "thinking_delta",
    "thought",
    "thoughtSignature",
    "tool_calls",
    "tool_use",
    "type",
    "usage",
    "usageMetadata",
    "content_block_start",
    "content_block_delta",
    "function_call",
    "redacted_thinking",
    "reasoning.text",
    "incomplete",
    "prompt_tokens",
    "input_tokens",
    "promptTokenCount",
    "completion_tokens",
    "reasoning_content",
];

/// JSON that might be an event: names that readers look for, over values of any type.
fn event() -> impl Strategy<Value = serde_json::Value> {
    let word = || proptest::sample::select(WORDS);
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        (-3i64..4).prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        any::<f64>().prop_map(|value| json!(value)),
        word().prop_map(|value| json!(value)),
        "\\PC{0,4}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::vec((word(), inner), 0..6).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<serde_json::Value>()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_events_make_a_reader_panic(events in proptest::collection::vec(event(), 0..12)) {
        let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        for (api, provider, _) in answers() {
            let _ = read(api, provider, [stream.as_bytes()]);
        }
    }

    #[test]
    fn no_change_of_a_stream_makes_a_reader_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..20),
    ) {
        for (api, provider, reply) in answers() {
            let mut bytes = reply.bytes();
            for (at, byte, change) in &changes {
                let at = at.index(bytes.len());
                match change {
                    0 => bytes[at] = *byte,
                    1 => bytes.insert(at, *byte),
                    2 => drop(bytes.remove(at)),
                    // Lines twice, or in another order.
                    _ => bytes.extend_from_within(at..),
                }
            }
            let _ = read(api, provider, bytes.chunks(7));
        }
    }
}
