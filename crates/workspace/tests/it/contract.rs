//! What every backend does. A new backend adds one test that runs [`holds`] over it.

use std::time::Duration;

use nylorun_domain::json::Json;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::WorkspaceKey;
use nylorun_ports::abort::{Abort, AbortKind, abort_pair};
use nylorun_ports::backends::{
    Backend, ExecCommand, ExecResult, FileBytes, HandleError, Killed, Probed, WorkspaceHandle,
};
use nylorun_workspace::{Quota, VirtualBackend};

use crate::support::{shell_command, spec};

#[tokio::test]
async fn the_virtual_backend_holds() {
    let root = tempfile::tempdir().unwrap();
    holds(&VirtualBackend::new(root.path().join("workspaces"), shell_command(), Quota::DEFAULT)).await;
}

/// The contract of a backend that works here and holds nothing yet.
async fn holds(backend: &dyn Backend) {
    let probed = backend.probe().await;
    assert!(matches!(probed, Probed::Available { .. }), "{probed:?}");
    assert!(["process", "container"].contains(&backend.isolation()));
    assert_eq!(backend.unmet(&spec()), None);
    files_outlive_compute(backend).await;
    commands_end(backend).await;
    keys_are_kept_apart(backend).await;
}

fn key(name: &str) -> WorkspaceKey {
    WorkspaceKey::from_trusted(format!("nylorun-tn_contract-{name}"))
}

fn command(text: &str) -> ExecCommand {
    ExecCommand {
        command: text.to_owned(),
        cwd: "/workspace".to_owned(),
        env: vec![("GREETING".to_owned(), "hi".to_owned()), ("HOME".to_owned(), "/elsewhere".to_owned())],
        time_limit: Duration::from_secs(20),
    }
}

async fn run(handle: &dyn WorkspaceHandle, text: &str) -> ExecResult {
    handle.exec(command(text), Abort::never()).await.unwrap()
}

fn ended(exit_code: i32, stdout: &str, stderr: &str) -> ExecResult {
    let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
    ExecResult { exit_code, stdout, stderr, truncated: false, killed: None }
}

async fn files_outlive_compute(backend: &dyn Backend) {
    let key = key("files");
    let opened = backend.open(&key, &spec()).await.unwrap();
    assert!(opened.created && opened.handle.is_alive());
    let input = Json::from_trusted(r#"{"path":"a","content":"kept"}"#);
    let written = opened.handle.file_tool(WorkspaceTool::Write, input, Abort::never()).await.unwrap();
    let output = Json::from_trusted(r#"{"path":"/workspace/a","bytes":4}"#);
    assert_eq!(written, Some(ToolOutcome::Completed { output }));
    opened.handle.stop().await;
    assert!(!opened.handle.is_alive());
    let refused = opened.handle.exec(command("true"), Abort::never()).await;
    assert!(matches!(refused, Err(HandleError::NotSent(_))), "{refused:?}");

    let again = backend.open(&key, &spec()).await.unwrap();
    assert!(!again.created);
    assert_eq!(run(again.handle.as_ref(), "cat a").await, ended(0, "kept", ""));
    assert_eq!(again.handle.read_bytes("a".to_owned(), 4).await, Ok(FileBytes::Bytes(b"kept".to_vec())));
    let list = again.handle.list_files(".".to_owned(), 10).await.unwrap().unwrap();
    assert_eq!((list.entries, list.truncated), (vec![("a".to_owned(), 4)], false));
    again.handle.stop().await;
    backend.remove(&key).await.unwrap();
    backend.remove(&key).await.unwrap();
    let anew = backend.open(&key, &spec()).await.unwrap();
    assert!(anew.created);
    assert_eq!(anew.handle.read_bytes("a".to_owned(), 4).await, Ok(FileBytes::Missing));
    anew.handle.stop().await;
    backend.remove(&key).await.unwrap();
}

async fn commands_end(backend: &dyn Backend) {
    let key = key("commands");
    let opened = backend.open(&key, &spec()).await.unwrap();
    let handle = opened.handle.as_ref();
    assert_eq!(run(handle, "echo $GREETING; echo err >&2; exit 7").await, ended(7, "hi\n", "err\n"));
    assert_eq!(run(handle, "echo $HOME; env | grep -c NYLORUN_").await, ended(1, "/workspace\n0\n", ""));
    let limited = ExecCommand { time_limit: Duration::from_secs(1), ..command("echo before; sleep 100") };
    let result = handle.exec(limited, Abort::never()).await.unwrap();
    assert_eq!((result.exit_code, result.stdout.as_str(), result.killed), (124, "before\n", Some(Killed::TimeLimit)));
    let (told, abort) = abort_pair();
    told.abort(AbortKind::Cancel);
    let result = handle.exec(command("sleep 100"), abort).await.unwrap();
    assert_eq!((result.exit_code, result.killed), (130, Some(Killed::Abort)));
    // Several at once, each with its own output.
    let numbers: Vec<String> = (0..8).map(|n| n.to_string()).collect();
    let mut running = tokio::task::JoinSet::new();
    for number in numbers.clone() {
        let handle = std::sync::Arc::clone(&opened.handle);
        running.spawn(async move { run(handle.as_ref(), &format!("sleep 0.1; echo {number}")).await });
    }
    let mut outputs: Vec<_> =
        running.join_all().await.into_iter().map(|result| result.stdout.trim().to_owned()).collect();
    outputs.sort();
    assert_eq!(outputs, numbers);
    handle.stop().await;
    backend.remove(&key).await.unwrap();
}

async fn keys_are_kept_apart(backend: &dyn Backend) {
    let (one, two) = (key("one"), key("two"));
    let first = backend.open(&one, &spec()).await.unwrap();
    let second = backend.open(&two, &spec()).await.unwrap();
    run(first.handle.as_ref(), "echo 1 > mine").await;
    assert_eq!(run(second.handle.as_ref(), "ls -A").await, ended(0, "", ""));
    assert_eq!(backend.list("nylorun-tn_contract-").await.unwrap(), [one.clone(), two.clone()]);
    assert_eq!(backend.list("nylorun-tn_contract-t").await.unwrap(), std::slice::from_ref(&two));
    assert_eq!(backend.list("nylorun-tn_other-").await.unwrap(), []);
    first.handle.stop().await;
    second.handle.stop().await;
    backend.remove(&one).await.unwrap();
    assert_eq!(backend.list("nylorun-tn_contract-").await.unwrap(), std::slice::from_ref(&two));
    backend.remove(&two).await.unwrap();
}
