//! The model gate: routing, retries, watchdogs, abort, and what becomes of the key.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use nylorun_domain::budget::{BudgetScope, Exhausted, Measure};
use nylorun_domain::json::Text;
use nylorun_domain::model::{ModelFailure, ModelFailureCode, ModelOutcome};
use nylorun_gates::CallSettings;
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::{Abort, AbortKind, abort_pair};
use nylorun_ports::budgets::{Admission, Budgets, BudgetsVersion, Pass};
use nylorun_ports::models::{KeysError, ModelAccess, ModelCall, ModelGate};
use nylorun_testkit::provider::{ProviderStub, Reply, chat};
use serde_json::json;

use crate::support::{
    CANARY, Deltas, access, ask, ask_as, call, completed, failed, fast, gate, gate_within, hello, model,
};

async fn answer_of(access: Result<ModelAccess, KeysError>) -> ModelOutcome {
    gate(access, fast()).call(&call(hello()), Deltas::new(), Abort::never()).await.unwrap()
}

#[tokio::test]
async fn without_a_model_the_failure_names_the_remedy() {
    let expected = ModelFailure {
        code: ModelFailureCode::Auth,
        message: "No model is chosen yet: `nylorun model set PROVIDER/MODEL` chooses one.".into(),
        retryable: false,
        usage: None,
        model: None,
    };
    assert_eq!(answer_of(Ok(ModelAccess::None)).await, ModelOutcome::Failed(expected));
}

#[tokio::test]
async fn the_tenants_choice_routes_the_call() {
    let ModelOutcome::Completed(candidate) = answer_of(Ok(ModelAccess::Fixture)).await else { panic!() };
    assert_eq!((candidate.text(), candidate.model), (Text::from("hello"), model("fixture", "script")));
    let code = |outcome| match outcome {
        ModelOutcome::Failed(failure) => (failure.code, failure.retryable),
        ModelOutcome::Completed(candidate) => panic!("{candidate:?}"),
    };
    assert_eq!(code(answer_of(Err(KeysError::Unreadable)).await), (ModelFailureCode::Auth, false));
    let broken = KeysError::Broken("no such column".into());
    assert_eq!(code(answer_of(Err(broken)).await), (ModelFailureCode::Transient, false));
    let unavailable = KeysError::Unavailable("locked".into());
    assert_eq!(code(answer_of(Err(unavailable)).await), (ModelFailureCode::Transient, true));
    let stub = ProviderStub::start().await.unwrap();
    let unknown = failed(ask_as(access(&stub, "nobody", "m"), hello()).await);
    assert_eq!(unknown.code, ModelFailureCode::InvalidRequest);
    assert_eq!(unknown.message, "this version cannot call the provider \"nobody\"");
}

#[tokio::test]
async fn what_may_pass_is_tried_three_times() {
    let table = [
        (Reply::status(500, "boom"), ModelFailureCode::Transient, "HTTP 500: boom"),
        (Reply::status(529, ""), ModelFailureCode::Overloaded, "HTTP 529"),
        (
            Reply::status(429, "slow down").header("retry-after", "0"),
            ModelFailureCode::RateLimited,
            "HTTP 429: slow down",
        ),
        (chat::text(&["a", "b"]).cut_after(2), ModelFailureCode::Transient, ""),
        (Reply::stream([]), ModelFailureCode::Transient, "the stream ended before the answer did"),
    ];
    for (reply, code, message) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(reply.clone()).then(reply.clone()).then(reply).then(chat::text(&["too late"]));
        let failure = failed(ask(&stub, hello()).await);
        assert_eq!((failure.code, failure.retryable, stub.count()), (code, true, 3), "{failure:?}");
        assert!(failure.message.starts_with(message), "{failure:?}");
    }
}

