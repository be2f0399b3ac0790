//! What the command line tells of documents: those that records hold, and what is wrong with those of its user.

use std::path::Path;
use std::process::Output;

use nylorun_client::OpenSession;

use crate::cli::{nylorun, ok};
use crate::drill;
use crate::raw::send;
use crate::server::Setup;

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A record may hold what no double holds, and as many levels as a body may have.
#[tokio::test]
async fn a_record_with_large_numbers_and_many_levels_is_shown() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    server.client().open_session("s", &OpenSession::new(drill::AGENT, "me")).await.expect("it can be opened");
    let deep = format!("{}{}", "[".repeat(126), "]".repeat(126));
    let body =
        format!(r#"{{"requestId":"r","idempotencyKey":"k","type":"message","data":{{"n":1e999,"deep":{deep}}}}}"#);
    let bearer = format!("Bearer {}", server.key_text("applicationKey"));
    let headers = [("Nylorun-Protocol", "10"), ("Authorization", &bearer), ("Content-Type", "application/json")];
    let answer = send(&server.url, "POST", "/v1/sessions/s/commands", &headers, Some(body.as_bytes()));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let session = server.client().session("s");
    while session.view().await.expect("it is there").active_turn_id.is_some() {}

    let run = |args: &[&str]| ok(&nylorun(home.path(), args));
    for view in ["events", "items"] {
        let json = run(&["session", view, "s", "--json"]);
        let said = json.lines().next().expect("the message comes first");
        assert!(said.contains(r#""n":1e999"#) && said.contains(&deep), "{said}");
    }
    assert!(run(&["session", "events", "s"]).contains("1e999"));
    assert!(run(&["session", "show", "s"]).contains("completed"));
    assert!(server.stop().success());
}

fn save(home: &Path, manifest: &str) -> Output {
    std::fs::write(home.join("agent.yaml"), manifest).expect("it can be written");
    let output = nylorun(home, &["agent", "save", "agent.yaml"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    output
}

#[test]
fn all_that_is_wrong_with_a_manifest_is_told_in_plain_words() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    let several = err(&save(home.path(), "manifestSchemaVersion: 6\nid: 5\nname: ''\ncapabilities: no\nmore: 1\n"));
    assert!(several.starts_with("error: the manifest has 4 problems\n  id: "), "{several}");
    for part in ["\n  name: ", "\n  capabilities: ", "\n  (root): Unrecognized key: \"more\"", "\n  try: give it an id"]
    {
        assert!(several.contains(part), "{part}: {several}");
    }
    let twice = err(&save(home.path(), "id: a\nid: b\n"));
    assert_eq!(
        twice,
        "error: agent.yaml: the name \"id\" stands a second time at line 2, column 1: keep one of them\n"
    );
    let large = err(&save(home.path(), r#"{"id": "a", "metadata": {"n": 1e999}}"#));
    assert!(large.contains("agent.yaml: a number in it is beyond 1.7e308"), "{large}");
    drop(server);
}

#[test]
fn the_files_that_a_manifest_misses_are_named() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    let hash = |digit: &str| format!("sha256:{}", digit.repeat(64));
    let (one, other) = (hash("a"), hash("b"));
    let manifest = format!(
        "manifestSchemaVersion: 6\nid: a\ncapabilities:\n  - id: c\n    type: agent\n    skills:\n      s:\n        \
         name: s\n        description: d\n        files:\n          SKILL.md: {one}\n          b.md: {other}\n"
    );
    let told = err(&save(home.path(), &manifest));
    for hash in [one, other] {
        assert!(told.contains(&format!("\n  missing: {hash}\n")), "{told}");
    }
    drop(server);
}

#[test]
fn arguments_that_cannot_be_used_are_told_with_what_can() {
    let home = tempfile::tempdir().expect("a folder can be made");
    for (args, remedy) in [
        (&["serve", "--listen", "localhost"][..], "give an IP address and a port, such as 127.0.0.1:4000"),
        (&["session", "list", "--limit", "1000"], "give a whole number from 1 to 200"),
        (&["logs", "--lines", "many"], "give a whole number, such as 100"),
        (&["session", "settle", "s", "e", "--value", "{"], "not JSON: expected a name at line 1, column 2"),
    ] {
        let refused = nylorun(home.path(), args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(err(&refused).contains(remedy), "{args:?}: {}", err(&refused));
    }
}
