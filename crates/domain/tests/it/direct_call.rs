//! Calls of workspace tools by the application itself.

use nylorun_domain::change::Stamp;
use nylorun_domain::direct_call::{CallSite, DirectCall, DirectCallChange, begin, end, lost};
use nylorun_domain::event::Payload;
use nylorun_domain::id::{SessionId, WorkerId};
use nylorun_domain::json::Json;
use nylorun_domain::session::{Session, Status};
use nylorun_domain::time::Millis;
use nylorun_domain::tool::WorkspaceTool;
use nylorun_domain::turn::Refusal;
use nylorun_domain::workspace::{ExecOutcome, WorkspaceEvent};

use crate::turn::{session, turn};

const AT: Stamp<'static> = Stamp { now: Millis(1_000), uuid: &|| "id".to_owned() };

fn worker() -> WorkerId {
    WorkerId::from_trusted("w")
}

fn call() -> DirectCall {
    DirectCall {
        id: "id".into(),
        session_id: SessionId::from_trusted("s"),
        tool: WorkspaceTool::Bash,
        subject: Some("make".into()),
        worker: worker(),
        began_at: Millis(1_000),
    }
}

/// A call in the session's own workspace.
fn own(session: &Session) -> CallSite<'_> {
    CallSite { session, owner: session, holder: None }
}

#[test]
fn a_call_in_a_shared_workspace_is_written_down_with_its_owner() {
    let input = Json::from_trusted(r#"{"command":"make"}"#);
    let owner = Session { sharers: 1, ..session(Status::Idle) };
    let sharer = Session {
        id: SessionId::from_trusted("sharer"),
        sandbox_owner: Some(owner.id.clone()),
        ..session(Status::Completed)
    };
    let site = CallSite { session: &sharer, owner: &owner, holder: None };
    let change = begin(site.clone(), WorkspaceTool::Bash, &input, &worker(), &AT);
    let change = change.expect("nobody has it").expect("it is written down");
    assert_eq!((&change.session.id, change.claims_workspace_of), (&owner.id, Some(owner.id.clone())));
    assert_eq!(change.direct_calls, [DirectCallChange::Begin(call())]);
    let by = SessionId::from_trusted("other");
    let held = CallSite { holder: Some(by.clone()), ..site.clone() };
    for tool in WorkspaceTool::ALL {
        let refused = begin(held.clone(), *tool, &input, &worker(), &AT);
        assert_eq!(refused, Err(Refusal::WorkspaceHeld { by: Some(by.clone()) }), "{tool:?}");
    }
    let busy = Session { id: sharer.id.clone(), ..session(Status::Running) };
    let refused = begin(CallSite { session: &busy, ..site }, WorkspaceTool::Bash, &input, &worker(), &AT);
    assert_eq!(refused, Err(Refusal::WorkspaceInUse { active_turn_id: turn() }));
}

#[test]
fn what_may_change_something_is_written_down_before_it_runs() {
    let input = Json::from_trusted(r#"{"command":"make","path":"a"}"#);
    for tool in WorkspaceTool::ALL {
        let change = begin(own(&session(Status::Idle)), *tool, &input, &worker(), &AT).expect("no turn is active");
        assert_eq!(change.is_none(), tool.is_read_only(), "{tool:?}");
    }
    let change = begin(own(&session(Status::Completed)), WorkspaceTool::Bash, &input, &worker(), &AT);
    let change = change.expect("no turn is active").expect("it is written down");
    assert_eq!((change.events, change.direct_calls), (vec![], vec![DirectCallChange::Begin(call())]));
}

#[test]
fn an_active_turn_has_the_workspace() {
    for status in Status::ALL.iter().filter(|status| !status.accepts_message()) {
        for tool in WorkspaceTool::ALL {
            let refused = begin(own(&session(*status)), *tool, &Json::from_trusted("{}"), &worker(), &AT);
            assert_eq!(refused, Err(Refusal::WorkspaceInUse { active_turn_id: turn() }), "{status:?}");
        }
    }
}

#[test]
fn a_call_ends_with_what_it_left() {
    let event = lost(&call(), Millis(3_500));
    let expected = WorkspaceEvent::Exec {
        tool: WorkspaceTool::Bash,
        command: Some("make".into()),
        path: None,
        exit_code: None,
        killed: false,
        outcome: ExecOutcome::Uncertain,
        code: Some("sandbox.uncertain".into()),
        duration_ms: 2_500,
    };
    assert_eq!(event, expected);
    let before = session(Status::Idle);
    let change = end(&before, Some(&call()), vec![event.clone()], &AT).expect("there is an intent to remove");
    assert_eq!(change.direct_calls, [DirectCallChange::End { id: "id".into() }]);
    let [written] = &change.events[..] else { panic!("{:?}", change.events) };
    assert_eq!((&written.payload, &written.turn_id), (&Payload::Workspace(event), &None));
    // Refused before it ran: the intent goes, and there is nothing to say.
    let change = end(&before, Some(&call()), vec![], &AT).expect("there is an intent to remove");
    assert_eq!((change.events.len(), change.direct_calls.len()), (0, 1));
    assert_eq!(end(&before, None, vec![], &AT), None);
}
