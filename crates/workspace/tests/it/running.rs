//! How many workspaces run at once.

use std::num::NonZeroU32;
use std::time::Duration;

use nylorun_domain::id::SessionId;
use nylorun_domain::json::Value;
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::tool::WorkspaceTool::{Bash, Read, Write};
use nylorun_domain::workspace::WorkspaceState;
use nylorun_ports::abort::{Abort, AbortKind, abort_pair};
use nylorun_ports::workspaces::{WorkspaceAnswer, WorkspaceOutcome, Workspaces};
use nylorun_workspace::{ManagerConfig, WorkspaceRead, WorkspaceReadOutcome};

use crate::manager::{BUSY, children};
use crate::support::{Rig, bash_input, call, in_short, key, spec};

fn at_most(max_live: u32) -> Rig {
    let max_live = NonZeroU32::new(max_live).unwrap();
    Rig::new().with(|config| ManagerConfig { max_live, ..config })
}

/// One call of a session.
async fn answer(rig: &Rig, session: &str, command: &str) -> WorkspaceAnswer {
    rig.manager.call(call(session, Bash, &bash_input(command)), Abort::never()).await
}

fn state(rig: &Rig, session: &str) -> Option<WorkspaceState> {
    rig.log.get(&key(session)).map(|record| record.state)
}

async fn started(rig: &Rig, session: &str) {
    while !rig.root().join(key(session).as_str()).join("workspace/started").exists() {
        tokio::task::yield_now().await;
    }
}

fn go(rig: &Rig, session: &str) {
    std::fs::write(rig.root().join(key(session).as_str()).join("workspace/go"), "").unwrap();
}

#[tokio::test]
async fn above_the_number_the_one_that_is_idle_longest_is_stopped() {
    let rig = at_most(2);
    for session in ["a", "b", "a"] {
        answer(&rig, session, "echo $PWD >> kept").await;
        rig.log.advance(10);
    }
    let answered = answer(&rig, "c", "true").await;
    assert_eq!(in_short(&answered.events), ["exec bash completed 0"]);
    let running = Some(WorkspaceState::Running);
    assert_eq!(["a", "b", "c"].map(|s| state(&rig, s)), [running, Some(WorkspaceState::Stopped), running]);
    assert_eq!(children(&rig).len(), 2);
    let change = rig.log.changes().into_iter().rev().find(|change| in_short([&change.event]) == ["stopped"]).unwrap();
    assert_eq!((change.record.map(|record| record.key), change.claim), (Some(key("b")), None));
    // Its files are there when it comes back, in the place of `a`.
    let answered = answer(&rig, "b", "wc -l kept").await;
    assert_eq!(in_short(&answered.events), ["exec bash completed 0"]);
    assert_eq!(rig.log.last(), ["stopped", "creating reattach", "running"]);
    assert_eq!(["a", "b", "c"].map(|s| state(&rig, s)), [Some(WorkspaceState::Stopped), running, running]);
    assert_eq!(children(&rig).len(), 2);
}

#[tokio::test]
async fn when_all_are_at_work_calls_wait_in_order() {
    let rig = at_most(1);
    let waiting = |session| rig.manager.call(call(session, Bash, &bash_input("echo here")), Abort::never());
    let in_line = async {
        started(&rig, "a").await;
        // Each is polled, so that it waits, before the next one comes.
        let (mut c, mut b, mut d) = (waiting("c"), waiting("b"), waiting("d"));
        for call in [&mut c, &mut b, &mut d] {
            assert!(poll_once(call).await.is_none());
        }
        assert_eq!(children(&rig).len(), 1);
        go(&rig, "a");
        tokio::join!(c, b, d);
    };
    tokio::join!(answer(&rig, "a", BUSY), in_line);
    let created: Vec<_> = rig
        .log
        .changes()
        .iter()
        .filter(|change| in_short([&change.event]) == ["creating"])
        .map(|change| change.session_id.as_str().to_owned())
        .collect();
    assert_eq!(created, ["a", "c", "b", "d"]);
    assert_eq!(children(&rig).len(), 1);
}

