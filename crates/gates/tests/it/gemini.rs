//! Gemini's `streamGenerateContent` against the stub.

use std::sync::Arc;

use nylorun_domain::json::Text;
use nylorun_domain::model::{
    Candidate, FinishReason, ModelFailureCode, OutputPart, Prompt, PromptItem, ToolInput, Usage, Window,
};
use nylorun_domain::tool::ToolOutcome;
use nylorun_testkit::provider::gemini;
use nylorun_testkit::provider::{ProviderStub, Reply};
use serde_json::json;

use crate::support::{
    CANARY, access, ask_as, assistant, completed, failed, hello, image, json as input, model, output, prompt, settings,
    signed, tool, tool_call, tool_result, user,
};

const MODEL: &str = "gemini-3.5-flash-lite";

async fn ask(stub: &ProviderStub, prompt: Prompt) -> Candidate {
    completed(ask_as(access(stub, "google", MODEL), prompt).await)
}

#[tokio::test]
async fn every_kind_of_part_is_read() {
    let stub = ProviderStub::start().await.unwrap();
    let mut first = gemini::call("bash", json!({"command": "ls"}));
    first["thoughtSignature"] = "of the call".into();
    first["functionCall"]["id"] = "fc1".into();
    let parts = [
        json!({"text": "Hm", "thought": true}),
        json!({"text": "m.", "thought": true}),
        json!({"text": "Hé"}),
        json!({"text": "llo 𝄞"}),
        json!({"text": "!", "thoughtSignature": "of the text"}),
        json!({"text": " And"}),
        first,
        gemini::call("glob", json!({})),
        json!({"executableCode": {"code": "1"}}),
        json!({"text": "", "thoughtSignature": "of nothing"}),
    ];
    stub.then(gemini::answer(&parts, "STOP").in_chunks_of(5));
    let (outcome, deltas) = ask_as(access(&stub, "google", MODEL), hello()).await;
    let candidate = completed((outcome, deltas.clone()));
    let made = candidate.tool_calls().last().map(|call| call.call_id.as_str().to_owned()).unwrap();
    let expected = Candidate {
        parts: vec![
            OutputPart::Reasoning { text: "Hmm.".into(), signature: None },
            OutputPart::Text("Héllo 𝄞".into()),
            signed("", r#"{"thoughtSignature":"of the text"}"#),
            OutputPart::Text("!".into()),
            OutputPart::Text(" And".into()),
            signed("", r#"{"thoughtSignature":"of the call"}"#),
            tool_call("fc1", "bash", input(r#"{"command":"ls"}"#)),
            tool_call(&made, "glob", input("{}")),
            signed("", r#"{"thoughtSignature":"of nothing","cameWith":"emptyText"}"#),
        ],
        finish: FinishReason::ToolCalls,
        // 9 at 300 nano-dollars, 7 at 2,500, 3 at 30.
        size: Some(19),
        usage: Some(Usage {
            input: 9,
            output: 7,
            cached: 3,
            cache_write: 0,
            reasoning: 2,
            total: 19,
            cost_nano_usd: Some(20_290),
        }),
        model: model("google", MODEL),
        window: Some(Window { context: 1_048_576, output: 65_536 }),
    };
    assert_eq!(candidate, expected);
    assert_eq!(deltas.text(1), "Héllo 𝄞! And");
}

#[tokio::test]
async fn the_request_is_exactly_this() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(gemini::text(&["ok"]));
    let items = vec![
        PromptItem::User(vec!["one".into(), Text::from_utf16(vec![0x74, 0xd800]).into(), image(), "".into()]),
        assistant(
            model("google", MODEL),
            vec![
                signed("Hm.", r#"{"thoughtSignature":"s1","cameWith":"thought"}"#),
                OutputPart::Reasoning { text: "unsigned".into(), signature: None },
                signed("", r#"{"thoughtSignature":"s2"}"#),
                OutputPart::Text("Looking.".into()),
                signed("", r#"{"thoughtSignature":"s3"}"#),
                tool_call("fc1", "bash", input(r#"{"n":1.0}"#)),
                tool_call("call_made", "bash", ToolInput::Malformed("{".into())),
                signed("", r#"{"thoughtSignature":"s4","cameWith":"emptyText"}"#),
            ],
        ),
        PromptItem::ToolResults(vec![
            tool_result("fc1", "bash", output(r#"{"exitCode":0}"#)),
            tool_result("call_made", "bash", ToolOutcome::failed("tool.failed", "no")),
        ]),
        assistant(
            model("anthropic", "claude-opus-5"),
            vec![signed("x", r#"{"signature":"another's"}"#), tool_call("toolu_1", "bash", input("[1]"))],
        ),
        PromptItem::ToolResults(vec![tool_result("toolu_1", "bash", output(r#""text""#))]),
        assistant(model("google", MODEL), Vec::new()),
        user("  "),
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
    assert_eq!(request.path, format!("/v1/models/{MODEL}:streamGenerateContent"));
    assert_eq!(request.query, "alt=sse");
    assert_eq!(request.header("x-goog-api-key"), CANARY);
    assert!(!String::from_utf8_lossy(&request.body).contains(CANARY));
    let content = |role, parts| json!({"role": role, "parts": parts});
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            content("user", json!([
                {"text": "one"},
                {"text": "t\u{fffd}"},
                {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
            ])),
            content("model", json!([
                {"text": "Hm.", "thought": true, "thoughtSignature": "s1"},
                {"text": "Looking.", "thoughtSignature": "s2"},
                {"functionCall": {"id": "fc1", "name": "bash", "args": {"n": 1.0}}, "thoughtSignature": "s3"},
                {"functionCall": {"name": "bash", "args": {"malformed": "{"}}},
                {"text": "", "thoughtSignature": "s4"},
            ])),
            content("user", json!([
                {"functionResponse": {"id": "fc1", "name": "bash", "response": {"output": {"exitCode": 0}}}},
                {"functionResponse": {"name": "bash",
                    "response": {"error": {"code": "tool.failed", "message": "no"}}}},
            ])),
            content("model", json!([
                {"functionCall": {"id": "toolu_1", "name": "bash", "args": {"input": [1]}},
                    "thoughtSignature": "skip_thought_signature_validator"},
            ])),
            content("user", json!([
                {"functionResponse": {"id": "toolu_1", "name": "bash", "response": {"output": "text"}}},
            ])),
            content("user", json!([{"text": "(empty)"}])),
        ],
        "tools": [{"functionDeclarations": [
            {"name": "bash", "description": "The bash.", "parametersJsonSchema": {"type": "object"}},
        ]}],
        "generationConfig": {},
    });
    assert_eq!(request.json(), expected);
}

#[tokio::test]
async fn the_settings_ask_for_thinking_in_the_models_way() {
    let table = [
        ("gemini-4-neon", "{}", json!({})),
        ("gemini-4-neon", r#"{"reasoning":true}"#, json!({"thinkingConfig": {"thinkingLevel": "medium"}})),
        ("gemini-3.5-flash-lite", r#"{"reasoning":false}"#, json!({"thinkingConfig": {"thinkingLevel": "minimal"}})),
        ("gemini-2.5-flash", r#"{"reasoning":true}"#, json!({"thinkingConfig": {"thinkingBudget": -1}})),
        ("gemini-2.5-flash", r#"{"reasoning":false}"#, json!({"thinkingConfig": {"thinkingBudget": 0}})),
        ("gemini-2.5-pro", r#"{"maxTokens":512}"#, json!({"maxOutputTokens": 512})),
    ];
    for (model, given, config) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(gemini::text(&["ok"]));
        completed(ask_as(settings(access(&stub, "google", model), given), hello()).await);
        assert_eq!(stub.requests()[0].json()["generationConfig"], config, "{model} {given}");
    }
}

#[tokio::test]
async fn a_model_without_signatures_gets_none() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(gemini::text(&["ok"]));
    let called = vec![tool_call("fc1", "bash", input("{}"))];
    let results = PromptItem::ToolResults(vec![tool_result("fc1", "bash", output("1"))]);
    let items = vec![user("a"), assistant(model("google", "gemini-2.5-pro"), called), results];
    completed(ask_as(access(&stub, "google", "gemini-2.5-pro"), prompt(items)).await);
    let call = json!({"functionCall": {"id": "fc1", "name": "bash", "args": {}}});
    assert_eq!(stub.requests()[0].json()["contents"][1]["parts"], json!([call]));
}

#[tokio::test]
async fn ends_are_mapped() {
    let table = [
        ("STOP", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
        ("SAFETY", FinishReason::ContentFilter),
        ("RECITATION", FinishReason::ContentFilter),
        ("LANGUAGE", FinishReason::Other),
    ];
    for (word, finish) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(gemini::answer(&[json!({"text": "x"})], word));
        assert_eq!(ask(&stub, hello()).await.finish, finish, "{word}");
    }
}

#[tokio::test]
async fn a_call_that_is_none_is_asked_for_again() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(gemini::answer(&[], "MALFORMED_FUNCTION_CALL")).then(gemini::text(&["ok"]));
    assert_eq!(ask(&stub, hello()).await.text(), "ok");
    for _ in 0..3 {
        stub.then(gemini::answer(&[], "MALFORMED_FUNCTION_CALL"));
    }
    let failure = failed(ask_as(access(&stub, "google", MODEL), hello()).await);
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (ModelFailureCode::InvalidOutput, "MALFORMED_FUNCTION_CALL: ")
    );
    assert_eq!(failure.usage.map(|usage| usage.total), Some(3 * 19));
}

#[tokio::test]
async fn refusals_are_classified() {
    let error = |code: u16, status: &str, message: &str| {
        Reply::json(code, &json!({"error": {"code": code, "status": status, "message": message}}))
    };
    let quota = |details| {
        let message = "You exceeded your current quota, please check your plan and billing details.";
        Reply::json(429, &json!({"error": {"status": "RESOURCE_EXHAUSTED", "message": message, "details": details}}))
    };
    let tokens = "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).";
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}});
    let table = [
        (error(400, "INVALID_ARGUMENT", "API key not valid."), ModelFailureCode::Auth, false),
        (error(400, "INVALID_ARGUMENT", tokens), ModelFailureCode::ContextOverflow, false),
        (error(503, "UNAVAILABLE", "The model is overloaded."), ModelFailureCode::Overloaded, true),
        (error(504, "DEADLINE_EXCEEDED", "late"), ModelFailureCode::Timeout, true),
        (quota(json!([])), ModelFailureCode::RateLimited, false),
        (quota(json!([{"retryDelay": "0s"}])), ModelFailureCode::RateLimited, true),
        (gemini::stream(&[blocked]), ModelFailureCode::ContentPolicy, false),
        (gemini::stream(&[json!({"error": {"code": 500, "status": "INTERNAL"}})]), ModelFailureCode::Transient, true),
        (gemini::text(&["a"]).cut_after(1), ModelFailureCode::Transient, true),
    ];
    for (reply, code, retryable) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(reply.clone()).then(reply.clone()).then(reply);
        let failure = failed(ask_as(access(&stub, "google", MODEL), hello()).await);
        assert_eq!((failure.code, failure.retryable), (code, retryable), "{failure:?}");
        assert_eq!(stub.count(), if retryable { 3 } else { 1 });
    }
}

#[tokio::test]
async fn a_signature_that_the_provider_refuses_is_left_out() {
    let stub = ProviderStub::start().await.unwrap();
    let refused =
        json!({"error": {"code": 400, "message": "Corrupted thought signature.", "status": "INVALID_ARGUMENT"}});
    stub.then(Reply::json(400, &refused)).then(gemini::text(&["ok"]));
    let called = vec![signed("", r#"{"thoughtSignature":"old"}"#), tool_call("fc1", "bash", input("{}"))];
    let results = PromptItem::ToolResults(vec![tool_result("fc1", "bash", output("1"))]);
    ask(&stub, prompt(vec![user("a"), assistant(model("google", MODEL), called), results])).await;
    let signature = |at: usize| stub.requests()[at].json()["contents"][1]["parts"][0]["thoughtSignature"].clone();
    assert_eq!((signature(0), signature(1)), (json!("old"), json!("skip_thought_signature_validator")));
}
