//! The manager's rules (environments 3).

use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::id::SessionId;
use nylorun_domain::time::Millis;
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::tool::WorkspaceTool::{Bash, Read, Write};
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceRecord, WorkspaceState};
use nylorun_ports::abort::Abort;
use nylorun_ports::backends::FileList;
use nylorun_ports::workspaces::{LogError, WorkspaceCall, WorkspaceLog, WorkspaceOutcome, Workspaces};
use nylorun_workspace::{Lifetime, ManagerConfig, WorkspaceManager, WorkspaceRead, WorkspaceReadOutcome};

use crate::support::{Rig, bash_input, call, claim, config, in_short, key, object, spec};

fn state_of(rig: &Rig) -> Option<WorkspaceState> {
    rig.log.get(&key("s")).map(|record| record.state)
}

/// Ids of the processes that serve workspaces below this home, found by their command line.
pub(crate) fn children(rig: &Rig) -> Vec<i32> {
    let root = rig.root().to_str().unwrap().to_owned();
    let pids =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&root)
    })
    .collect()
}

/// The call in the workspace of this session.
fn sharing(owner: &str, call: WorkspaceCall) -> WorkspaceCall {
    WorkspaceCall { owner: SessionId::from_trusted(owner), key: key(owner), ..call }
}

/// Runs until its file `go` is there.
pub(crate) const BUSY: &str = "echo > started; while [ ! -e go ]; do sleep 0.01; done";

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn the_first_call_records_before_it_makes_and_later_ones_only_run() {
    let rig = Rig::new();
    assert!(!rig.root().exists(), "nothing is probed or made before the first call");
    let answer = rig.answer(Bash, &bash_input("echo hi")).await;
    let changes = rig.log.changes();
    assert_eq!(in_short(changes.iter().map(|change| &change.event)), ["creating", "running"]);
    assert_eq!(changes[0].record.as_ref().map(|record| record.state), Some(WorkspaceState::Creating));
    for change in &changes {
        assert_eq!(change.claim, Some(claim("s")));
    }
    assert_eq!(in_short(&answer.events), ["exec bash completed 0"]);
    let expected = WorkspaceRecord {
        key: key("s"),
        session_id: SessionId::from_trusted("s"),
        environment_id: None,
        backend: "virtual".to_owned(),
        image: String::new(),
        state: WorkspaceState::Running,
        created_at: Millis(1_000_000),
        updated_at: Millis(1_000_001),
    };
    assert_eq!((&changes[1].record, rig.log.get(&key("s"))), (&Some(expected.clone()), Some(expected)));
    let answer = rig.answer(Bash, &bash_input("false")).await;
    assert_eq!((in_short(&answer.events), rig.log.changes().len()), (vec!["exec bash completed 1".to_owned()], 2));
    assert_eq!(children(&rig).len(), 1);
}

#[tokio::test]
async fn an_input_with_problems_opens_nothing() {
    let rig = Rig::new();
    let answer = rig.answer(Bash, "{}").await;
    let WorkspaceOutcome::Done(ToolOutcome::Failed { code, .. }) = answer.outcome else { panic!("{answer:?}") };
    assert_eq!((code.as_str(), answer.events, rig.root().exists()), ("tool.invalid-arguments", Vec::new(), false));
}

