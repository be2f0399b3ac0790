//! Messages against the stub.

use std::sync::Arc;

use nylorun_domain::json::{Json, Text};
use nylorun_domain::model::{
    Candidate, FinishReason, ModelFailureCode, OutputPart, Prompt, PromptItem, ToolInput, Usage, Window,
};
use nylorun_domain::tool::ToolOutcome;
use nylorun_testkit::provider::messages::{self, Block};
use nylorun_testkit::provider::{ProviderStub, Reply};
use serde_json::json;

use crate::support::{
    CANARY, access, ask_as, assistant, completed, failed, hello, image, json as input, model, output, prompt, settings,
    signed, tool, tool_call, tool_result, user,
};

const MODEL: &str = "claude-haiku-4-5";

async fn ask(stub: &ProviderStub, prompt: Prompt) -> Candidate {
    completed(ask_as(access(stub, "anthropic", MODEL), prompt).await)
}

fn signature(json: &str) -> Option<Json> {
    Some(Json::from_trusted(json))
}

#[tokio::test]
async fn every_kind_of_block_is_read() {
    let stub = ProviderStub::start().await.unwrap();
    let blocks = [
        Block::Thinking("Hm.", "sig=="),
        Block::Redacted("blob=="),
        Block::Text(&["Hé", "llo 𝄞"]),
        Block::Tool("toolu_1", "bash", r#"{"command":"ls"}"#),
        Block::Tool("toolu_2", "glob", ""),
        Block::Tool("toolu_3", "read", r#"{"path":"#),
    ];
    stub.then(messages::answer(&blocks, "tool_use").in_chunks_of(5));
    let (outcome, deltas) = ask_as(access(&stub, "anthropic", MODEL), hello()).await;
    let expected = Candidate {
        parts: vec![
            OutputPart::Reasoning { text: "Hm.".into(), signature: signature(r#"{"signature":"sig=="}"#) },
            OutputPart::Reasoning { text: "".into(), signature: signature(r#"{"data":"blob=="}"#) },
            OutputPart::Text("Héllo 𝄞".into()),
            tool_call("toolu_1", "bash", input(r#"{"command":"ls"}"#)),
            tool_call("toolu_2", "glob", input("{}")),
            tool_call("toolu_3", "read", ToolInput::Malformed(r#"{"path":"#.into())),
        ],
        finish: FinishReason::ToolCalls,
        size: Some(26),
        usage: Some(Usage {
            input: 12,
            output: 7,
            cached: 3,
            cache_write: 4,
            reasoning: 0,
            total: 26,
            // 12 at 1,000 nano-dollars, 7 at 5,000, 3 at 100, 4 at 1,250.
            cost_nano_usd: Some(52_300),
        }),
        model: model("anthropic", MODEL),
        window: Some(Window { context: 200_000, output: 64_000 }),
    };
    assert_eq!(completed((outcome, deltas.clone())), expected);
    assert_eq!(deltas.text(1), "Héllo 𝄞");
}

#[tokio::test]
async fn the_request_is_exactly_this() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(messages::text(&["ok"]));
    let thought = |signature| OutputPart::Reasoning { text: "Hm.".into(), signature };
    let items = vec![
        PromptItem::User(vec!["one".into(), Text::from_utf16(vec![0x74, 0xd800]).into(), image(), "".into()]),
        assistant(
            model("anthropic", MODEL),
            vec![
                thought(signature(r#"{"signature":"sig=="}"#)),
                thought(None),
                OutputPart::Reasoning { text: "".into(), signature: signature(r#"{"data":"blob=="}"#) },
                OutputPart::Text("Looking.".into()),
                tool_call("call|1", "bash", input(r#"{"n":1.0}"#)),
                tool_call("call_2", "bash", input("[1]")),
                tool_call("call_3", "bash", ToolInput::Malformed("{".into())),
            ],
        ),
        PromptItem::ToolResults(vec![
            tool_result("call|1", "bash", output(r#""text""#)),
            tool_result("call_2", "bash", ToolOutcome::failed("tool.failed", "no")),
            tool_result("call_3", "bash", output("null")),
        ]),
        user("go on"),
        assistant(model("anthropic", MODEL), Vec::new()),
        user("  "),
        assistant(
            model("anthropic", "claude-opus-5"),
            vec![thought(signature(r#"{"signature":"s"}"#)), OutputPart::Text("x".into())],
        ),
        user("last"),
    ];
    let asked = Prompt {
        instructions: vec!["Be brief.".into()],
        items: items.into_iter().map(Arc::new).collect(),
        tools: vec![tool("bash", r#"{"type":"object"}"#)],
        output_schema: None,
    };
    ask(&stub, asked).await;
    let requests = stub.requests();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(request.path, "/v1/messages");
    assert_eq!(request.header("x-api-key"), CANARY);
    assert_eq!(request.header("authorization"), "");
    assert_eq!(request.header("anthropic-version"), "2023-06-01");
    assert!(!String::from_utf8_lossy(&request.body).contains(CANARY));
    let cached = json!({"type": "ephemeral"});
    let expected = json!({
        "model": MODEL,
        "max_tokens": 64000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": cached}],
        "tools": [{"name": "bash", "description": "The bash.", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "t\u{fffd}"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "sig=="},
                {"type": "redacted_thinking", "data": "blob=="},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "call_1", "name": "bash", "input": {"n": 1.0}},
                {"type": "tool_use", "id": "call_2", "name": "bash", "input": {"input": [1]}},
                {"type": "tool_use", "id": "call_3", "name": "bash", "input": {"malformed": "{"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "text"},
                {"type": "tool_result", "tool_use_id": "call_2",
                 "content": r#"{"error":{"code":"tool.failed","message":"no"}}"#, "is_error": true},
                {"type": "tool_result", "tool_use_id": "call_3", "content": "null"},
                {"type": "text", "text": "go on"},
                {"type": "text", "text": "(empty)", "cache_control": cached},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "x"}]},
            {"role": "user", "content": [{"type": "text", "text": "last", "cache_control": cached}]},
        ],
        "stream": true,
    });
    assert_eq!(request.json(), expected);
}

#[tokio::test]
async fn without_instructions_the_tools_end_the_cached_beginning() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(messages::text(&["ok"]));
    let tools = vec![tool("a", "{}"), tool("b", "{}")];
    ask(&stub, Prompt { tools, ..hello() }).await;
    let body = stub.requests()[0].json();
    assert_eq!(body.get("system"), None);
    assert_eq!(body["tools"][0].get("cache_control"), None);
    assert_eq!(body["tools"][1]["cache_control"], json!({"type": "ephemeral"}));
}

#[tokio::test]
async fn the_settings_ask_for_thinking_in_the_models_way() {
    let table = [
        ("claude-haiku-4-5", "{}", json!(null)),
        ("claude-haiku-4-5", r#"{"reasoning":true}"#, json!({"type": "enabled", "budget_tokens": 8192})),
        (
            "claude-haiku-4-5",
            r#"{"reasoning":true,"maxTokens":4096}"#,
            json!({"type": "enabled", "budget_tokens": 2048}),
        ),
        ("claude-haiku-4-5", r#"{"reasoning":true,"maxTokens":1500}"#, json!(null)),
        ("claude-haiku-4-5", r#"{"reasoning":false}"#, json!({"type": "disabled"})),
        ("claude-opus-5", r#"{"reasoning":true}"#, json!({"type": "adaptive"})),
        ("claude-sonnet-5-5", r#"{"reasoning":false}"#, json!({"type": "between_tools"})),
        ("claude-opus-5-5", r#"{"reasoning":false}"#, json!(null)),
    ];
    for (model, given, thinking) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(messages::text(&["ok"]));
        completed(ask_as(settings(access(&stub, "anthropic", model), given), hello()).await);
        assert_eq!(stub.requests()[0].json()["thinking"], thinking, "{model} {given}");
    }
}

#[tokio::test]
async fn a_budget_waits_until_the_answer_that_goes_on_began_with_thinking() {
    let thought = signed("Hm.", r#"{"signature":"sig=="}"#);
    for (thoughts, is_asked) in [(vec![thought], true), (Vec::new(), false)] {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(messages::text(&["ok"]));
        let called = [thoughts, vec![tool_call("toolu_1", "bash", input("{}"))]].concat();
        let results = PromptItem::ToolResults(vec![tool_result("toolu_1", "bash", output("1"))]);
        let asked = prompt(vec![user("a"), assistant(model("anthropic", MODEL), called), results]);
        completed(ask_as(settings(access(&stub, "anthropic", MODEL), r#"{"reasoning":true}"#), asked).await);
        assert_eq!(stub.requests()[0].json().get("thinking").is_some(), is_asked);
    }
}

#[tokio::test]
async fn thinking_that_the_provider_refuses_is_left_out() {
    let stub = ProviderStub::start().await.unwrap();
    let message = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let refused = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    stub.then(Reply::json(400, &refused)).then(messages::text(&["ok"]));
    let earlier = vec![signed("Hm.", r#"{"signature":"of another account"}"#), OutputPart::Text("x".into())];
    ask(&stub, prompt(vec![user("a"), assistant(model("anthropic", MODEL), earlier), user("b")])).await;
    let blocks = |at: usize| stub.requests()[at].json()["messages"][1]["content"].as_array().map(Vec::len);
    assert_eq!((blocks(0), blocks(1)), (Some(2), Some(1)));
}

#[tokio::test]
async fn stop_reasons_are_mapped() {
    let table = [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::ContentFilter),
        ("pause_turn", FinishReason::Other),
    ];
    for (word, finish) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(messages::answer(&[Block::Text(&["x"])], word));
        assert_eq!(ask(&stub, hello()).await.finish, finish, "{word}");
    }
}

#[tokio::test]
async fn an_error_in_the_stream_is_retried_with_a_new_attempt() {
    let stub = ProviderStub::start().await.unwrap();
    let message = json!({"usage": {"input_tokens": 9, "output_tokens": 1}});
    let broken = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lost"}}),
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ];
    stub.then(messages::stream(&broken)).then(messages::text(&["found"]));
    let (outcome, deltas) = ask_as(access(&stub, "anthropic", MODEL), hello()).await;
    let candidate = completed((outcome, deltas.clone()));
    assert_eq!(candidate.text(), Text::from("found"));
    assert_eq!((deltas.text(1), deltas.text(2)), ("lost".into(), "found".into()));
    // The lost attempt is billed too: 9 and 1 tokens beside the answer's 12, 7, 3 and 4.
    let cost_nano_usd = Some(52_300 + 14_000);
    let usage = Usage { input: 21, output: 8, cached: 3, cache_write: 4, reasoning: 0, total: 36, cost_nano_usd };
    assert_eq!(candidate.usage, Some(usage));

    stub.then(messages::stream(&broken)).then(messages::stream(&broken)).then(messages::stream(&broken));
    let failure = failed(ask_as(access(&stub, "anthropic", MODEL), hello()).await);
    assert_eq!((failure.code, failure.retryable), (ModelFailureCode::Overloaded, true));
    assert_eq!(failure.message, "Overloaded");
    let usage = Usage { input: 27, output: 3, total: 30, cost_nano_usd: Some(42_000), ..Usage::default() };
    assert_eq!(failure.usage, Some(usage));
}

#[tokio::test]
async fn unknown_events_blocks_and_fields_are_passed_over() {
    let stub = ProviderStub::start().await.unwrap();
    let events = [
        json!({"type": "message_start", "message": {}}),
        json!({"type": "something_new", "x": 1}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}}),
        json!({"type": "content_block_delta", "index": 5, "delta": {"type": "text_delta", "text": "nowhere"}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "a"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": -4}}),
    ];
    stub.then(messages::stream(&events));
    let candidate = ask(&stub, prompt(vec![user("x")])).await;
    assert_eq!(candidate.parts, [OutputPart::Text("a".into())]);
    assert_eq!(candidate.usage, Some(Usage { cost_nano_usd: Some(0), ..Usage::default() }));
}

#[tokio::test]
async fn a_refused_request_says_why() {
    let stub = ProviderStub::start().await.unwrap();
    let error = json!({"type": "error", "error": {"type": "not_found_error", "message": "model: nope"}});
    stub.then(Reply::json(404, &error));
    let failure = failed(ask_as(access(&stub, "anthropic", "nope"), hello()).await);
    assert_eq!((failure.code, failure.retryable), (ModelFailureCode::InvalidRequest, false));
    assert_eq!(failure.message, "HTTP 404: model: nope");
    assert_eq!(failure.model, Some(model("anthropic", "nope")));
    assert_eq!(stub.requests()[0].json()["max_tokens"], json!(8192));
}
