//! Responses against the stub.

use std::sync::Arc;

use nylorun_domain::json::Text;
use nylorun_domain::model::{
    Candidate, FinishReason, ModelFailureCode, OutputPart, Prompt, PromptItem, ToolInput, Usage, Window,
};
use nylorun_domain::tool::ToolOutcome;
use nylorun_testkit::provider::responses::{self, Item};
use nylorun_testkit::provider::{ProviderStub, Reply};
use serde_json::json;

use crate::support::{
    CANARY, access, ask_as, assistant, completed, failed, hello, image, json as input, model, output, prompt, settings,
    signed, tool, tool_call, tool_result, user,
};

const MODEL: &str = "gpt-6.1-terra";

async fn ask(stub: &ProviderStub, prompt: Prompt) -> Candidate {
    completed(ask_as(access(stub, "openai", MODEL), prompt).await)
}

#[tokio::test]
async fn every_kind_of_item_is_read() {
    let stub = ProviderStub::start().await.unwrap();
    let items = [
        Item::Reasoning("Hm.", "blob=="),
        Item::Text(&["Hé", "llo 𝄞"], "commentary"),
        Item::Reasoning("", "blob2=="),
        Item::Call("call_1", "bash", r#"{"command":"ls"}"#),
        Item::Call("call_2", "glob", ""),
        Item::Call("call_2", "read", r#"{"path":"#),
    ];
    stub.then(responses::answer(&items).in_chunks_of(5));
    let (outcome, deltas) = ask_as(access(&stub, "openai", MODEL), hello()).await;
    let candidate = completed((outcome, deltas.clone()));
    let made = candidate.tool_calls().last().map(|call| call.call_id.as_str().to_owned()).unwrap();
    assert!(made.starts_with("call_") && made != "call_2", "{made}");
    let expected = Candidate {
        parts: vec![
            signed("Hm.", r#"{"encrypted_content":"blob=="}"#),
            signed("", r#"{"phase":"commentary"}"#),
            OutputPart::Text("Héllo 𝄞".into()),
            signed("", r#"{"encrypted_content":"blob2=="}"#),
            tool_call("call_1", "bash", input(r#"{"command":"ls"}"#)),
            tool_call("call_2", "glob", input("{}")),
            tool_call(&made, "read", ToolInput::Malformed(r#"{"path":"#.into())),
        ],
        finish: FinishReason::ToolCalls,
        // 5 at 1,000 nano-dollars, 7 at 5,000, 3 at 50, 4 at 1,250.
        size: Some(19),
        usage: Some(Usage {
            input: 5,
            output: 7,
            cached: 3,
            cache_write: 4,
            reasoning: 2,
            total: 19,
            cost_nano_usd: Some(45_150),
        }),
        model: model("openai", MODEL),
        window: Some(Window { context: 1_050_000, output: 128_000 }),
    };
    assert_eq!(candidate, expected);
    assert_eq!(deltas.text(1), "Héllo 𝄞");
}

#[tokio::test]
async fn the_request_is_exactly_this() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(responses::text(&["ok"]));
    let items = vec![
        PromptItem::User(vec!["one".into(), Text::from_utf16(vec![0x74, 0xd800]).into(), image()]),
        assistant(
            model("openai", MODEL),
            vec![
                signed("Hm.", r#"{"encrypted_content":"blob=="}"#),
                signed("", r#"{"phase":"commentary"}"#),
                OutputPart::Text("Looking.".into()),
                OutputPart::Reasoning { text: "unsigned".into(), signature: None },
                tool_call("call|1", "bash", input(r#"{"n":1.0}"#)),
                tool_call("call_2", "bash", ToolInput::Malformed("{".into())),
                signed("", r#"{"encrypted_content":"cut off"}"#),
            ],
        ),
        PromptItem::ToolResults(vec![
            tool_result("call|1", "bash", output(r#""text""#)),
            tool_result("call_2", "bash", ToolOutcome::failed("tool.failed", "no")),
        ]),
        assistant(
            model("openai", "gpt-6-astra"),
            vec![signed("", r#"{"encrypted_content":"another model's"}"#), OutputPart::Text("x".into())],
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
    assert_eq!(request.path, "/v1/responses");
    assert_eq!(request.header("authorization"), format!("Bearer {CANARY}"));
    assert!(!String::from_utf8_lossy(&request.body).contains(CANARY));
    let message = |role, content| json!({"type": "message", "role": role, "content": content});
    let said = |text| json!([{"type": "output_text", "text": text}]);
    let mut commentary = message("assistant", said("Looking."));
    commentary["phase"] = "commentary".into();
    let call = |id, arguments| json!({"type": "function_call", "call_id": id, "name": "bash", "arguments": arguments});
    let result = |id, output| json!({"type": "function_call_output", "call_id": id, "output": output});
    let expected = json!({
        "model": MODEL,
        "instructions": "Be brief.",
        "input": [
            message("user", json!([
                {"type": "input_text", "text": "one"},
                {"type": "input_text", "text": "t\u{fffd}"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
            ])),
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "blob=="},
            commentary,
            call("call_1", r#"{"n":1.0}"#),
            call("call_2", r#"{"malformed":"{"}"#),
            result("call_1", "text"),
            result("call_2", r#"{"error":{"code":"tool.failed","message":"no"}}"#),
            message("assistant", said("x")),
            message("user", json!([{"type": "input_text", "text": "last"}])),
        ],
        "tools": [{"type": "function", "name": "bash", "description": "The bash.", "parameters": {"type": "object"},
            "strict": false}],
        "include": ["reasoning.encrypted_content"],
        // The session's id, hashed.
        "prompt_cache_key": "84097828fc31a8c8d29210df48901a85",
        "store": false,
        "stream": true,
    });
    assert_eq!(request.json(), expected);
}

#[tokio::test]
async fn the_settings_ask_for_reasoning() {
    let table = [
        ("gpt-6.1-terra", "{}", json!(null), json!(["reasoning.encrypted_content"])),
        ("gpt-6.1-terra", r#"{"reasoning":true}"#, json!({"effort": "medium"}), json!(["reasoning.encrypted_content"])),
        ("gpt-6.1-terra", r#"{"reasoning":false}"#, json!({"effort": "none"}), json!(["reasoning.encrypted_content"])),
        ("gpt-6.1-sol", r#"{"reasoning":false}"#, json!({"effort": "low"}), json!(["reasoning.encrypted_content"])),
        ("gpt-4.1", r#"{"reasoning":true}"#, json!(null), json!(null)),
    ];
    for (model, given, reasoning, include) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(responses::text(&["ok"]));
        completed(ask_as(settings(access(&stub, "openai", model), given), hello()).await);
        let body = stub.requests()[0].json();
        assert_eq!((&body["reasoning"], &body["include"]), (&reasoning, &include), "{model} {given}");
    }
    let stub = ProviderStub::start().await.unwrap();
    stub.then(responses::text(&["ok"]));
    completed(ask_as(settings(access(&stub, "openai", MODEL), r#"{"maxTokens":512}"#), hello()).await);
    assert_eq!(stub.requests()[0].json()["max_output_tokens"], json!(512));
}

#[tokio::test]
async fn ends_are_mapped() {
    let table = [
        (json!({"status": "completed"}), FinishReason::Stop),
        (json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}), FinishReason::Length),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
            FinishReason::ContentFilter,
        ),
        (json!({"status": "incomplete", "incomplete_details": null}), FinishReason::Other),
    ];
    for (end, finish) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(responses::stream(&responses::events(&[Item::Text(&["x"], "final_answer")], end.clone())));
        assert_eq!(ask(&stub, hello()).await.finish, finish, "{end}");
    }
}

#[tokio::test]
async fn a_refusal_is_text_and_said_to_be_one() {
    let stub = ProviderStub::start().await.unwrap();
    let item = json!({"type": "message", "role": "assistant", "content": []});
    let done = json!({"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]});
    stub.then(responses::stream(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "I can"}),
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "not."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": done}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": [done]}}),
    ]));
    let (outcome, deltas) = ask_as(access(&stub, "openai", MODEL), hello()).await;
    let candidate = completed((outcome, deltas.clone()));
    assert_eq!((candidate.text(), candidate.finish), ("I cannot.".into(), FinishReason::ContentFilter));
    assert_eq!((deltas.text(1), candidate.usage), ("I cannot.".into(), None));
}

#[tokio::test]
async fn a_server_that_does_not_stream_or_skips_events_is_understood() {
    let whole = json!({"object": "response", "status": "completed", "output": [
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "web_search_call"},
        {"type": "message", "content": [{"type": "output_text", "text": "whole"}]},
        {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"},
    ]});
    let only_the_end = responses::stream(&[json!({"type": "response.completed", "response": whole})]);
    for reply in [Reply::json(200, &whole), only_the_end] {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(reply);
        let (outcome, deltas) = ask_as(access(&stub, "openai", MODEL), hello()).await;
        let candidate = completed((outcome, deltas.clone()));
        let parts = vec![
            OutputPart::Reasoning { text: "Hm.".into(), signature: None },
            OutputPart::Text("whole".into()),
            tool_call("c", "bash", input("{}")),
        ];
        assert_eq!((candidate.parts, candidate.finish), (parts, FinishReason::ToolCalls));
        assert_eq!(deltas.text(1), "whole");
    }
}

#[tokio::test]
async fn failures_inside_the_stream_are_classified() {
    let failed_as = |code, message| {
        let error = json!({"code": code, "message": message});
        responses::stream(&responses::events(&[], json!({"status": "failed", "error": error})))
    };
    let table = [
        (failed_as("server_error", "Something broke"), ModelFailureCode::Transient, true),
        (failed_as("rate_limit_exceeded", "Rate limit reached"), ModelFailureCode::RateLimited, true),
        (failed_as("context_length_exceeded", "Too long"), ModelFailureCode::ContextOverflow, false),
        (failed_as("invalid_prompt", "flagged under our usage policy"), ModelFailureCode::ContentPolicy, false),
        (
            responses::stream(&[json!({"type": "error", "code": "server_is_overloaded", "message": "later"})]),
            ModelFailureCode::Overloaded,
            true,
        ),
        (
            responses::stream(&[json!({"type": "error", "error": {"code": "invalid_request_error", "message": "no"}})]),
            ModelFailureCode::InvalidRequest,
            false,
        ),
        (responses::text(&["a"]).cut_after(4), ModelFailureCode::Transient, true),
    ];
    for (reply, code, retryable) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(reply.clone()).then(reply.clone()).then(reply);
        let failure = failed(ask_as(access(&stub, "openai", MODEL), hello()).await);
        assert_eq!((failure.code, failure.retryable), (code, retryable), "{failure:?}");
    }
}

#[tokio::test]
async fn reasoning_that_the_provider_refuses_is_left_out() {
    let stub = ProviderStub::start().await.unwrap();
    let refused = json!({"error": {"code": "invalid_encrypted_content", "message": "could not be verified"}});
    stub.then(Reply::json(400, &refused)).then(responses::text(&["ok"]));
    let earlier = vec![signed("", r#"{"encrypted_content":"of another account"}"#), OutputPart::Text("x".into())];
    let items = vec![user("a"), assistant(model("openai", MODEL), earlier), user("b")];
    assert_eq!(ask(&stub, prompt(items)).await.text(), "ok");
    let sent: Vec<_> =
        stub.requests().iter().map(|request| request.json()["input"].as_array().unwrap().len()).collect();
    assert_eq!(sent, [4, 3]);
}

#[tokio::test]
async fn unknown_events_and_items_are_passed_over() {
    let stub = ProviderStub::start().await.unwrap();
    let mut events = responses::events(&[Item::Text(&["a"], "")], json!({"status": "completed"}));
    events.insert(1, json!({"type": "response.something.new", "output_index": 0, "delta": "x"}));
    events.insert(2, json!({"type": "response.output_text.delta", "output_index": 9, "delta": "nowhere"}));
    events.insert(3, json!({"type": "response.output_item.added", "output_index": 5, "item": {"type": "new"}}));
    events.insert(4, json!({"type": "keepalive"}));
    stub.then(responses::stream(&events));
    assert_eq!(ask(&stub, hello()).await.parts, [OutputPart::Text("a".into())]);
}