/// Polls a future once.
async fn poll_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    let mut polled = None;
    std::future::poll_fn(|cx| {
        polled = Some(match std::pin::Pin::new(&mut *future).poll(cx) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        });
        std::task::Poll::Ready(())
    })
    .await;
    polled.flatten()
}

#[tokio::test]
async fn a_call_waits_for_its_own_time_limit_and_then_fails() {
    let rig = at_most(1);
    let refused = async {
        started(&rig, "a").await;
        let input = Value::object([("command", Value::from("true")), ("timeout", Value::from(1))]);
        let refused = rig.manager.call(call("b", Bash, input.to_json().as_str()), Abort::never()).await;
        go(&rig, "a");
        refused
    };
    let (_, refused) = tokio::join!(answer(&rig, "a", BUSY), refused);
    let message = "The workspace could not be started: 1 may run at once, and all were at work for 1 s. Try again \
                   later; the operator can raise NYLORUN_WORKSPACES_LIVE.";
    let outcome = WorkspaceOutcome::Done(ToolOutcome::failed("sandbox.start_failed", message));
    assert_eq!((refused.outcome, refused.events, state(&rig, "b")), (outcome, vec![], None));
    // It has left the line.
    assert_eq!(in_short(&answer(&rig, "b", "true").await.events), ["exec bash completed 0"]);
}

#[tokio::test]
async fn a_call_that_waits_can_be_aborted_and_ends_with_the_manager() {
    let rig = at_most(1);
    let (handle, abort) = abort_pair();
    let waiting = async {
        started(&rig, "a").await;
        let mut aborted = rig.manager.call(call("b", Bash, &bash_input("true")), abort);
        let mut closed = rig.manager.call(call("c", Write, r#"{"path":"x","content":""}"#), Abort::never());
        assert!(poll_once(&mut aborted).await.is_none());
        assert!(poll_once(&mut closed).await.is_none());
        handle.abort(AbortKind::Cancel);
        let aborted = aborted.await;
        let (closed, ()) = tokio::join!(closed, rig.manager.close(Duration::from_millis(50)));
        [aborted, closed]
    };
    let (_, answers) = tokio::join!(answer(&rig, "a", BUSY), waiting);
    for answer in answers {
        assert_eq!((answer.outcome, answer.events), (WorkspaceOutcome::Aborted, Vec::new()));
    }
    assert_eq!(children(&rig).len(), 0);
}

#[tokio::test]
async fn reads_outside_of_calls_wait_too_and_a_removed_workspace_makes_room() {
    let rig = at_most(1);
    answer(&rig, "b", "echo x > f").await;
    let read = WorkspaceRead { claim: None, owner: SessionId::from_trusted("b"), key: key("b"), spec: spec() };
    let removed = async {
        started(&rig, "a").await;
        let key = key("a");
        let removal = rig.manager.remove(&key);
        go(&rig, "a");
        removal.await.unwrap();
    };
    let waiting = async {
        started(&rig, "a").await;
        rig.manager.read_bytes(read, "f", 10).await
    };
    let (_, (), found) = tokio::join!(answer(&rig, "a", BUSY), removed, waiting);
    assert_eq!(found, WorkspaceReadOutcome::Found(b"x\n".to_vec()));
    assert_eq!(children(&rig).len(), 1);
}

#[tokio::test]
async fn many_sessions_share_few_processes() {
    let rig = at_most(4);
    let mut sessions = tokio::task::JoinSet::new();
    for n in 0..41 {
        let manager = rig.manager.clone();
        sessions.spawn(async move {
            let call = |tool, input| manager.call(call(&format!("session-{n}"), tool, input), Abort::never());
            [call(Write, r#"{"path":"f","content":"kept"}"#).await, call(Read, r#"{"path":"f"}"#).await]
        });
    }
    let mut most = 0;
    while let Some(answers) = sessions.join_next().await {
        for answer in answers.unwrap() {
            assert!(matches!(answer.outcome, WorkspaceOutcome::Done(ToolOutcome::Completed { .. })), "{answer:?}");
        }
        most = most.max(children(&rig).len());
    }
    assert_eq!(most, 4);
}
