//! Chat Completions against the stub.

use std::sync::Arc;

use nylorun_domain::json::{Json, Text};
use nylorun_domain::model::{
    Candidate, FinishReason, ModelFailureCode, OutputPart, Prompt, PromptItem, ToolInput, Usage, Window,
};
use nylorun_domain::tool::ToolOutcome;
use nylorun_testkit::provider::{ProviderStub, Reply, chat};
use serde_json::json;

use crate::support::{
    CANARY, access, ask, ask_as, assistant, completed, failed, hello, image, json as input, model, output, prompt,
    settings, signed, tool, tool_call, tool_result, user,
};

#[tokio::test]
async fn a_text_comes_in_deltas_and_whole() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::text(&["Hel", "lo, ", "wörld 𝄞"]));
    let (outcome, deltas) = ask(&stub, hello()).await;
    let expected = Candidate {
        parts: vec![OutputPart::Text("Hello, wörld 𝄞".into())],
        finish: FinishReason::Stop,
        size: Some(15),
        usage: Some(Usage { input: 10, output: 5, total: 15, cost_nano_usd: Some(0), ..Usage::default() }),
        model: model("custom", "m"),
        window: None,
    };
    assert_eq!(completed((outcome, deltas.clone())), expected);
    let pieces: Vec<_> = deltas.all().into_iter().map(|d| (d.attempt, d.index, d.text)).collect();
    assert_eq!(pieces, [(1, 0, "Hel".into()), (1, 1, "lo, ".into()), (1, 2, "wörld 𝄞".to_owned())]);
}

