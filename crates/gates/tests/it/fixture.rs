//! The fixture model.

use std::time::Duration;

use nylorun_domain::json::{Json, Text};
use nylorun_domain::model::{
    Candidate, FinishReason, ModelFailureCode, ModelOutcome, OutputPart, PromptItem, ToolInput, Usage,
};
use nylorun_gates::fixture::{DONE, Fixture};
use nylorun_ports::abort::{Abort, AbortKind, abort_pair};
use nylorun_ports::models::ModelGate;

use crate::support::{Deltas, call, prompt, user};

async fn ask(items: Vec<PromptItem>) -> Candidate {
    match Fixture.call(&call(prompt(items)), Deltas::new(), Abort::never()).await {
        Some(ModelOutcome::Completed(candidate)) => candidate,
        other => panic!("no answer: {other:?}"),
    }
}

const SCRIPT: &str = r#"[
    {"text":"Looking.","tools":[{"name":"bash","input":{"command":"ls"}},{"name":"read","input":{"path":"a"}}]},
    {"structured":{"n":1}},
    {"fail":"overloaded"}
]"#;

#[tokio::test]
async fn follows_its_script_one_step_a_call() {
    let first = ask(vec![user(SCRIPT)]).await;
    assert_eq!(first.text(), Text::from("Looking."));
    assert_eq!(first.finish, FinishReason::ToolCalls);
    let calls: Vec<_> = first.tool_calls().map(|call| (call.name.as_str(), call.input.clone())).collect();
    let json = |text: &str| ToolInput::Json(Json::from_trusted(text));
    assert_eq!(calls, [("bash", json(r#"{"command":"ls"}"#)), ("read", json(r#"{"path":"a"}"#))]);
    let ids: Vec<_> = first.tool_calls().map(|call| call.call_id.as_str().to_owned()).collect();
    assert_eq!(ids, ["call_9036a6fb086f13cc_0", "call_9036a6fb086f13cc_1"]);

    let items = vec![user(SCRIPT), PromptItem::Assistant(first.clone().into()), PromptItem::ToolResults(Vec::new())];
    let second = ask(items.clone()).await;
    assert_eq!((second.text(), second.finish), (Text::from(r#"{"n":1}"#), FinishReason::Stop));

    let mut items = items;
    items.push(PromptItem::Assistant(second.into()));
    let outcome = Fixture.call(&call(prompt(items.clone())), Deltas::new(), Abort::never()).await;
    let Some(ModelOutcome::Failed(failure)) = outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.code, failure.retryable), (ModelFailureCode::Overloaded, true));

    items.push(PromptItem::Assistant(first.into()));
    assert_eq!(ask(items).await.text(), Text::from(DONE));
}

#[tokio::test]
async fn echoes_what_is_no_script_in_deltas_and_answer() {
    let lone = Text::from_utf16(vec![0x61, 0xd800]);
    let deltas = Deltas::new();
    let items = vec![user(SCRIPT), PromptItem::User(vec![lone.clone().into()])];
    let outcome = Fixture.call(&call(prompt(items)), deltas.clone(), Abort::never()).await;
    let Some(ModelOutcome::Completed(candidate)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(candidate.parts, [OutputPart::Text(lone)]);
    assert_eq!(deltas.text(1), "a\u{fffd}");
}

#[tokio::test]
async fn counts_four_characters_a_token() {
    let usage = ask(vec![user("123456789")]).await.usage;
    let expected = Usage { input: 3, output: 3, total: 6, cost_nano_usd: Some(0), ..Usage::default() };
    assert_eq!(usage, Some(expected));
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_a_delay() {
    let (handle, abort) = abort_pair();
    let asked = call(prompt(vec![user(r#"[{"delayMs":60000,"text":"late"}]"#)]));
    let begun = tokio::time::Instant::now();
    let (outcome, ()) = tokio::join!(Fixture.call(&asked, Deltas::new(), abort), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        handle.abort(AbortKind::Cancel);
    });
    assert_eq!(outcome, None);
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_delay_passes_first() {
    let begun = tokio::time::Instant::now();
    assert_eq!(ask(vec![user(r#"[{"delayMs":250},{"text":"late"}]"#)]).await.text(), Text::from("late"));
    assert_eq!(begun.elapsed(), Duration::from_millis(250));
}
