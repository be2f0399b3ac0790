//! Turns that end while commands are on their way: what the record, the counts and the command line say of them.

use nylorun_client::{Command, Event, Follow, Session, Settle, Settlement, Update};
use serde_json::{Value, json};

use crate::cli::{nylorun, ok};
use crate::drill;
use crate::server::{Server, Setup};

const LONG: &str = "echo one >> marks; sleep 60";

async fn until(events: &mut nylorun_client::Events, kind: &str) -> Event {
    loop {
        match events.next().await.expect("the stream goes on").expect("the stream goes on") {
            Update::Event(event) if event.kind == kind => return event,
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
        }
    }
}

fn without_envelope(events: &[Event], kind: &str) -> Vec<Value> {
    let ofs = events.iter().filter(|event| event.kind == kind);
    ofs.map(|event| {
        let members = ["toolName", "command", "path", "message"];
        json!(members.map(|name| event.payload[name].clone()))
    })
    .collect()
}

/// Cancels a session's turn when the model has asked for tools.
async fn cancel_in_tools(server: &Server, id: &str, script: &Value) -> Session {
    drill::begin(&server.client(), id, &script.to_string()).await.expect("it can begin");
    let session = server.client().session(id);
    let mut events = session.events(Follow::default());
    // The calls' intents are committed with the answer that asks for them.
    until(&mut events, "message.assistant").await;
    session.command(&Command::cancel().expect("a key can be made")).await.expect("a cancel is always taken");
    until(&mut events, "turn.cancelled").await;
    session
}

#[tokio::test]
async fn a_cancelled_turn_names_what_may_have_happened_and_nothing_else() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    let script = json!([{"tools": [
        {"name": "bash", "input": {"command": LONG}},
        {"name": "read", "input": {"path": "notes"}},
        {"name": "write", "input": {"path": "notes", "content": "x"}},
    ]}]);
    let session = cancel_in_tools(&server, "s", &script).await;

    let record = session.history(None, None).await.expect("it has a history").items;
    let why = "the turn was cancelled before its outcome was recorded";
    let mut named = without_envelope(&record, "effect.uncertain");
    named.sort_by_key(ToString::to_string);
    assert_eq!(named, [json!(["bash", LONG, null, why]), json!(["write", null, "notes", why])]);
    let view = session.view().await.expect("it is there");
    assert_eq!(view.uncertain_effects.len(), 2);
    assert_eq!(server.tenant().status().await.expect("it answers").counts.uncertain_effects, 2);

    let path = home.path();
    assert!(ok(&nylorun(path, &["doctor"])).contains("nylorun session list --uncertain"));
    assert!(ok(&nylorun(path, &["session", "list", "--uncertain"])).contains("\ns  "));
    let shown = ok(&nylorun(path, &["session", "show", "s"]));
    assert!(shown.contains(&format!("bash {LONG}")) && shown.contains("write notes"), "{shown}");
    assert!(shown.contains("Its turn has ended") && !shown.contains("--retry"), "{shown}");

    let [first, second] = &view.uncertain_effects[..] else { panic!("there are two") };
    let retry = Settle::new(&first.effect_id, Settlement::Retry).expect("a key can be made");
    let refused = session.settle(&retry).await.expect_err("nothing runs again for an ended turn");
    assert_eq!(refused.refusal().map(|refusal| refusal.status), Some(409), "{refused}");
    let value = Settle::new(&first.effect_id, Settlement::Value(json!({"exitCode": 0}))).expect("a key can be made");
    assert_eq!(session.settle(&value).await.expect("it is settled")["turnId"], Value::Null);
    let told = ok(&nylorun(path, &["session", "settle", "s", &second.effect_id, "--error", "it did not run"]));
    assert!(told.contains("nothing follows"), "{told}");

    let record = session.history(None, None).await.expect("it has a history").items;
    let of_turn = record.iter().filter(|event| event.turn_id().is_some()).map(|event| event.kind.as_str());
    let after: Vec<&str> = of_turn.skip_while(|kind| *kind != "turn.cancelled").collect();
    // The workspace was being made when the turn ended: that is no event of the turn any more.
    assert_eq!(after, ["turn.cancelled", "effect.settled", "effect.settled"]);
    assert!(session.view().await.expect("it is there").uncertain_effects.is_empty());
    assert!(ok(&nylorun(path, &["session", "list", "--uncertain"])).contains("no such sessions"));
    assert!(!ok(&nylorun(path, &["doctor"])).contains("--uncertain"));
}

