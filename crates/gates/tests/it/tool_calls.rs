//! Each call is sent at most once, whoever asks for it and however often.

use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::abort::{Abort, AbortKind, abort_pair};
use nylorun_ports::crossings::Crossed;
use nylorun_ports::http_tools::{HttpToolAnswer, HttpToolCall, HttpTools};
use nylorun_testkit::provider::{Piece, ProviderStub, Reply};
use tokio::sync::watch;

use crate::tool_support::{Kept, call, completed, failure, gate};

async fn stub() -> ProviderStub {
    ProviderStub::start().await.unwrap()
}

fn answered(output: &str) -> Option<Option<ToolOutcome>> {
    match completed(output) {
        HttpToolAnswer::Done(outcome) => Some(Some(outcome)),
        HttpToolAnswer::Lost { .. } | HttpToolAnswer::Aborted => None,
    }
}

#[tokio::test]
async fn a_recorded_answer_is_given_again_by_a_new_process() {
    let (stub, kept) = (stub().await, Arc::<Kept>::default());
    stub.then(Reply::status(200, "one"));
    for _ in 0..3 {
        // A gate for each call, as after a restart.
        assert_eq!(gate(&kept).call(call(&stub.base_url()), Abort::never()).await, completed("\"one\""));
    }
    assert_eq!((stub.count(), kept.of("e1")), (1, answered("\"one\"")));
}

#[tokio::test]
async fn failures_are_recorded_too() {
    let (stub, kept) = (stub().await, Arc::<Kept>::default());
    stub.then(Reply::status(500, "boom"));
    for _ in 0..2 {
        assert_eq!(failure(gate(&kept).call(call(&stub.base_url()), Abort::never()).await).0, "http.status");
    }
    assert_eq!(stub.count(), 1);
}

#[tokio::test]
async fn a_call_whose_answer_was_lost_is_never_sent_again() {
    let (stub, kept) = (stub().await, Arc::<Kept>::default());
    stub.then(Reply::status(200, "ha").piece(Piece::Cut));
    for _ in 0..3 {
        let answer = gate(&kept).call(call(&stub.base_url()), Abort::never()).await;
        assert!(matches!(answer, HttpToolAnswer::Lost { .. }), "{answer:?}");
    }
    assert_eq!((stub.count(), kept.of("e1")), (1, Some(None)));
}

#[tokio::test]
async fn another_request_under_the_same_key_is_refused() {
    let (stub, kept) = (stub().await, Arc::<Kept>::default());
    stub.then(Reply::status(200, "one"));
    gate(&kept).call(call(&stub.base_url()), Abort::never()).await;
    let other = HttpToolCall { request_hash: "other".into(), ..call(&stub.base_url()) };
    let (code, message) = failure(gate(&kept).call(other, Abort::never()).await);
    assert_eq!((code.as_str(), message.contains("Another request")), ("http.failed", true));
    assert_eq!(stub.count(), 1);
}

#[tokio::test]
async fn nothing_is_sent_before_the_crossing_is_recorded() {
    let (stub, kept) = (stub().await, Arc::<Kept>::default());
    kept.refuse(Crossed::NotHeld);
    assert_eq!(failure(gate(&kept).call(call(&stub.base_url()), Abort::never()).await).0, "http.failed");
    kept.go_down();
    assert_eq!(failure(gate(&kept).call(call(&stub.base_url()), Abort::never()).await).0, "http.failed");
    assert_eq!((stub.count(), kept.of("e1")), (0, None));
}

#[tokio::test]
async fn an_answer_that_cannot_be_kept_at_the_gate_is_given_all_the_same() {
    let (stub, kept) = (stub().await, Arc::<Kept>::default());
    let down = Arc::clone(&kept);
    stub.always(move |_| {
        down.go_down();
        Reply::status(200, "one")
    });
    assert_eq!(gate(&kept).call(call(&stub.base_url()), Abort::never()).await, completed("\"one\""));
    assert_eq!(kept.of("e1"), Some(None));
}

/// An endpoint whose answers wait for the test.
struct Held {
    stub: ProviderStub,
    release: watch::Sender<bool>,
}

impl Held {
    async fn new() -> Self {
        let stub = stub().await;
        let (release, released) = watch::channel(false);
        stub.always_after(released, |_| Reply::status(200, "late"));
        Self { stub, release }
    }

    fn call(&self) -> HttpToolCall {
        call(&self.stub.base_url())
    }
}

