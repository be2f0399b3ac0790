//! The command line against a running server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Output;
use std::time::Duration;

use nylorun_client::{Command, Environment, OpenSession};
use serde_json::{Value, json};

use crate::database::{self, Database};
use crate::drill;
use crate::raw::send;
use crate::server::{Server, Setup};

/// Runs a command on this home directory.
pub(crate) fn nylorun(home: &std::path::Path, args: &[&str]) -> Output {
    nylorun_with(home, args, &[])
}

/// The same with further variables.
pub(crate) fn nylorun_with(home: &std::path::Path, args: &[&str], env: &[(String, String)]) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nylorun"));
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
    assert_eq!(ok(&nylorun(path, &["session", "cancel", "s1"])), "no turn ran in s1: there was nothing to cancel\n");
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

/// A stream of a session's events with this key, once its head and first event came.
fn stream(server: &Server, key: &str, id: &str) -> impl Read + use<> {
    let host = server.url.strip_prefix("http://").expect("a plain URL");
    let mut stream = TcpStream::connect(host).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out can be set");
    let head = format!(
        "GET /v1/sessions/{id}/events HTTP/1.1\r\nHost: {host}\r\nNylorun-Protocol: 10\r\n\
         Authorization: Bearer {key}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut seen = String::new();
    while !seen.contains("turn.completed") {
        let mut some = [0; 4_096];
        let count = stream.read(&mut some).expect("the server answers");
        assert!(count > 0 && !seen.contains(" 401 "), "{seen}");
        seen.push_str(&String::from_utf8_lossy(&some[..count]));
    }
    stream
}

#[tokio::test]
async fn streams_end_when_their_key_is_removed_or_rotated_by_another_process() {
    let mut databases = vec![Database::Sqlite];
    databases.extend(database::postgres("nylorun_key_streams").await);
    for database in databases {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let server = setup.start();
        drill::prepare(&server).await.expect("it can be prepared");
        let key = |args: &[&str]| {
            let output = nylorun_with(home.path(), args, &setup.env);
            serde_json::from_str::<Value>(&ok(&output)).expect("JSON")["key"].as_str().expect("it is shown").to_owned()
        };
        for end in [&["key", "rm", "ci"][..], &["key", "put", "ci", "--json"]] {
            let id = end[1];
            drill::begin(&server.client(), id, "hello").await.expect("it can begin");
            let given = key(&["key", "put", "ci", "--json"]);
            let (mut ending, mut kept) =
                (stream(&server, &given, id), stream(&server, &server.key_text("applicationKey"), id));
            ok(&nylorun_with(home.path(), end, &setup.env));
            let mut rest = String::new();
            ending.read_to_string(&mut rest).expect("the stream ends by itself, and well");
            assert!(rest.ends_with("0\r\n\r\n") && !rest.contains("data:"), "{rest:?}");
            // The other one is still there: what happens comes.
            let session = server.client().session(id);
            session.command(&Command::cancel().expect("a key can be made")).await.expect("it is always taken");
            let mut some = [0; 4_096];
            let count = kept.read(&mut some).expect("the server goes on");
            assert!(String::from_utf8_lossy(&some[..count]).contains("turn.cancelled"));
        }
    }
}

#[tokio::test]
async fn sessions_are_listed_page_by_page_or_all_at_once() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let server = Setup::new(path).start();
    drill::prepare(&server).await.expect("it can be prepared");
    let open = OpenSession { environment: Some(Environment::Without), ..OpenSession::new(drill::AGENT, "ann") };
    for number in 0..5 {
        server.client().open_session(&format!("s{number}"), &open).await.expect("it can be opened");
    }
    let json = |args: &[&str]| {
        let args: Vec<_> = ["session", "list", "--json"].iter().chain(args).copied().collect();
        let page: Value = serde_json::from_str(&ok(&nylorun(path, &args))).expect("JSON");
        let ids = page["sessions"].as_array().expect("a list").iter().map(|one| one["id"].as_str().expect("an id"));
        (ids.map(str::to_owned).collect::<Vec<_>>(), page["nextCursor"].as_str().map(str::to_owned))
    };
    let (all, end) = json(&["--all"]);
    assert_eq!((all.len(), end), (5, None));
    let (first, next) = json(&["--limit", "3"]);
    let next = next.expect("there are more");
    assert_eq!((&first[..], json(&["--limit", "3", "--after", &next])), (&all[..3], (all[3..].to_vec(), None)));
    assert_eq!(json(&["--owner", "ann", "--agent", drill::AGENT, "--status", "idle"]), (all.clone(), None));
    assert_eq!(json(&["--owner", "bob"]), (vec![], None));
    let told = ok(&nylorun(path, &["session", "list", "--limit", "3"]));
    assert_eq!(told.lines().last(), Some(&*format!("there are more: add --all, or go on with --after {next}")));
    assert_eq!(ok(&nylorun(path, &["session", "list", "--status", "failed"])), "no such sessions\n");
    let wrong = nylorun(path, &["session", "list", "--status", "done"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && said.contains("uncertain, completed, failed"), "{said}");
    let mismatch = nylorun(path, &["session", "list", "--status", "idle", "--after", &next]);
    assert!(String::from_utf8_lossy(&mismatch.stderr).contains("cursor_mismatch"), "{mismatch:?}");
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
    let back = "model: custom/two at http://127.0.0.1:9/v1\nkey:   none; if the endpoint wants one";
    assert!(told(&["set", "custom/two"]).starts_with(back));
    let moved = ok(&custom("http://127.0.0.1:11/v1"));
    assert!(moved.starts_with("model: custom/one at http://127.0.0.1:11/v1\nkey:   none"), "{moved}");

    let env = [("MY_KEY".to_owned(), "sk-test".to_owned())];
    ok(&model(&["set", "custom/one", "--key-env", "MY_KEY"], &env));
    let stored = "model: custom/two at http://127.0.0.1:11/v1\nkey:   the one that is stored already\n";
    assert_eq!(told(&["set", "custom/two"]), stored);
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