#[tokio::test]
async fn an_idle_workspace_is_stopped_and_the_next_call_finds_its_files() {
    let rig = Rig::new();
    rig.write("kept", "x").await;
    rig.bash("echo > /tmp/gone").await;
    rig.manager.stop_idle(rig.log.advance(999)).await;
    assert_eq!(children(&rig).len(), 1);
    rig.manager.stop_idle(rig.log.advance(1)).await;
    assert_eq!((children(&rig).len(), state_of(&rig)), (0, Some(WorkspaceState::Stopped)));
    let stopped = rig.log.changes().pop().unwrap();
    assert_eq!((in_short([&stopped.event]), stopped.claim), (vec!["stopped".to_owned()], None));
    let answer = rig.answer(Read, r#"{"path":"kept"}"#).await;
    assert_eq!(in_short(&answer.events), ["exec read completed"]);
    assert_eq!(rig.log.last(), ["creating reattach", "running"]);
    assert_eq!(rig.failure(Read, r#"{"path":"/tmp/gone"}"#).await.0, "sandbox.not_found");
}

#[tokio::test]
async fn a_workspace_at_work_is_never_idle() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    let command = bash_input(BUSY);
    let sweep = async {
        while !rig.files().join("started").exists() {
            tokio::task::yield_now().await;
        }
        rig.manager.stop_idle(rig.log.advance(1_000_000)).await;
        rig.manager.after_restart().await;
        std::fs::write(rig.files().join("go"), "").unwrap();
    };
    let (answer, ()) = tokio::join!(rig.answer(Bash, &command), sweep);
    assert_eq!(in_short(&answer.events), ["exec bash completed 0"]);
    assert_eq!(state_of(&rig), Some(WorkspaceState::Running));
}

#[tokio::test]
async fn after_a_restart_records_are_settled_and_files_are_there() {
    let rig = Rig::new();
    rig.write("kept", "x").await;
    let next = rig.restarted();
    next.manager.after_restart().await;
    assert_eq!(state_of(&next), Some(WorkspaceState::Stopped));
    assert_eq!(in_short([&next.log.changes().pop().unwrap().event]), ["stopped"]);
    // The first process's own sweep leaves what lives there alone.
    rig.log.put(WorkspaceRecord { state: WorkspaceState::Running, ..rig.log.get(&key("s")).unwrap() });
    rig.manager.after_restart().await;
    assert_eq!(state_of(&rig), Some(WorkspaceState::Running));
    assert_eq!(next.text(Read, r#"{"path":"kept"}"#).await, "1\tx");
}

#[tokio::test]
async fn files_that_are_gone_are_said_to_be_lost() {
    let rig = Rig::new();
    rig.write("kept", "x").await;
    rig.manager.stop_idle(rig.log.advance(1_000)).await;
    std::fs::remove_dir_all(rig.files()).unwrap();
    let answer = rig.answer(Read, r#"{"path":"kept"}"#).await;
    assert_eq!(in_short(&answer.events), ["exec read failed sandbox.not_found"]);
    assert_eq!(rig.log.last(), ["creating reattach", "running lost"]);
}

#[tokio::test]
async fn a_crash_between_record_and_files_is_no_loss() {
    let rig = Rig::new();
    let now = rig.log.now();
    rig.log.put(WorkspaceRecord {
        key: key("s"),
        session_id: SessionId::from_trusted("s"),
        environment_id: None,
        backend: "virtual".to_owned(),
        image: String::new(),
        state: WorkspaceState::Creating,
        created_at: now,
        updated_at: now,
    });
    rig.log.advance(10);
    rig.manager.after_restart().await;
    assert_eq!(state_of(&rig), Some(WorkspaceState::Stopped));
    rig.bash("true").await;
    assert_eq!(rig.log.last(), ["creating reattach", "running"]);
}

#[tokio::test]
async fn a_start_that_fails_is_definite_and_the_next_call_tries_again() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.root()).unwrap();
    // A file stands where the workspace's directory would.
    std::fs::write(rig.root().join(key("s").as_str()), "").unwrap();
    let answer = rig.answer(Bash, &bash_input("true")).await;
    let WorkspaceOutcome::Done(ToolOutcome::Failed { code, .. }) = &answer.outcome else { panic!("{answer:?}") };
    assert_eq!(code, "sandbox.start_failed");
    assert_eq!(in_short(&answer.events), [""; 0]);
    assert_eq!(
        (rig.log.last(), state_of(&rig)),
        (["creating", "stopped error"].map(str::to_owned), Some(WorkspaceState::Stopped))
    );
    std::fs::remove_file(rig.root().join(key("s").as_str())).unwrap();
    rig.bash("true").await;
    assert_eq!(rig.log.last(), ["creating reattach", "running"]);
}

#[tokio::test]
async fn that_it_runs_is_recorded_before_anything_runs_in_it() {
    let rig = Rig::new();
    let call = rig.manager.call(call("s", Bash, &bash_input(BUSY)), Abort::never());
    let seen = async {
        while !rig.files().join("started").exists() {
            tokio::task::yield_now().await;
        }
        let seen = (rig.log.last(), state_of(&rig));
        std::fs::write(rig.files().join("go"), "").unwrap();
        seen
    };
    let (_, seen) = tokio::join!(call, seen);
    assert_eq!(seen, (["creating", "running"].map(str::to_owned), Some(WorkspaceState::Running)));
}

#[tokio::test]
async fn a_workspace_whose_start_cannot_be_recorded_is_stopped_and_nothing_runs_in_it() {
    for (failure, code) in
        [(LogError::Unavailable("down".to_owned()), Some("sandbox.start_failed")), (LogError::OwnershipLost, None)]
    {
        let rig = Rig::new();
        // The record is made; that it runs cannot be said.
        rig.log.fail_after(1, failure);
        let outcome = rig.answer(Bash, &bash_input("echo > ran")).await.outcome;
        match (outcome, code) {
            (WorkspaceOutcome::Done(ToolOutcome::Failed { code, .. }), Some(expected)) => assert_eq!(code, expected),
            (WorkspaceOutcome::Aborted, None) => {}
            (outcome, _) => panic!("{outcome:?}"),
        }
        assert_eq!((children(&rig).len(), rig.files().join("ran").exists()), (0, false));
        assert_eq!(state_of(&rig), Some(WorkspaceState::Creating));
        rig.log.fail_with(None);
        assert_eq!(rig.bash("ls").await.1, "");
    }
}

#[tokio::test]
async fn without_records_nothing_is_started() {
    let rig = Rig::new();
    rig.log.fail_with(Some(LogError::Unavailable("down".to_owned())));
    assert_eq!(rig.failure(Bash, &bash_input("true")).await.0, "sandbox.start_failed");
    rig.log.fail_with(Some(LogError::OwnershipLost));
    assert_eq!(rig.answer(Bash, &bash_input("true")).await.outcome, WorkspaceOutcome::Aborted);
    assert!(!rig.files().exists());
}

#[tokio::test]
async fn a_child_killed_from_outside_loses_a_command_and_nothing_else() {
    let rig = Rig::new();
    rig.write("kept", "x").await;
    let killer = async {
        while std::fs::read(rig.files().join("started")).unwrap_or_default().is_empty() {
            tokio::task::yield_now().await;
        }
        children(&rig).into_iter().for_each(kill);
    };
    let command = bash_input("echo x >> started; sleep 600");
    let (answer, ()) = tokio::join!(rig.answer(Bash, &command), killer);
    assert!(matches!(answer.outcome, WorkspaceOutcome::Uncertain { .. }), "{answer:?}");
    // It was not sent again.
    assert_eq!(rig.text(Read, r#"{"path":"started"}"#).await, "1\tx");
    // A reader finds a dead child and opens the workspace anew.
    children(&rig).into_iter().for_each(kill);
    assert_eq!(rig.text(Read, r#"{"path":"kept"}"#).await, "1\tx");
    assert_eq!(children(&rig).len(), 1);
}

#[tokio::test]
async fn a_read_that_is_lost_half_way_runs_again() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    for n in 0..300 {
        std::fs::write(rig.files().join(format!("f{n}")), "x\n".repeat(50_000)).unwrap();
    }
    let search = rig.answer(nylorun_domain::tool::WorkspaceTool::Grep, r#"{"pattern":"(x|y)+z$","path":"."}"#);
    let before = children(&rig);
    let killer = async {
        tokio::task::yield_now().await;
        before.iter().copied().for_each(kill);
    };
    let (answer, ()) = tokio::join!(search, killer);
    let WorkspaceOutcome::Done(ToolOutcome::Completed { output }) = &answer.outcome else { panic!("{answer:?}") };
    assert_eq!(output.as_str(), r#""[no matches]""#);
    assert_ne!(children(&rig), before);
}

#[tokio::test]
async fn calls_in_one_workspace_are_in_order_and_those_in_two_run_at_once() {
    let rig = Rig::new();
    // Called in this order, awaited in the other.
    let first = rig.manager.call(call("s", Bash, &bash_input("sleep 0.2; echo 1 >> log")), Abort::never());
    let second = rig.manager.call(call("s", Bash, &bash_input("echo 2 >> log; cat log")), Abort::never());
    let (second, _) = tokio::join!(second, first);
    let WorkspaceOutcome::Done(ToolOutcome::Completed { output }) = second.outcome else { panic!("{second:?}") };
    assert_eq!(output.as_str(), r#"{"exitCode":0,"stdout":"1\n2\n","stderr":""}"#);

    // A session that shares the workspace waits its turn there too.
    let first = rig.manager.call(call("s", Bash, &bash_input("sleep 0.2; echo 3 >> log")), Abort::never());
    let other = rig.manager.call(sharing("s", call("other", Bash, &bash_input("cat log"))), Abort::never());
    let (other, _) = tokio::join!(other, first);
    let WorkspaceOutcome::Done(ToolOutcome::Completed { output }) = other.outcome else { panic!("{other:?}") };
    assert_eq!(output.as_str(), r#"{"exitCode":0,"stdout":"1\n2\n3\n","stderr":""}"#);

    // One with a workspace of its own does not.
    let long = rig.manager.call(call("s", Bash, &bash_input("sleep 60")), Abort::never());
    tokio::select! {
        answer = long => panic!("it was to take longer: {answer:?}"),
        answer = rig.manager.call(call("t", Bash, &bash_input("true")), Abort::never()) => {
            assert_eq!(in_short(&answer.events), ["exec bash completed 0"]);
        }
    }
}

#[tokio::test]
async fn what_another_session_does_in_a_workspace_is_in_the_log_of_its_owner() {
    let rig = Rig::new();
    let answer = rig.manager.call(sharing("s", call("other", Bash, &bash_input("pwd"))), Abort::never()).await;
    assert_eq!(answer.events, []);
    let changes = rig.log.changes();
    assert_eq!(in_short(changes.iter().map(|change| &change.event)), ["creating", "running", "exec bash completed 0"]);
    for change in &changes {
        assert_eq!((change.session_id.as_str(), &change.claim), ("s", &Some(claim("other"))));
    }
    assert_eq!(changes[2].record, None);
    assert_eq!(rig.log.get(&key("s")).map(|record| record.session_id), Some(SessionId::from_trusted("s")));
    // Outside of a turn its caller records it, with the end of its intent.
    let direct = WorkspaceCall { claim: None, ..sharing("s", call("other", Bash, &bash_input("pwd"))) };
    let answer = rig.manager.call(direct, Abort::never()).await;
    assert_eq!((in_short(&answer.events), rig.log.changes().len()), (vec!["exec bash completed 0".to_owned()], 3));
}

#[tokio::test]
async fn calls_that_need_the_workspace_at_once_share_one_opening() {
    let rig = Rig::new();
    let mut calls = Vec::new();
    for n in 0..20 {
        let path = format!("f{n}");
        let input = object([("path", path.as_str()), ("content", "x")]);
        let call = WorkspaceCall { claim: None, ..sharing("s", call(&format!("session-{n}"), Write, &input)) };
        calls.push(tokio::spawn({
            let manager = rig.manager.clone();
            async move { manager.call(call, Abort::never()).await }
        }));
    }
    let mut events = Vec::new();
    for call in calls {
        events.extend(call.await.unwrap().events);
    }
    assert_eq!(in_short(&events), ["exec write completed"; 20]);
    assert_eq!(in_short(rig.log.changes().iter().map(|change| &change.event)), ["creating", "running"]);
    assert_eq!(children(&rig).len(), 1);
}

#[tokio::test]
async fn remove_waits_for_the_calls_before_it_and_deletes_everything() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    let running = rig.manager.call(call("s", Bash, &bash_input("sleep 0.2; echo done")), Abort::never());
    let key = key("s");
    let (answer, removed) = tokio::join!(running, rig.manager.remove(&key));
    assert_eq!(in_short(&answer.events), ["exec bash completed 0"]);
    assert_eq!(removed, Ok(()));
    assert_eq!((children(&rig).len(), rig.log.get(&key), rig.files().exists()), (0, None, false));
    assert_eq!(rig.manager.remove(&key).await, Ok(()));
    assert_eq!(rig.text(nylorun_domain::tool::WorkspaceTool::Glob, r#"{"pattern":"*"}"#).await, "[no files match]");
}

#[tokio::test]
async fn reconcile_removes_what_nobody_owns_and_only_its_own() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    for session in ["gone", "kept"] {
        rig.manager.call(call(session, Write, r#"{"path":"a","content":"x"}"#), Abort::never()).await;
    }
    let orphan = WorkspaceKey::from_trusted("nylorun-tn_test-0123456789abcdef");
    let foreign = ["nylorun-tn_other-0123456789abcdef", "something-else", "nylorun-tn_tes"];
    std::fs::create_dir_all(rig.root().join(orphan.as_str())).unwrap();
    foreign.iter().for_each(|name| std::fs::create_dir_all(rig.root().join(name).join("workspace")).unwrap());
    rig.log.owner_is_gone("gone");

    let next = rig.restarted();
    next.log.fail_with(Some(LogError::Unavailable("down".to_owned())));
    next.manager.reconcile().await;
    assert!(rig.root().join(orphan.as_str()).exists(), "nothing is removed in doubt");
    next.log.fail_with(None);
    next.manager.reconcile().await;
    let mut names: Vec<_> =
        std::fs::read_dir(rig.root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let mut expected = vec![key("s").as_str().to_owned(), key("kept").as_str().to_owned()];
    expected.extend(foreign.map(str::to_owned));
    expected.sort();
    assert_eq!(names, expected);
    assert_eq!(next.log.get(&key("gone")), None);
    // Once per process.
    std::fs::create_dir_all(rig.root().join(orphan.as_str())).unwrap();
    next.manager.reconcile().await;
    assert!(rig.root().join(orphan.as_str()).exists());
}

#[tokio::test]
async fn reconcile_keeps_what_lives_here_although_its_owner_is_gone() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    rig.log.owner_is_gone("s");
    rig.manager.reconcile().await;
    assert!(rig.files().exists());
}

#[tokio::test]
async fn close_stops_what_runs_and_starts_nothing_more() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    let input = bash_input("echo > started; sleep 600");
    let running = rig.answer(Bash, &input);
    let close = async {
        while !rig.files().join("started").exists() {
            tokio::task::yield_now().await;
        }
        rig.manager.close(Duration::from_millis(50)).await;
    };
    let (answer, ()) = tokio::join!(running, close);
    assert!(matches!(answer.outcome, WorkspaceOutcome::Uncertain { .. }), "{answer:?}");
    assert_eq!((children(&rig).len(), state_of(&rig)), (0, Some(WorkspaceState::Stopped)));
    assert_eq!(rig.answer(Bash, &bash_input("true")).await.outcome, WorkspaceOutcome::Aborted);
    assert_eq!(children(&rig).len(), 0);
}

#[tokio::test]
async fn children_end_with_their_host() {
    let rig = Rig::new();
    rig.write("seed", "").await;
    let children = children(&rig);
    assert_eq!(children.len(), 1);
    // What the kernel does to the pipes of a host that is killed.
    drop(rig.manager);
    for child in children {
        while std::fs::read_to_string(format!("/proc/{child}/cmdline")).is_ok_and(|command| !command.is_empty()) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_workspace_without_permissions_is_removed_too() {
    let rig = Rig::new();
    rig.write("a/b/c", "x").await;
    assert_eq!(rig.bash("chmod 000 a/b; chmod 000 a").await.0, 0);
    assert_eq!(rig.manager.remove(&key("s")).await, Ok(()));
    assert!(!rig.files().exists());
}

#[tokio::test]
async fn an_ephemeral_manager_deletes_its_workspaces_when_it_closes() {
    let rig = Rig::new();
    let config = ManagerConfig { lifetime: Lifetime::Ephemeral, ..config(rig.home.path().to_owned()) };
    let manager = WorkspaceManager::new(config, Arc::clone(&rig.log) as Arc<dyn WorkspaceLog>);
    manager.call(call("s", Write, r#"{"path":"a","content":"x"}"#), Abort::never()).await;
    assert!(rig.files().join("a").exists());
    manager.close(Duration::from_secs(1)).await;
    assert_eq!((rig.files().exists(), rig.log.get(&key("s"))), (false, None));
}

#[tokio::test]
async fn reads_outside_calls() {
    let rig = Rig::new();
    let read = || WorkspaceRead { claim: None, owner: SessionId::from_trusted("s"), key: key("s"), spec: spec() };
    let missing = rig.manager.list_files(read(), "outputs", 10).await;
    assert_eq!((missing, rig.root().exists()), (WorkspaceReadOutcome::Missing, false));
    for (path, content) in [("outputs/b/z", "1"), ("outputs/b/a", "22"), ("outputs/a", "333"), ("outputs/c", "")] {
        rig.write(path, content).await;
    }
    assert_eq!(rig.bash("ln -s a outputs/link").await.0, 0);
    let list = |names: &[(&str, u64)], truncated| {
        let entries = names.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        WorkspaceReadOutcome::Found(FileList { entries, truncated })
    };
    let all = [("a", 3), ("b/a", 2), ("b/z", 1), ("c", 0)];
    assert_eq!(rig.manager.list_files(read(), "outputs", 4).await, list(&all, false));
    assert_eq!(rig.manager.list_files(read(), "outputs", 3).await, list(&all[..3], true));
    assert_eq!(rig.manager.list_files(read(), "outputs/a", 3).await, WorkspaceReadOutcome::Missing);
    std::fs::write(rig.files().join("bytes"), b"\0\xff\n").unwrap();
    let found = WorkspaceReadOutcome::Found(b"\0\xff\n".to_vec());
    assert_eq!(rig.manager.read_bytes(read(), "bytes", 3).await, found);
    assert_eq!(rig.manager.read_bytes(read(), "none", 3).await, WorkspaceReadOutcome::Missing);
    let too_large = WorkspaceReadOutcome::Failed {
        code: "artifact.too_large".to_owned(),
        message: "bytes has 3 bytes; at most 2 are allowed.".to_owned(),
    };
    assert_eq!(rig.manager.read_bytes(read(), "bytes", 2).await, too_large);
}
