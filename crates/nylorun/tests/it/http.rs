//! The API of the real binary.

use nylorun_client::{
    Command, CommandKind, Content, Deltas, Environment, Follow, ModelAuth, ModelChoice, OpenSession, SessionStatus,
    SetModel, Update,
};
use nylorun_server::cases::{World, bad_requests, judge};
use nylorun_testkit::provider::{ProviderStub, chat};
use serde_json::{Value, json};

use crate::drill;
use crate::raw::{Answer, send};
use crate::server::{Server, Setup};

fn get(server: &Server, key: &str, target: &str) -> Answer {
    let bearer = format!("Bearer {}", server.key_text(key));
    send(&server.url, "GET", target, &[("Nylorun-Protocol", "10"), ("Authorization", &bearer)], None)
}

fn call(server: &Server, method: &str, target: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {}", server.key_text("applicationKey"));
    let headers = [("Nylorun-Protocol", "10"), ("Authorization", &bearer), ("Content-Type", "application/json")];
    send(&server.url, method, target, &headers, Some(body.as_bytes()))
}

/// Sends a message and gives the event that ended its turn.
async fn turn(server: &Server, id: &str, content: Content) -> nylorun_client::Event {
    let session = server.client().session(id);
    let command = Command::new(CommandKind::Message(content)).expect("a key can be made");
    let accepted = session.command(&command).await.expect("the session is free");
    let mut events = session.events(Follow { after: accepted.cursor, ..Follow::default() });
    loop {
        let update = events.next().await.expect("the stream goes on").expect("the stream goes on");
        if let Update::Event(event) = update
            && event.ends_turn()
        {
            return event;
        }
    }
}

#[tokio::test]
async fn every_bad_request_is_refused_and_changes_nothing() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    for id in ["mine", "other"] {
        drill::begin(&server.client(), id, "hello").await.expect("it can begin");
        turn_is_over(&server, id).await;
    }
    let other = server.client().session("other").history(None, None).await.expect("it has a history");
    let everything = || {
        let runtime =
            ["/v1/agents", "/v1/sessions", "/v1/sessions/mine", "/v1/sessions/mine/items", "/v1/sessions/other/items"];
        let tenant = ["/v1/tenant/keys", "/v1/tenant/model", "/v1/tenant/providers"];
        let runtime = runtime.map(|target| get(&server, "applicationKey", target));
        let tenant = tenant.map(|target| get(&server, "managementKey", target));
        runtime.into_iter().chain(tenant).collect::<Vec<_>>()
    };
    let before = everything();
    let cases = bad_requests(&World {
        application_key: server.key_text("applicationKey"),
        management_key: server.key_text("managementKey"),
        agent_id: drill::AGENT.to_owned(),
        session_id: "mine".to_owned(),
        stranger: "bob".to_owned(),
        foreign_cursor: other.items[0].cursor.clone(),
    });
    assert!(cases.len() > 800, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let headers: Vec<_> = case.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = send(&server.url, case.method, &case.target, &headers, case.body.as_deref());
        wrong.extend(judge(case, answer.status, &answer.body).err());
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert_eq!(everything(), before);
}

async fn turn_is_over(server: &Server, id: &str) {
    let session = server.client().session(id);
    let mut events = session.events(Follow::default());
    while session.view().await.expect("it is there").active_turn_id.is_some() {
        events.next().await.expect("the stream goes on").expect("the stream goes on");
    }
}

#[tokio::test]
async fn a_repeated_message_gets_its_first_answer_also_after_a_restart() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = Setup::new(home.path());
    let server = setup.start();
    drill::prepare(&server).await.expect("it can be prepared");
    drill::begin(&server.client(), "s", "hello").await.expect("it can begin");
    let body = |request: &str, content: &str| {
        json!({"requestId": request, "idempotencyKey": "k", "type": "message", "content": content}).to_string()
    };
    turn_is_over(&server, "s").await;
    let first = call(&server, "POST", "/v1/sessions/s/commands", &body("r1", "again"));
    assert_eq!(first.status, 200, "{}", first.body);
    assert_eq!(call(&server, "POST", "/v1/sessions/s/commands", &body("r2", "again")), first);
    let other = call(&server, "POST", "/v1/sessions/s/commands", &body("r3", "else"));
    assert_eq!(other.status, 409);
    assert!(other.body.contains("Idempotency key"), "{}", other.body);
    turn_is_over(&server, "s").await;
    assert!(server.stop().success());
    let server = setup.start();
    assert_eq!(call(&server, "POST", "/v1/sessions/s/commands", &body("r4", "again")), first);
    let events = server.client().session("s").history(None, None).await.expect("it has a history").items;
    assert_eq!(events.iter().filter(|event| event.kind == "command.message").count(), 2);
}

