//! The server's log: what operators need to see is there, and what nobody may see is not.

use nylorun_client::{Environment, Follow, InlineEnvironment, OpenSession, Seed, Update};
use serde_json::json;

use crate::drill;
use crate::raw::send;
use crate::server::{Server, Setup};

/// A word of a message, of a tool's input and of its output.
const SAID: &str = "xyzzy-secret-word";

/// Sends a script to a new session.
async fn begin(server: &Server, id: &str, script: &serde_json::Value) {
    drill::begin(&server.client(), id, &script.to_string()).await.expect("it is accepted");
}

async fn until(server: &Server, id: &str, kind: &str) {
    let mut events = server.client().session(id).events(Follow::default());
    loop {
        match events.next().await.expect("it goes on").expect("no refusal") {
            Update::Event(event) if event.kind == kind => return,
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
        }
    }
}

/// The lines that hold all of these words.
fn lines<'a>(log: &'a str, words: &[&str]) -> Vec<&'a str> {
    log.lines().filter(|line| words.iter().all(|word| line.contains(word))).collect()
}

#[test]
fn a_log_for_programs_is_json() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = Setup::new(home.path()).with("NYLORUN_LOG_FORMAT", "json");
    assert!(setup.start().stop().success());
    let lines: Vec<serde_json::Value> =
        setup.log().lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let ready = lines.iter().find(|line| line["message"] == "ready").expect("it became ready");
    assert_eq!((&ready["level"], &ready["sandbox"]), (&json!("INFO"), &json!("virtual")));
    assert!(ready["timestamp"].is_string() && ready["url"].is_string(), "{ready}");
}

#[tokio::test]
async fn the_life_of_a_server_is_told_in_few_lines() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = Setup::new(home.path()).with("NYLORUN_SANBOX", "virtual");
    let mut server = setup.start();
    server.tenant().seed(&Seed::FixtureModel).await.expect("the fixture model is set");
    let manifest = json!({"manifestSchemaVersion": 5, "id": "drill", "capabilities": [{"id": "c", "type": "agent"}]});
    server.client().save_agent("drill", &manifest, "1").await.expect("the agent is saved");
    let environment = Some(Environment::Inline(InlineEnvironment::default()));
    let opening = OpenSession { environment, ..OpenSession::new("drill", SAID) };
    server.client().open_session("other", &opening).await.expect("it is opened");
    let say = json!({"name": "bash", "input": {"command": format!("echo {SAID}")}});
    begin(&server, "failed", &json!([{"text": SAID, "tools": [say]}, {"fail": "content_policy"}])).await;
    until(&server, "failed", "turn.failed").await;
    let made = server.tenant().put_key("ci").await.expect("it is made");
    server.tenant().delete_key("ci").await.expect("it is removed");
    let running = json!({"name": "bash", "input": {"command": format!("echo {SAID} > on; sleep 60")}});
    begin(&server, "lost", &json!([{"text": SAID, "tools": [running]}])).await;
    until(&server, "lost", "message.assistant").await;
    let keys = [server.key_text("applicationKey"), server.key_text("managementKey"), made.key];
    server.kill();

    let server = setup.start();
    until(&server, "lost", "effect.uncertain").await;
    let bearer = format!("Bearer {}", keys[0]);
    send(&server.url, "GET", &format!("/v1/{SAID}"), &[("Authorization", &bearer), ("Nylorun-Protocol", "10")], None);
    assert!(server.stop().success());

    let log = setup.log();
    for (words, count) in [
        (&["INFO", "starting", "version=", "home=", "database=sqlite:", "listen=127.0.0.1:0"][..], 2),
        (&["INFO", "ready", "url=", "sandbox=\"virtual\"", "isolation=\"process\""], 2),
        (&["WARN", "has no effect", "NYLORUN_SANBOX"], 2),
        (&["INFO", "turn failed", "session=\"failed\"", "code=\"model.content_policy\""], 1),
        (&["INFO", "key made", "ci"], 1),
        (&["INFO", "key removed", "ci"], 1),
        (&["INFO", "taken over", "session=\"lost\"", "from="], 1),
        (&["WARN", "effect uncertain", "session=\"lost\""], 1),
        (&["INFO", "draining", "SIGTERM"], 1),
        (&["INFO", "stopped", "took_ms="], 1),
    ] {
        assert_eq!(lines(&log, words).len(), count, "{words:?}:\n{log}");
    }
    for secret in keys.iter().map(String::as_str).chain([SAID]) {
        assert!(!log.contains(secret), "{log}");
    }
}
