//! The command line against a running server.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::drill;
use crate::raw::send;
use crate::server::{Server, Setup};

/// Runs a command on this home directory.
pub(crate) fn nylorun(home: &std::path::Path, args: &[&str]) -> Output {
    nylorun_with(home, args, &[])
}

/// The same with further variables.
pub(crate) fn nylorun_with(home: &std::path::Path, args: &[&str], env: &[(String, String)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nylorun"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NYLORUN_")) {
        command.env_remove(name);
    }
    command.args(args).env("NYLORUN_HOME", home).env("NO_COLOR", "1").current_dir(home);
    command.env_remove("ANTHROPIC_API_KEY").envs(env.iter().cloned());
    command.output().expect("the binary starts")
}

/// What a command printed that must have gone well.
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
    let removed: Value = serde_json::from_str(&ok(&nylorun(path, &["key", "rm", "ci", "--json"]))).expect("JSON");
    assert_eq!(removed, json!({"id": "ci", "deleted": true}));
    assert_eq!(me(&server, again["key"].as_str().expect("it is shown once")), 401);
}

#[test]
fn an_empty_message_opens_no_session() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let _server = Setup::new(path).start();
    let refused = nylorun(path, &["chat", "helper", "--session", "s1", "--message", " "]);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
    assert!(ok(&nylorun(path, &["session", "list"])).starts_with("no sessions"));
}

#[test]
fn the_fixture_model_is_a_detour_and_the_key_stays() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let _server = Setup::new(path).start();
    let model = |args: &[&str], env: &[(String, String)]| nylorun_with(path, &[&["model"], args].concat(), env);
    let told = |args: &[&str]| ok(&model(args, &[]));
    let name = "anthropic/claude-sonnet-5-5";
    assert_eq!(model(&["set", name], &[]).status.code(), Some(2), "no key is stored yet");
    let env = [("ANTHROPIC_API_KEY".to_owned(), "sk-test".to_owned())];
    let set = format!("model: {name}\nkey:   from ANTHROPIC_API_KEY, sealed and stored\n");
    assert_eq!(ok(&model(&["set", name], &env)), set);
    assert!(told(&["fixture"]).contains(&format!("in the place of {name}")));
    assert_eq!(told(&["fixture"]), "the fixture model answers already\n");
    assert!(told(&["list"]).starts_with("model: fixture/fixture\n"));
    assert_eq!(told(&["set", name]), format!("model: {name}\nkey:   the one that is stored already\n"));

    let custom = |url: &str| model(&["set", "custom/one", "--base-url", url], &[]);
    assert!(ok(&custom("http://127.0.0.1:9/v1")).contains("key:   none"));
    told(&["set", name]);
    let back = "model: custom/two at http://127.0.0.1:9/v1\nkey:   the one that is stored already\n";
    assert_eq!(told(&["set", "custom/two"]), back);
    let elsewhere = custom("http://127.0.0.1:10/v1");
    assert_eq!(elsewhere.status.code(), Some(2), "a key is not sent to another endpoint");
    assert!(told(&["set", "custom/one", "--base-url", "http://127.0.0.1:10/v1", "--no-key"]).contains("key:   none"));
}

#[test]
fn a_key_comes_from_a_file_and_never_from_an_argument() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let server = Setup::new(path).start();
    std::fs::write(path.join("key"), server.key_text("applicationKey")).expect("it can be written");
    let listed = nylorun(path, &["agent", "list", "--url", &server.url, "--application-key-file", "key"]);
    ok(&listed);
    assert!(String::from_utf8_lossy(&listed.stderr).contains("may be read by other users"), "{listed:?}");
    let refused = nylorun(path, &["agent", "list", "--url", &server.url, "--key", "x"]);
    assert_eq!(refused.status.code(), Some(2));
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