#[tokio::test]
async fn a_follower_resumes_across_a_restart_with_each_event_once() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free").local_addr().expect("bound").port();
    let setup = Setup { listen: format!("127.0.0.1:{port}"), ..Setup::new(home.path()) };
    let mut server = setup.start();
    drill::prepare(&server).await.expect("it can be prepared");
    drill::begin(&server.client(), "s", &drill::plain_script(40)).await.expect("it can begin");
    let client = server.client();
    let mut events = client.session("s").events(Follow { deltas: Deltas::With, ..Follow::default() });
    let mut seen = Vec::new();
    let mut restarted = false;
    loop {
        match events.next().await.expect("the stream goes on").expect("the stream goes on") {
            Update::Event(event) => {
                let ended = event.ends_turn();
                seen.push(event);
                if ended {
                    break;
                }
            }
            Update::Delta(_) | Update::Interrupted { .. } => {}
        }
        if seen.len() == 3 && !restarted {
            restarted = true;
            server.kill();
            server = setup.start();
        }
        if seen.last().is_some_and(|event| event.kind == "effect.uncertain") {
            drill::settle(&client, home.path(), "s").await.expect("it can be settled");
        }
    }
    let record = client.session("s").history(None, None).await.expect("it has a history").items;
    let texts = |events: &[nylorun_client::Event]| events.iter().map(|event| event.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&seen), texts(&record));
}

#[tokio::test]
async fn deltas_come_only_to_those_who_ask_and_never_into_the_record() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    drill::begin(&server.client(), "s", "first").await.expect("it can begin");
    turn_is_over(&server, "s").await;
    let session = server.client().session("s");
    let mut asking = session.events(Follow { deltas: Deltas::With, ..Follow::default() });
    let mut plain = session.events(Follow::default());
    // Who has been given the turn before is connected when the next one begins.
    until_a_turn_ended(&mut asking).await;
    until_a_turn_ended(&mut plain).await;
    session.command(&Command::text("a few words to echo").expect("a key can be made")).await.expect("it is free");
    let deltas = until_a_turn_ended(&mut asking).await;
    assert!(deltas > 0, "who asks is sent deltas");
    assert_eq!(until_a_turn_ended(&mut plain).await, 0, "who does not ask is sent none");
    let record = session.history(None, None).await.expect("it has a history").items;
    assert!(record.iter().all(|event| event.kind != "message.delta"));
}

/// How many deltas came before a turn ended.
async fn until_a_turn_ended(events: &mut nylorun_client::Events) -> usize {
    let mut deltas = 0;
    loop {
        match events.next().await.expect("the stream goes on").expect("the stream goes on") {
            Update::Delta(_) => deltas += 1,
            Update::Event(event) if event.ends_turn() => return deltas,
            Update::Event(_) | Update::Interrupted { .. } => {}
        }
    }
}

