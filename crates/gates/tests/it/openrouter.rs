//! OpenRouter, which speaks Chat Completions with additions of its own, against the stub.

use nylorun_domain::model::{ModelFailureCode, OutputPart, Prompt, PromptItem, Usage};
use nylorun_testkit::provider::{ProviderStub, Reply, chat};
use serde_json::{Value, json};

use crate::support::{
    CANARY, access, ask_as, assistant, completed, failed, hello, image, json as input, model, output, prompt, settings,
    signed, tool_call, tool_result, user,
};

const MODEL: &str = "anthropic/claude-sonnet-5.5";

#[tokio::test]
async fn the_request_is_exactly_this() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::text(&["ok"]));
    let details = r#"{"reasoning_details":[{"type":"reasoning.text","text":"Hm.","signature":"s","index":0}]}"#;
    let called = vec![signed("Hm.", details), tool_call("c", "bash", input("{}"))];
    let items = vec![
        user("a"),
        assistant(model("openrouter", MODEL), called.clone()),
        PromptItem::ToolResults(vec![tool_result("c", "bash", output("1"))]),
        assistant(model("openrouter", "x-ai/grok-4.7"), vec![called[0].clone(), OutputPart::Text("y".into())]),
        user("b"),
    ];
    let asked = Prompt { instructions: vec!["Be brief.".into()], ..prompt(items) };
    completed(ask_as(access(&stub, "openrouter", MODEL), asked).await);
    let request = &stub.requests()[0];
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.header("authorization"), format!("Bearer {CANARY}"));
    assert_eq!(
        (request.header("x-title"), request.header("x-session-id")),
        ("Nylorun", "84097828fc31a8c8d29210df48901a85")
    );
    let text = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    let call = json!([{"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]);
    let detail = json!({"type": "reasoning.text", "text": "Hm.", "signature": "s", "index": 0});
    let expected = json!({
        "model": MODEL,
        "messages": [
            {"role": "system", "content": text("Be brief.")},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": null, "reasoning_details": [detail], "tool_calls": call},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
            {"role": "assistant", "content": text("y")},
            {"role": "user", "content": text("b")},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(request.json(), expected);
}

#[tokio::test]
async fn reasoning_details_are_kept_for_the_next_call() {
    let stub = ProviderStub::start().await.unwrap();
    let delta = |text: &str, signature: Value| {
        let detail = json!({"type": "reasoning.text", "text": text, "signature": signature, "index": 0});
        chat::chunk(&json!({"reasoning": text, "reasoning_details": [detail]}), Value::Null)
    };
    let chunks = vec![delta("H", Value::Null), delta("m.", "s".into())];
    stub.then(chat::answer(chunks, "stop", Value::Null));
    let candidate = completed(ask_as(access(&stub, "openrouter", MODEL), hello()).await);
    let details = r#"{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"s","text":"Hm."}]}"#;
    assert_eq!(candidate.parts, [signed("Hm.", details)]);
}

#[tokio::test]
async fn what_it_charged_is_the_cost() {
    let counts = json!({"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28,
        "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 4}});
    let table = [
        (json!({}), None),
        (json!({"cost": 0.000_123_4}), Some(123_400)),
        (json!({"cost": 0.01, "cost_details": {"upstream_inference_cost": 0.2}}), Some(10_000_000)),
        (json!({"cost": 0.01, "is_byok": true, "cost_details": {"upstream_inference_cost": 0.2}}), Some(210_000_000)),
        (json!({"cost": -1}), None),
        (json!({"cost": "free"}), None),
    ];
    for (charged, cost_nano_usd) in table {
        let stub = ProviderStub::start().await.unwrap();
        let mut usage = counts.clone();
        usage.as_object_mut().unwrap().extend(charged.as_object().unwrap().clone());
        stub.then(chat::answer(Vec::new(), "stop", usage));
        let expected =
            Usage { input: 10, output: 8, cached: 6, cache_write: 4, reasoning: 0, total: 28, cost_nano_usd };
        let candidate = completed(ask_as(access(&stub, "openrouter", MODEL), hello()).await);
        assert_eq!(candidate.usage, Some(expected), "{charged}");
    }
}

#[tokio::test]
async fn the_settings_ask_for_reasoning() {
    let table = [
        ("{}", MODEL, json!(null)),
        (r#"{"reasoning":true}"#, MODEL, json!({"effort": "medium"})),
        (r#"{"reasoning":false}"#, MODEL, json!({"effort": "low"})),
        (r#"{"reasoning":false}"#, "qwen/qwen3.8-27b", json!({"effort": "none"})),
    ];
    for (given, model, reasoning) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(chat::text(&["ok"]));
        completed(ask_as(settings(access(&stub, "openrouter", model), given), hello()).await);
        assert_eq!(stub.requests()[0].json()["reasoning"], reasoning, "{given}");
    }
}

#[tokio::test]
async fn errors_of_the_provider_behind_it_are_classified() {
    let behind = |raw: &str| {
        let error = json!({"code": 400, "message": "Provider returned error", "metadata": {"raw": raw}});
        Reply::json(400, &json!({"error": error}))
    };
    let inside = json!({"error": {"code": 502, "message": "upstream"}, "choices": [{"finish_reason": "error"}]});
    let unpaid = json!({"error": {"code": 402, "message": "more credits"}});
    let table = [
        (behind("prompt is too long: 210000 tokens > 200000 maximum"), ModelFailureCode::ContextOverflow, false),
        (behind("what"), ModelFailureCode::InvalidRequest, false),
        (Reply::json(402, &unpaid), ModelFailureCode::RateLimited, false),
        (Reply::stream([inside.to_string().as_str()]), ModelFailureCode::Transient, true),
    ];
    for (reply, code, retryable) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(reply.clone()).then(reply.clone()).then(reply);
        let failure = failed(ask_as(access(&stub, "openrouter", MODEL), hello()).await);
        assert_eq!((failure.code, failure.retryable), (code, retryable), "{failure:?}");
    }
}

#[tokio::test]
async fn a_model_that_reads_no_images_is_not_asked() {
    let stub = ProviderStub::start().await.unwrap();
    let asked = prompt(vec![PromptItem::User(vec![image()])]);
    let failure = failed(ask_as(access(&stub, "openrouter", "deepseek/deepseek-v3.2"), asked).await);
    assert_eq!((failure.code, failure.retryable, stub.count()), (ModelFailureCode::InvalidRequest, false, 0));
    let expected = "openrouter/deepseek/deepseek-v3.2 reads no images; choose a model that does, or leave them out";
    assert_eq!(failure.message, expected);
}