#[tokio::test]
async fn sessions_in_doubt_are_listed_page_by_page_or_all_at_once() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    let script = json!([{"tools": [{"name": "bash", "input": {"command": LONG}}]}]);
    for id in ["s1", "s2"] {
        cancel_in_tools(&server, id, &script).await;
    }
    let sound = json!([{"text": "done"}]).to_string();
    drill::begin(&server.client(), "s3", &sound).await.expect("it can begin");
    let list = |args: &[&str]| {
        let args: Vec<_> = ["session", "list", "--uncertain", "--json"].iter().chain(args).copied().collect();
        let page: Value = serde_json::from_str(&ok(&nylorun(home.path(), &args))).expect("JSON");
        let ids = page["sessions"].as_array().expect("a list").iter().map(|one| one["id"].as_str().expect("an id"));
        (ids.map(str::to_owned).collect::<Vec<_>>(), page["nextCursor"].as_str().map(str::to_owned))
    };
    let (newest, eldest) = (vec!["s2".to_owned()], vec!["s1".to_owned()]);
    assert_eq!(list(&["--all"]), ([newest.clone(), eldest.clone()].concat(), None));
    let (first, next) = list(&["--limit", "1"]);
    let next = next.expect("there are more");
    assert_eq!((first, list(&["--limit", "1", "--after", &next])), (newest, (eldest, None)));
    assert_eq!(list(&["--agent", "other"]), (vec![], None));
    let mismatch = nylorun(home.path(), &["session", "list", "--after", &next]);
    assert!(String::from_utf8_lossy(&mismatch.stderr).contains("cursor_mismatch"), "{mismatch:?}");
}

#[tokio::test]
async fn a_cancel_of_a_model_call_leaves_nothing_in_doubt() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    let script = json!([{"delayMs": 60_000, "text": "x"}]).to_string();
    drill::begin(&server.client(), "s", &script).await.expect("it can begin");
    let session = server.client().session("s");
    let mut events = session.events(Follow { deltas: nylorun_client::Deltas::With, ..Follow::default() });
    until(&mut events, "command.message").await;
    let told = ok(&nylorun(home.path(), &["session", "cancel", "s"]));
    assert_eq!(told, "cancelled s\n");
    until(&mut events, "turn.cancelled").await;
    let record = session.history(None, None).await.expect("it has a history").items;
    assert!(record.iter().all(|event| event.kind != "effect.uncertain"));
    assert_eq!(server.tenant().status().await.expect("it answers").counts.uncertain_effects, 0);
}

#[tokio::test]
async fn an_effect_that_is_tried_again_is_not_settled_meanwhile() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = Setup::new(home.path());
    let mut server = setup.start();
    drill::prepare(&server).await.expect("it can be prepared");
    let bash = |command: &str| json!({"name": "bash", "input": {"command": command}});
    let script = json!([{"tools": [bash(LONG), bash("sleep 61")]}, {"text": "done"}]);
    drill::begin(&server.client(), "s", &script.to_string()).await.expect("it can begin");
    until(&mut server.client().session("s").events(Follow::default()), "message.assistant").await;
    server.kill();
    let server = setup.start();
    let session = server.client().session("s");
    let mut events = session.events(Follow::default());
    until(&mut events, "effect.uncertain").await;
    until(&mut events, "effect.uncertain").await;

    let effect = session.view().await.expect("it is there").uncertain_effects[0].effect_id.clone();
    let retry = || Settle::new(&effect, Settlement::Retry).expect("a key can be made");
    // The turn waits for the other one still.
    session.settle(&retry()).await.expect("it is uncertain");
    let refused = session.settle(&retry()).await.expect_err("it is settled");
    let refusal = refused.refusal().expect("the server answered");
    assert_eq!(refusal.status, 409, "{refused}");
    assert!(refusal.message.contains("is being tried again"), "{refused}");
    let unknown = Settle::new("nothing", Settlement::Retry).expect("a key can be made");
    let refused = session.settle(&unknown).await.expect_err("there is none");
    assert_eq!(refused.refusal().map(|refusal| refusal.status), Some(404), "{refused}");
    session.command(&Command::cancel().expect("a key can be made")).await.expect("a cancel is always taken");
    assert!(server.stop().success());
}