#[tokio::test]
async fn who_asks_while_the_call_runs_joins_it() {
    let (held, kept) = (Held::new().await, Arc::<Kept>::default());
    let gate = gate(&kept);
    let first = tokio::spawn({
        let (gate, call) = (gate.clone(), held.call());
        async move { gate.call(call, Abort::never()).await }
    });
    held.stub.wait_for(1).await;
    let other = HttpToolCall { request_hash: "other".into(), ..held.call() };
    assert_eq!(failure(gate.call(other, Abort::never()).await).0, "http.failed");
    let second = gate.call(held.call(), Abort::never());
    held.release.send_replace(true);
    assert_eq!(second.await, completed("\"late\""));
    assert_eq!(first.await.unwrap(), completed("\"late\""));
    assert_eq!(held.stub.count(), 1);
}

/// A call that waits at its endpoint, told this.
async fn told(held: &Held, kept: &Arc<Kept>, kinds: &[AbortKind]) -> (nylorun_gates::HttpToolGate, HttpToolAnswer) {
    let gate = gate(kept);
    let (handle, abort) = abort_pair();
    let calling = tokio::spawn({
        let (gate, call) = (gate.clone(), held.call());
        async move { gate.call(call, abort).await }
    });
    held.stub.wait_for(1).await;
    kinds.iter().for_each(|kind| handle.abort(*kind));
    if kinds == [AbortKind::Shutdown] {
        held.release.send_replace(true);
    }
    (gate, calling.await.unwrap())
}

#[tokio::test]
async fn a_shutdown_lets_the_call_finish() {
    let (held, kept) = (Held::new().await, Arc::<Kept>::default());
    let (_, answer) = told(&held, &kept, &[AbortKind::Shutdown]).await;
    assert_eq!((answer, kept.of("e1")), (completed("\"late\""), answered("\"late\"")));
}

#[tokio::test]
async fn a_cancel_and_a_deadline_end_the_call() {
    for kinds in [&[AbortKind::Cancel][..], &[AbortKind::Shutdown, AbortKind::Deadline][..]] {
        let (held, kept) = (Held::new().await, Arc::<Kept>::default());
        let (gate, answer) = told(&held, &kept, kinds).await;
        assert_eq!(answer, HttpToolAnswer::Aborted);
        // The call is over: there is nothing to wait for, although its endpoint never answers.
        gate.close(Duration::from_secs(60)).await;
        held.release.send_replace(true);
        let again = gate.call(held.call(), Abort::never()).await;
        assert!(matches!(again, HttpToolAnswer::Lost { .. }), "{again:?}");
        assert_eq!((held.stub.count(), kept.of("e1")), (1, Some(None)));
    }
}

#[tokio::test]
async fn a_call_outlives_the_owner_who_asked_for_it() {
    let (held, kept) = (Held::new().await, Arc::<Kept>::default());
    let (gate, answer) = told(&held, &kept, &[AbortKind::OwnershipLost]).await;
    assert_eq!(answer, HttpToolAnswer::Aborted);
    let next_owner = gate.call(held.call(), Abort::never());
    held.release.send_replace(true);
    assert_eq!(next_owner.await, completed("\"late\""));
    assert_eq!((held.stub.count(), kept.of("e1")), (1, answered("\"late\"")));
}

#[tokio::test]
async fn who_is_told_before_the_call_sends_nothing() {
    let (stub, kept) = (stub().await, Arc::<Kept>::default());
    for kind in [AbortKind::Deadline, AbortKind::Cancel, AbortKind::OwnershipLost] {
        let (handle, abort) = abort_pair();
        handle.abort(kind);
        assert_eq!(gate(&kept).call(call(&stub.base_url()), abort).await, HttpToolAnswer::Aborted);
    }
    assert_eq!((stub.count(), kept.of("e1")), (0, None));
}

#[tokio::test]
async fn a_closing_gate_waits_for_calls_and_then_ends_them() {
    let (held, kept) = (Held::new().await, Arc::<Kept>::default());
    let (gate, _) = told(&held, &kept, &[AbortKind::OwnershipLost]).await;
    let closing = gate.close(Duration::from_secs(60));
    held.release.send_replace(true);
    closing.await;
    assert_eq!(kept.of("e1"), answered("\"late\""));

    let (held, kept) = (Held::new().await, Arc::<Kept>::default());
    let (gate, _) = told(&held, &kept, &[AbortKind::OwnershipLost]).await;
    gate.close(Duration::from_millis(1)).await;
    gate.close(Duration::from_secs(60)).await;
    assert_eq!(kept.of("e1"), Some(None));
}