#[tokio::test]
async fn the_request_is_exactly_this() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::text(&["ok"]));
    let history = vec![
        PromptItem::User(vec!["one".into(), Text::from_utf16(vec![0x74, 0xd800]).into()]),
        assistant(
            model("custom", "m"),
            vec![
                OutputPart::Reasoning { text: "hidden".into(), signature: None },
                OutputPart::Text("Looking.".into()),
                tool_call("call_1", "bash", input(r#"{"command":"l\ud800s"}"#)),
                tool_call("call_2", "read", ToolInput::Malformed("{\"path\"".into())),
            ],
        ),
        PromptItem::ToolResults(vec![
            tool_result("call_1", "bash", output(r#"{"exitCode":0,"n":1.0}"#)),
            tool_result("call_2", "read", ToolOutcome::failed("tool.invalid-arguments", "not JSON")),
        ]),
        user("go on"),
    ];
    let asked = Prompt {
        instructions: vec!["Be brief.".into(), "Be kind.".into()],
        items: history.into_iter().map(Arc::new).collect(),
        tools: vec![tool("bash", r#"{"type":"object","properties":{"command":{"type":"string"}}}"#)],
        output_schema: Some(Json::from_trusted(r#"{"type":"object"}"#)),
    };
    completed(ask(&stub, asked).await);
    let requests = stub.requests();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.header("authorization"), format!("Bearer {CANARY}"));
    assert_eq!(request.header("content-type"), "application/json");
    assert!(!String::from_utf8_lossy(&request.body).contains(CANARY));
    let system = "Be brief.\n\nBe kind.\n\nYour final answer must be one JSON document that follows this JSON Schema, \
        with no other text:\n{\"type\":\"object\"}";
    let call = |id: &str, name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    let expected = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": "one\n\nt\u{fffd}"},
            {"role": "assistant", "content": "Looking.", "tool_calls": [
                call("call_1", "bash", "{\"command\":\"l\u{fffd}s\"}"),
                call("call_2", "read", r#"{"malformed":"{\"path\""}"#),
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": r#"{"exitCode":0,"n":1.0}"#},
            {"role": "tool", "tool_call_id": "call_2",
             "content": r#"{"error":{"code":"tool.invalid-arguments","message":"not JSON"}}"#},
            {"role": "user", "content": "go on"},
        ],
        "tools": [{"type": "function", "function": {"name": "bash", "description": "The bash.",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(request.json(), expected);
}

#[tokio::test]
async fn a_message_with_a_picture_is_a_list_of_parts() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::text(&["ok"]));
    completed(ask(&stub, prompt(vec![PromptItem::User(vec!["see".into(), image()])])).await);
    let content = json!([
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]);
    assert_eq!(stub.requests()[0].json()["messages"], json!([{"role": "user", "content": content}]));
}

#[tokio::test]
async fn parallel_calls_are_put_together_by_index() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::tools(&[("a", "bash", r#"{"command":"é"}"#), ("b", "read", r#"{"path":"x"}"#), ("c", "glob", "")]));
    let candidate = completed(ask(&stub, hello()).await);
    let parts = [
        tool_call("a", "bash", input(r#"{"command":"é"}"#)),
        tool_call("b", "read", input(r#"{"path":"x"}"#)),
        tool_call("c", "glob", input("{}")),
    ];
    assert_eq!((candidate.parts, candidate.finish), (parts.to_vec(), FinishReason::ToolCalls));
}

#[tokio::test]
async fn servers_with_odd_calls_are_understood() {
    let stub = ProviderStub::start().await.unwrap();
    let call = |call| chat::chunk(&json!({ "tool_calls": [call] }), serde_json::Value::Null);
    let function = |name: &str, arguments: serde_json::Value| json!({"name": name, "arguments": arguments});
    // All at index 0, no index, no id, an id given twice, arguments as an object, and a finish reason that tells
    // nothing.
    stub.then(chat::answer(
        vec![
            call(json!({"index": 0, "id": "x", "function": function("one", "{}".into())})),
            call(json!({"index": 0, "id": "y", "function": function("two", json!({"n": 1}))})),
            call(json!({"id": "x2", "function": function("three", "{\"a\":".into())})),
            call(json!({"function": function("", "1}".into())})),
            call(json!({"index": 7, "function": function("four", "null".into())})),
            call(json!({"index": 8, "id": "y", "function": function("five", "{}".into())})),
        ],
        "stop",
        serde_json::Value::Null,
    ));
    let candidate = completed(ask(&stub, hello()).await);
    let calls: Vec<_> = candidate.tool_calls().collect();
    let is_made = |id: &str| id.starts_with("call_");
    let read: Vec<_> = calls.iter().map(|c| (is_made(c.call_id.as_str()), c.name.as_str(), c.input.clone())).collect();
    let expected = [
        (false, "one", input("{}")),
        (false, "two", input(r#"{"n":1}"#)),
        (false, "three", input(r#"{"a":1}"#)),
        (true, "four", input("null")),
        (true, "five", input("{}")),
    ];
    assert_eq!(read, expected);
    let ids: std::collections::BTreeSet<_> = calls.iter().map(|call| call.call_id.to_string()).collect();
    assert_eq!(ids.len(), 5);
    assert_eq!((candidate.finish, candidate.usage), (FinishReason::ToolCalls, None));
}

#[tokio::test]
async fn malformed_arguments_are_kept_as_written() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::tools(&[("a", "bash", r#"{"command": "ls"#)]));
    let candidate = completed(ask(&stub, hello()).await);
    assert_eq!(candidate.parts, [tool_call("a", "bash", ToolInput::Malformed(r#"{"command": "ls"#.into()))]);
}

#[tokio::test]
async fn any_chunking_gives_the_same_answer() {
    for size in [1, 2, 3, 7, 64] {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(chat::text(&["é𝄞", "ü"]).in_chunks_of(size));
        assert_eq!(completed(ask(&stub, hello()).await).text(), Text::from("é𝄞ü"), "{size}");
    }
}

#[tokio::test]
async fn halves_of_a_surrogate_pair_meet_again() {
    let stub = ProviderStub::start().await.unwrap();
    let chunk = |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
    let chunks = vec![chunk(r"a\ud834"), chunk(r"\udd1e"), chunk(r"\ud800")];
    stub.then(chat::answer(chunks, "stop", serde_json::Value::Null));
    let text = completed(ask(&stub, hello()).await).text();
    assert_eq!(text, Text::from_utf16(vec![0x61, 0xd834, 0xdd1e, 0xd800]));
}

#[tokio::test]
async fn reasoning_and_refusals_are_read() {
    let stub = ProviderStub::start().await.unwrap();
    let delta = |delta| chat::chunk(&delta, serde_json::Value::Null);
    stub.then(chat::answer(
        vec![
            delta(json!({"reasoning_content": "Hm"})),
            delta(json!({"reasoning": "m.", "content": null})),
            delta(json!({"content": [{"type": "text", "text": "No"}, {"type": "image"}]})),
            delta(json!({"refusal": "!"})),
        ],
        "content_filter",
        serde_json::Value::Null,
    ));
    let candidate = completed(ask(&stub, hello()).await);
    let reasoning = signed("Hmm.", r#"{"field":"reasoning_content"}"#);
    assert_eq!(candidate.parts, [reasoning, OutputPart::Text("No!".into())]);
    assert_eq!(candidate.finish, FinishReason::ContentFilter);
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(Reply::json(
        200,
        &json!({"choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "length"}]}),
    ));
    let (outcome, deltas) = ask(&stub, hello()).await;
    let candidate = completed((outcome, deltas.clone()));
    assert_eq!((candidate.text(), candidate.finish), (Text::from("whole"), FinishReason::Length));
    assert_eq!(deltas.text(1), "whole");
}

#[tokio::test]
async fn wrong_usage_counts_as_nothing() {
    let table = [
        (json!({"prompt_tokens": -5, "completion_tokens": "many"}), (0, 0, 0, 0, 0)),
        (json!({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 99}), (10, 4, 0, 0, 99)),
        (
            json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6},
                "completion_tokens_details": {"reasoning_tokens": 3}}),
            (4, 4, 6, 3, 14),
        ),
        (
            json!({"prompt_tokens": 2, "completion_tokens": 1.5, "prompt_tokens_details": {"cached_tokens": 60},
                "completion_tokens_details": null}),
            (0, 0, 2, 0, 2),
        ),
    ];
    for (reported, (input, output, cached, reasoning, total)) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(chat::answer(Vec::new(), "stop", reported.clone()));
        let expected = Usage { input, output, cached, cache_write: 0, reasoning, total, cost_nano_usd: Some(0) };
        assert_eq!(completed(ask(&stub, hello()).await).usage, Some(expected), "{reported}");
    }
}

#[tokio::test]
async fn the_tenants_settings_bound_the_model() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::text(&["ok"])).then(chat::text(&["ok"]));
    let mut access = access(&stub, "custom", "m");
    access.settings = Json::from_trusted(r#"{"contextWindow": 4096, "maxTokens": 512, "compat": {}}"#);
    let candidate = completed(ask_as(access.clone(), hello()).await);
    assert_eq!(candidate.window, Some(Window { context: 4096, output: 512 }));
    assert_eq!(stub.requests()[0].json()["max_tokens"], json!(512));

    access.settings = Json::from_trusted(r#"{"contextWindow": 9}"#);
    let failure = failed(ask_as(access, hello()).await);
    assert_eq!((failure.code, failure.retryable), (ModelFailureCode::ContextOverflow, false));
    assert_eq!(failure.message, "the prompt has 10 tokens; the model holds 9");
    assert_eq!(failure.usage.map(|usage| usage.total), Some(15));
}

#[tokio::test]
async fn compat_says_how_the_endpoint_differs() {
    let thought = |field: &str| signed("Hm.", &format!(r#"{{"field":"{field}"}}"#));
    let called = vec![thought("reasoning"), tool_call("c", "bash", input("{}"))];
    let history = vec![
        user("a"),
        assistant(model("custom", "m"), vec![thought("reasoning_content"), OutputPart::Text("x".into())]),
        assistant(model("custom", "m"), called),
        PromptItem::ToolResults(vec![tool_result("c", "bash", output("1"))]),
        user("b"),
    ];
    let asked = Prompt { instructions: vec!["Be brief.".into()], ..prompt(history) };
    let body = async |given: &str| {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(chat::text(&["ok"]));
        completed(ask_as(settings(access(&stub, "custom", "m"), given), asked.clone()).await);
        stub.requests()[0].json()
    };
    let call = json!([{"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]);
    let usual = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "x", "reasoning_content": "Hm."},
            {"role": "assistant", "content": null, "reasoning": "Hm.", "tool_calls": call},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
            {"role": "user", "content": "b"},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(body(r#"{"compat":{"somethingElse":[1],"supportsDeveloperRole":null}}"#).await, usual);

    let given = r#"{"maxTokens":512,"reasoning":true,"compat":{"supportsDeveloperRole":true,
        "supportsUsageInStreaming":false,"maxTokensField":"max_completion_tokens","requiresToolResultName":true,
        "requiresAssistantAfterToolResult":true,"requiresThinkingAsText":true,"thinkingFormat":"qwen",
        "openRouterRouting":{"only":["a"]}}}"#;
    let different = json!({
        "model": "m",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "Hm.\n\nx"},
            {"role": "assistant", "content": "Hm.\n\n", "tool_calls": call},
            {"role": "tool", "tool_call_id": "c", "name": "bash", "content": "1"},
            {"role": "assistant", "content": "I have read the tool results."},
            {"role": "user", "content": "b"},
        ],
        "max_completion_tokens": 512,
        "enable_thinking": true,
        "provider": {"only": ["a"]},
        "stream": true,
    });
    assert_eq!(body(given).await, different);

    let given = r#"{"reasoning":true,"compat":{"requiresReasoningContentOnAssistantMessages":true,
        "requiresNonNullAssistantContent":true,"cacheControlFormat":"anthropic"}}"#;
    let cached = json!({"type": "ephemeral"});
    let text = |text: &str| json!([{"type": "text", "text": text, "cache_control": cached}]);
    let messages = json!([
        {"role": "system", "content": text("Be brief.")},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "x", "reasoning_content": "Hm."},
        {"role": "assistant", "content": "", "reasoning": "Hm.", "reasoning_content": "", "tool_calls": call},
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {"role": "user", "content": text("b")},
    ]);
    assert_eq!(body(given).await["messages"], messages);
}

#[tokio::test]
async fn reasoning_is_asked_for_in_the_endpoints_way() {
    let table = [
        ("true", "{}", "reasoning_effort", json!("medium")),
        ("false", "{}", "reasoning_effort", json!(null)),
        ("true", r#"{"supportsReasoningEffort":false}"#, "reasoning_effort", json!(null)),
        ("true", r#"{"thinkingFormat":"openrouter"}"#, "reasoning", json!({"enabled": true})),
        ("false", r#"{"thinkingFormat":"together"}"#, "reasoning", json!({"enabled": false})),
        ("true", r#"{"thinkingFormat":"deepseek"}"#, "thinking", json!({"type": "enabled"})),
        ("false", r#"{"thinkingFormat":"zai"}"#, "thinking", json!({"type": "disabled"})),
        ("false", r#"{"thinkingFormat":"qwen"}"#, "enable_thinking", json!(false)),
        (
            "true",
            r#"{"thinkingFormat":"qwen-chat-template"}"#,
            "chat_template_kwargs",
            json!({"enable_thinking": true}),
        ),
    ];
    for (reasoning, compat, member, expected) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(chat::text(&["ok"]));
        let given = format!(r#"{{"reasoning":{reasoning},"compat":{compat}}}"#);
        completed(ask_as(settings(access(&stub, "custom", "m"), &given), hello()).await);
        assert_eq!(stub.requests()[0].json()[member], expected, "{given}");
    }
}

#[tokio::test]
async fn wrong_compat_is_named_with_its_remedy() {
    let table = [
        (r#"{"maxTokensField":"tokens"}"#, r#"maxTokensField is "tokens"; it takes max_tokens, max_completion_tokens"#),
        (r#"{"supportsDeveloperRole":"yes"}"#, r#"supportsDeveloperRole is "yes"; it takes true or false"#),
        (r#"{"openRouterRouting":1}"#, "openRouterRouting is 1; it takes an object"),
    ];
    for (compat, message) in table {
        let stub = ProviderStub::start().await.unwrap();
        let access = settings(access(&stub, "custom", "m"), &format!(r#"{{"compat":{compat}}}"#));
        let failure = failed(ask_as(access, hello()).await);
        assert_eq!((failure.code, stub.count()), (ModelFailureCode::InvalidRequest, 0));
        assert_eq!(failure.message, format!("the model's settings.compat.{message}"));
    }
}

#[tokio::test]
async fn without_a_key_no_header_is_sent() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::text(&["ok"]));
    let mut access = access(&stub, "custom", "m");
    access.key = nylorun_ports::secret::Secret::new("");
    access.base_url = Some(format!("{}/?api-version=1", stub.base_url()));
    completed(ask_as(access, prompt(vec![user("hi")])).await);
    let request = &stub.requests()[0];
    assert_eq!((request.path.as_str(), request.header("authorization")), ("/v1/chat/completions", ""));

    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::text(&["ok"]));
    let keyless = settings(crate::support::access(&stub, "custom", "m"), r#"{"compat":{"requiresKey":false}}"#);
    completed(ask_as(keyless, prompt(vec![user("hi")])).await);
    assert_eq!(stub.requests()[0].header("authorization"), "");
}