#[tokio::test]
async fn what_cannot_pass_is_tried_once() {
    let quota = json!({"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}});
    let overflow = json!({"error": {"message": "This model's maximum context length is 8 tokens"}});
    let table = [
        (Reply::json(429, &quota), ModelFailureCode::RateLimited),
        (Reply::json(400, &overflow), ModelFailureCode::ContextOverflow),
        (Reply::json(401, &json!({"message": "no"})), ModelFailureCode::Auth),
        (Reply::status(400, "what"), ModelFailureCode::InvalidRequest),
        (Reply::status(302, "").header("location", "http://127.0.0.1:1/"), ModelFailureCode::InvalidRequest),
        (Reply::status(200, "<html>").header("content-type", "text/html"), ModelFailureCode::InvalidOutput),
        (Reply::stream(["{not json"]), ModelFailureCode::InvalidOutput),
        (Reply::stream([r#"{"error":{"message":"bad","code":400}}"#]), ModelFailureCode::InvalidRequest),
    ];
    for (reply, code) in table {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(reply);
        let failure = failed(ask(&stub, hello()).await);
        assert_eq!((failure.code, failure.retryable, stub.count()), (code, false, 1), "{failure:?}");
    }
}

#[tokio::test]
async fn a_second_attempt_begins_its_own_deltas() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::text(&["half", " an answer"]).cut_after(2)).then(chat::text(&["whole"]));
    let (outcome, deltas) = ask(&stub, hello()).await;
    assert_eq!(completed((outcome, deltas.clone())).text(), Text::from("whole"));
    assert_eq!((deltas.text(1), deltas.text(2)), ("half".into(), "whole".into()));
}

#[tokio::test]
async fn a_cut_after_the_end_costs_nothing() {
    let stub = ProviderStub::start().await.unwrap();
    // The first chunk, the text, the finish reason; then neither usage nor the last word.
    stub.then(chat::text(&["whole"]).cut_after(3));
    let candidate = completed(ask(&stub, hello()).await);
    assert_eq!((candidate.text(), candidate.usage), (Text::from("whole"), None));
}

#[tokio::test]
async fn a_wait_that_the_provider_asks_for_is_kept_within_bounds() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(Reply::status(429, "").header("retry-after", "3600")).then(chat::text(&["ok"]));
    let settings = CallSettings {
        base_delay: Duration::from_secs(3600),
        max_retry_after: Duration::from_millis(50),
        ..CallSettings::default()
    };
    let begun = Instant::now();
    let gate = gate(Ok(ModelAccess::Provider(access(&stub, "custom", "m"))), settings);
    let outcome = gate.call(&call(hello()), Deltas::new(), Abort::never()).await.unwrap();
    assert_eq!(completed((outcome, Deltas::new())).text(), Text::from("ok"));
    assert!(begun.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let silent = [
        (Reply::never(), CallSettings { idle: Duration::from_millis(50), attempts: 2, ..fast() }, "nothing came"),
        (
            chat::text(&["a"]).hang_after(2),
            CallSettings { idle: Duration::from_millis(50), attempts: 2, ..fast() },
            "nothing came",
        ),
        (
            chat::text(&["a"]).hang_after(2),
            CallSettings { request: Duration::from_millis(50), attempts: 2, ..fast() },
            "no whole",
        ),
    ];
    for (reply, settings, message) in silent {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(reply.clone()).then(reply);
        let gate = gate(Ok(ModelAccess::Provider(access(&stub, "custom", "m"))), settings);
        let outcome = gate.call(&call(hello()), Deltas::new(), Abort::never()).await.unwrap();
        let failure = failed((outcome, Deltas::new()));
        assert_eq!((failure.code, failure.retryable, stub.count()), (ModelFailureCode::Timeout, true, 2));
        assert!(failure.message.starts_with(message), "{failure:?}");
    }
}

/// Time stands still while anything runs, and jumps to the next timer when all wait: so five minutes pass at once.
#[tokio::test(start_paused = true)]
async fn the_watchdog_waits_five_minutes() {
    let stub = ProviderStub::start().await.unwrap();
    stub.always(|_| Reply::never());
    let settings = CallSettings { attempts: 1, ..CallSettings::default() };
    let gate = gate(Ok(ModelAccess::Provider(access(&stub, "custom", "m"))), settings);
    let begun = tokio::time::Instant::now();
    let outcome = gate.call(&call(hello()), Deltas::new(), Abort::never()).await.unwrap();
    let failure = failed((outcome, Deltas::new()));
    assert_eq!(failure.message, "nothing came from the provider within 300 s");
    assert_eq!(begun.elapsed().as_secs(), 300);
}

#[tokio::test]
async fn an_abort_ends_a_call_at_once() {
    for reply in [Reply::never(), chat::text(&["a"]).hang_after(2), Reply::status(500, "then it waits an hour")] {
        let stub = ProviderStub::start().await.unwrap();
        stub.then(reply);
        let settings = CallSettings { base_delay: Duration::from_secs(3600), ..CallSettings::default() };
        let gate = gate(Ok(ModelAccess::Provider(access(&stub, "custom", "m"))), settings);
        let (handle, abort) = abort_pair();
        let asked = call(hello());
        let (outcome, ()) = tokio::join!(gate.call(&asked, Deltas::new(), abort), async {
            stub.wait_for(1).await;
            handle.abort(AbortKind::Deadline);
        });
        assert_eq!(outcome, None);
    }
}

#[tokio::test]
async fn nobody_listening_is_transient() {
    let stub = ProviderStub::start().await.unwrap();
    let mut access = access(&stub, "custom", "m");
    access.base_url = Some("http://127.0.0.1:1/v1".into());
    let failure = failed(ask_as(access, hello()).await);
    assert_eq!((failure.code, failure.retryable), (ModelFailureCode::Transient, true));
    assert_eq!(failure.message, "no connection to 127.0.0.1:1: Connection refused (os error 111)");
}

#[tokio::test]
async fn a_key_that_is_echoed_is_taken_out_and_debug_shows_none() {
    let stub = ProviderStub::start().await.unwrap();
    let error = json!({"error": {"message": format!("Incorrect API key provided: {CANARY}")}});
    stub.then(Reply::json(401, &error));
    let access = access(&stub, "custom", "m");
    let failure = failed(ask_as(access.clone(), hello()).await);
    assert_eq!(failure.message, "HTTP 401: Incorrect API key provided: [redacted]");
    assert!(!format!("{access:?} {failure:?}").contains("canary"));

    let mut bad = access.clone();
    bad.key = nylorun_ports::secret::Secret::new(format!("{CANARY}\n"));
    let failure = failed(ask_as(bad, hello()).await);
    assert_eq!(failure.code, ModelFailureCode::Auth);
    assert!(!format!("{failure:?}").contains("canary"));
}

/// Refuses every call, or counts those that are in flight.
#[derive(Clone)]
struct Counting {
    refuses: bool,
    in_flight: Arc<AtomicI64>,
}

impl Budgets for Counting {
    fn admit<'a>(&'a self, _: &'a ModelCall, _: &'a BudgetsVersion) -> BoxFuture<'a, Admission> {
        let in_flight = Arc::clone(&self.in_flight);
        let exhausted = Exhausted {
            scope: BudgetScope::Turn,
            measure: Measure::Tokens,
            limit: 1,
            spent: 2,
            in_flight: 0,
            anew_at: None,
        };
        Box::pin(async move {
            if self.refuses {
                return Admission::Refused(exhausted);
            }
            in_flight.fetch_add(1, Ordering::SeqCst);
            Admission::Granted(Pass::counted(move || {
                in_flight.fetch_sub(1, Ordering::SeqCst);
            }))
        })
    }
}

#[tokio::test]
async fn a_budget_that_is_used_up_refuses_the_call_before_it_is_made() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::text(&["never"]));
    let budgets = Counting { refuses: true, in_flight: Arc::default() };
    for choice in [ModelAccess::Fixture, ModelAccess::Provider(access(&stub, "custom", "m"))] {
        let gate = gate_within(Ok(choice), Arc::new(budgets.clone()), fast());
        let outcome = gate.call(&call(hello()), Deltas::new(), Abort::never()).await.unwrap();
        let failure = failed((outcome, Deltas::new()));
        assert_eq!((failure.code, failure.retryable, stub.count()), (ModelFailureCode::BudgetExhausted, false, 0));
        assert!(failure.message.starts_with("The budget of a turn is used up: 2 of 1 tokens."), "{failure:?}");
    }
    let gate = gate_within(Ok(ModelAccess::None), Arc::new(budgets), fast());
    let outcome = gate.call(&call(hello()), Deltas::new(), Abort::never()).await.unwrap();
    assert_eq!(failed((outcome, Deltas::new())).code, ModelFailureCode::Auth, "nothing would have been called");
}

#[tokio::test]
async fn a_call_is_in_flight_until_it_ended_or_was_aborted() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(chat::text(&["a"]).hang_after(2)).then(chat::text(&["ok"]));
    let budgets = Counting { refuses: false, in_flight: Arc::default() };
    let in_flight = Arc::clone(&budgets.in_flight);
    let gate = gate_within(Ok(ModelAccess::Provider(access(&stub, "custom", "m"))), Arc::new(budgets), fast());
    let (handle, abort) = abort_pair();
    let asked = call(hello());
    let (outcome, ()) = tokio::join!(gate.call(&asked, Deltas::new(), abort), async {
        stub.wait_for(1).await;
        assert_eq!(in_flight.load(Ordering::SeqCst), 1);
        handle.abort(AbortKind::Cancel);
    });
    assert_eq!((outcome, in_flight.load(Ordering::SeqCst)), (None, 0));
    gate.call(&asked, Deltas::new(), Abort::never()).await.unwrap();
    assert_eq!(in_flight.load(Ordering::SeqCst), 0);
}
