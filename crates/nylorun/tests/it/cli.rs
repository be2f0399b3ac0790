//! The command line against a running server.

use std::process::{Command, Output};

use serde_json::Value;

use crate::drill;
use crate::raw::send;
use crate::server::{Server, Setup};

pub(crate) fn nylorun(home: &std::path::Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nylorun"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NYLORUN_")) {
        command.env_remove(name);
    }
    command.args(args).env("NYLORUN_HOME", home).env("NO_COLOR", "1").current_dir(home);
    command.output().expect("the binary starts")
}

#[track_caller]
pub(crate) fn ok(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn me(server: &Server, key: &str) -> u16 {
    let bearer = format!("Bearer {key}");
    send(&server.url, "GET", "/v1/me", &[("Nylorun-Protocol", "10"), ("Authorization", &bearer)], None).status
}

#[tokio::test]
async fn a_first_hour_at_the_terminal() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let server = Setup::new(path).start();
    ok(&nylorun(path, &["model", "fixture"]));
    let manifest = "manifestSchemaVersion: 5\nid: helper\nname: Helper\ncapabilities:\n  - id: main\n    type: agent\n";
    std::fs::write(path.join("helper.yaml"), manifest).expect("it can be written");
    assert!(ok(&nylorun(path, &["agent", "save", "helper.yaml"])).contains("helper"));
    assert!(ok(&nylorun(path, &["agent", "list"])).contains("helper"));
    let said = ok(&nylorun(path, &["chat", "helper", "--session", "s1", "--message", "hello there"]));
    assert!(said.contains("hello there"), "{said}");
    assert!(ok(&nylorun(path, &["session", "list"])).contains("s1"));
    let shown: Value = serde_json::from_str(&ok(&nylorun(path, &["session", "show", "s1", "--json"]))).expect("JSON");
    assert_eq!(shown["status"], "completed");
    let events = ok(&nylorun(path, &["session", "events", "s1", "--json"]));
    let kinds: Vec<Value> = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")).collect();
    let kinds: Vec<&str> = kinds.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(kinds, ["command.message", "message.assistant", "turn.completed"]);
    let status: Value = serde_json::from_str(&ok(&nylorun(path, &["status", "--json"]))).expect("JSON");
    assert!(status.to_string().contains("\"commits\""), "{status}");
    assert_eq!(status["tenant"]["sandbox"]["backend"], "virtual", "{status}");
    ok(&nylorun(path, &["doctor"]));
    drop(server);
    let gone = nylorun(path, &["status"]);
    assert_eq!(gone.status.code(), Some(3), "{}", String::from_utf8_lossy(&gone.stderr));
}

#[tokio::test]
async fn keys_are_made_and_removed_beside_a_running_server() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let server = Setup::new(path).start();
    drill::prepare(&server).await.expect("it can be prepared");
    let made: Value = serde_json::from_str(&ok(&nylorun(path, &["key", "put", "ci", "--json"]))).expect("JSON");
    let key = made["key"].as_str().expect("it is shown once").to_owned();
    assert_eq!(me(&server, &key), 200);
    assert!(ok(&nylorun(path, &["key", "list"])).contains("ci"));
    let again: Value = serde_json::from_str(&ok(&nylorun(path, &["key", "put", "ci", "--json"]))).expect("JSON");
    assert_eq!(again["rotated"], true);
    assert_eq!(me(&server, &key), 401, "a rotated key stops at its next request");
    ok(&nylorun(path, &["key", "rm", "ci"]));
    assert_eq!(me(&server, again["key"].as_str().expect("it is shown once")), 401);
}

#[test]
fn bad_usage_says_what_is_wrong_and_exits_2() {
    let home = tempfile::tempdir().expect("a folder can be made");
    for args in [&["serve", "--listen", "0.0.0.0:0"][..], &["nonsense"], &["serve", "--service", "core"]] {
        let output = nylorun(home.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}