#[tokio::test]
async fn text_is_kept_as_it_was_written() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    drill::begin(&server.client(), "s", "first").await.expect("it can begin");
    turn_is_over(&server, "s").await;
    let content = r#""a \ud800 lone surrogate, a \u0000 and a 😀""#;
    let body = format!(r#"{{"requestId":"r","idempotencyKey":"k","type":"message","content":{content}}}"#);
    let sent = call(&server, "POST", "/v1/sessions/s/commands", &body);
    assert_eq!(sent.status, 200, "{}", sent.body);
    turn_is_over(&server, "s").await;
    let items = get(&server, "applicationKey", "/v1/sessions/s/items").body;
    assert!(items.contains(&format!(r#""content":{content}"#)), "{items}");
}

#[tokio::test]
async fn without_a_model_a_turn_fails_and_says_what_to_do() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    let manifest = json!({"manifestSchemaVersion": 5, "id": "a", "capabilities": []});
    server.client().save_agent("a", &manifest, "1").await.expect("the manifest is valid");
    let open = OpenSession { environment: Some(Environment::Without), ..OpenSession::new("a", "u") };
    server.client().open_session("s", &open).await.expect("it can be opened");
    let ended = turn(&server, "s", Content::Text("hi".to_owned())).await;
    assert_eq!((ended.kind.as_str(), &ended.payload["error"]["code"]), ("turn.failed", &json!("model.auth")));
    let message = ended.payload["error"]["message"].as_str().expect("it says why");
    assert!(message.contains("nylorun model set"), "{message}");
}

#[tokio::test]
async fn a_providers_key_reaches_the_provider_and_nothing_else() {
    const CANARY: &str = "sk-canary-5f2d9b71";
    let stub = ProviderStub::start().await.expect("a port is free");
    stub.then(chat::text(&["Hello", " there"]));
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).with("NYLORUN_LOG", "trace").start();
    let choice = ModelChoice {
        provider: "custom".into(),
        model: "stub".into(),
        base_url: Some(format!("{}/v1", stub.base_url())),
    };
    let auth = ModelAuth::ApiKey(CANARY.to_owned());
    server.tenant().set_model(&SetModel { choice, settings: None, auth }).await.expect("it can be set");
    let manifest = json!({"manifestSchemaVersion": 5, "id": "a", "capabilities": []});
    server.client().save_agent("a", &manifest, "1").await.expect("the manifest is valid");
    server.client().open_session("s", &OpenSession::new("a", "u")).await.expect("it can be opened");
    let ended = turn(&server, "s", Content::Data(json!({"n": 1}))).await;
    assert_eq!((ended.kind.as_str(), &ended.payload["output"]), ("turn.completed", &json!("Hello there")));
    let requests = stub.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("authorization"), format!("Bearer {CANARY}"));
    assert!(!String::from_utf8_lossy(&requests[0].body).contains(CANARY));
    let items = get(&server, "applicationKey", "/v1/sessions/s/items").body;
    let model = get(&server, "managementKey", "/v1/tenant/model").body;
    assert!(!items.contains(CANARY) && !model.contains(CANARY));
    assert!(server.stop().success());
    for path in files_below(home.path()) {
        let bytes = std::fs::read(&path).expect("it can be read");
        let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!found, "{} holds the key", path.display());
    }
}

fn files_below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("it can be listed");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn workspace_tools_are_the_applications_while_no_turn_is_active() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    drill::begin(&server.client(), "s", "hello").await.expect("it can begin");
    turn_is_over(&server, "s").await;
    let wrote = call(&server, "POST", "/v1/sessions/s/sandbox/write", r#"{"path":"a.txt","content":"hi\n"}"#);
    assert_eq!(wrote.body, r#"{"kind":"completed","output":{"path":"/workspace/a.txt","bytes":3}}"#);
    let ran = call(&server, "POST", "/v1/sessions/s/sandbox/bash", r#"{"command":"cat a.txt; exit 3"}"#);
    let ran: Value = serde_json::from_str(&ran.body).expect("it is JSON");
    assert_eq!(ran, json!({"kind": "completed", "output": {"exitCode": 3, "stdout": "hi\n", "stderr": ""}}));
    let bad = call(&server, "POST", "/v1/sessions/s/sandbox/bash", r#"{"command":""}"#);
    assert!(bad.body.contains("tool.invalid-arguments") && bad.status == 200, "{bad:?}");

    let open = OpenSession { environment: Some(Environment::Without), ..OpenSession::new(drill::AGENT, "u") };
    server.client().open_session("bare", &open).await.expect("it can be opened");
    let none = call(&server, "POST", "/v1/sessions/bare/sandbox/bash", r#"{"command":"true"}"#);
    assert_eq!(none.status, 404, "{none:?}");

    let waits = json!([{"delayMs": 60_000, "text": "x"}]).to_string();
    drill::begin(&server.client(), "busy", &waits).await.expect("it can begin");
    let busy = call(&server, "POST", "/v1/sessions/busy/sandbox/bash", r#"{"command":"true"}"#);
    assert_eq!(busy.status, 409, "{busy:?}");
    let session = server.client().session("busy");
    session.command(&Command::cancel().expect("a key can be made")).await.expect("a cancel is always taken");
    assert_eq!(session.view().await.expect("it is there").status, SessionStatus::Cancelled);
    let free = call(&server, "POST", "/v1/sessions/busy/sandbox/bash", r#"{"command":"true"}"#);
    assert_eq!(free.status, 200, "{free:?}");
}

#[test]
fn a_home_has_one_server_at_a_time() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = Setup::new(home.path());
    let server = setup.start();
    assert!(setup.try_start().is_none(), "the home directory is in use");
    let log = std::fs::read_to_string(home.path().join("server.log")).expect("it said why");
    assert!(log.contains("in use"), "{log}");
    assert!(server.stop().success());
    assert!(setup.start().stop().success());
}
