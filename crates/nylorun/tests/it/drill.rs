//! What the drills run, and what must hold afterwards, however often the server died meanwhile.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use nylorun_client::{
    Approval, Client, Command, CommandKind, Content, Environment, Error, Event, Follow, InlineEnvironment, OpenSession,
    Seed, Settle, Settlement, TenantClient, Update,
};
use serde_json::{Value, json};

use crate::server::Server;

pub(crate) const AGENT: &str = "drill";

/// A turn of four model steps and five tool calls, three of them commands that must not run twice. What is read is the
/// same whenever it is read, since a read whose answer was lost runs again.
pub(crate) fn plain_script(delay_ms: u64) -> String {
    plain_steps(delay_ms).to_string()
}

/// The same, with a call in the second step that a person denies; and the third answer says that the model's window is
/// small, so that the conversation is compacted before the fourth.
pub(crate) fn script(delay_ms: u64) -> String {
    let mut steps = plain_steps(delay_ms);
    let calls = steps[1]["tools"].as_array_mut().expect("the step has calls");
    calls.push(json!({"name": "deploy", "input": {}}));
    steps[2]["window"] = json!(300);
    steps.to_string()
}

fn plain_steps(delay_ms: u64) -> Value {
    let bash =
        |word: &str| json!({"name": "bash", "input": {"command": format!("echo kept > notes; echo {word} >> marks")}});
    json!([
        {"delayMs": delay_ms, "text": "first", "tools": [bash("one")]},
        {"delayMs": delay_ms, "tools": [
            {"name": "read", "input": {"path": "notes"}},
            bash("two"),
            {"name": "grep", "input": {"pattern": "kept", "path": "notes"}},
        ]},
        {"delayMs": delay_ms, "tools": [bash("three")]},
        {"delayMs": delay_ms, "text": "last"},
    ])
}

const WORDS: [&str; 3] = ["one", "two", "three"];

/// Prepares the tenant: fixture model and agent. Repeating it changes nothing.
pub(crate) async fn prepare(server: &Server) -> Result<(), Error> {
    let tenant: TenantClient = server.tenant();
    tenant.seed(&Seed::FixtureModel).await?;
    let deploy = json!({
        "name": "deploy",
        "inputSchema": {"type": "object"},
        "http": {"url": "http://127.0.0.1:9/never"},
        "approval": "always",
    });
    let manifest = json!({
        "manifestSchemaVersion": 5,
        "id": AGENT,
        "capabilities": [{"id": "c", "type": "agent", "tools": [deploy]}],
    });
    server.client().save_agent(AGENT, &manifest, "1").await?;
    Ok(())
}

/// Opens the session and sends its message, and one that waits for it. Repeating it, after a crash say, is the same as
/// doing it once: the first turn asks before it ends, and nobody answers before both were sent.
pub(crate) async fn begin(client: &Client, id: &str, script: &str) -> Result<(), Error> {
    let environment = Some(Environment::Inline(InlineEnvironment::default()));
    client.open_session(id, &OpenSession { environment, ..OpenSession::new(AGENT, "drill") }).await?;
    let kind = CommandKind::Message(Content::Text(script.to_owned()));
    send(client, id, "message", kind).await
}

/// Sends the message that waits for the first turn to end.
async fn queue(client: &Client, id: &str) -> Result<(), Error> {
    send(client, id, "queued", CommandKind::Queue(Content::Text("and then".to_owned()))).await
}

async fn send(client: &Client, id: &str, name: &str, kind: CommandKind) -> Result<(), Error> {
    client.session(id).command(&Command { idempotency_key: format!("{name}-{id}"), kind }).await?;
    Ok(())
}

/// Why looking after a turn ended before the turn did.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Left {
    /// The server went away.
    #[error("the server went away")]
    Gone,
    /// It refused something.
    #[error(transparent)]
    Refused(#[from] Error),
}

/// Follows the session until both its turns have completed: answers what is asked and settles what is uncertain
/// meanwhile. Then begins a third turn and cancels it.
pub(crate) async fn see_to_its_end(client: &Client, home: &Path, id: &str) -> Result<(), Left> {
    queue(client, id).await?;
    let mut events = client.session(id).events(Follow::default());
    let mut completed = 0;
    loop {
        match events.next().await.expect("a stream ends with an error")? {
            Update::Interrupted { .. } => return Err(Left::Gone),
            Update::Delta(_) => {}
            Update::Event(event) => match event.kind.as_str() {
                "turn.completed" => {
                    completed += 1;
                    if completed == 2 {
                        cancel_a_third(client, id).await?;
                    }
                }
                "turn.cancelled" if completed == 2 => return Ok(()),
                "turn.failed" | "turn.cancelled" => panic!("session {id}: {}", event.text),
                "turn.paused" => deny(client, id, &event).await?,
                "effect.uncertain" => settle(client, home, id).await?,
                _ => {}
            },
        }
    }
}

/// Answers no to everything that is asked. The key is the question's own: asked again, it is answered once.
pub(crate) async fn deny(client: &Client, id: &str, paused: &Event) -> Result<(), Error> {
    for asked in paused.payload["interactions"].as_array().into_iter().flatten() {
        let interaction_id = asked["interaction"]["id"].as_str().expect("a question has an id").to_owned();
        let kind = CommandKind::Approve { interaction_id, approval: Approval::Denied };
        send(client, id, "answer", kind).await?;
    }
    Ok(())
}

async fn cancel_a_third(client: &Client, id: &str) -> Result<(), Error> {
    let slow = json!([{"delayMs": 600_000, "text": "never"}]).to_string();
    send(client, id, "third", CommandKind::Message(Content::Text(slow))).await?;
    send(client, id, "cancel", CommandKind::Cancel { reason: None }).await
}

/// Settles what is uncertain, by looking at what the command would have left.
pub(crate) async fn settle(client: &Client, home: &Path, id: &str) -> Result<(), Error> {
    let session = client.session(id);
    for effect in &session.view().await?.uncertain_effects {
        let asked = uncertain_word(&session.history(None, None).await?.items, &effect.effect_id);
        let settlement = if marks(home, id).contains(&asked) {
            Settlement::Value(json!({"exitCode": 0, "stdout": "", "stderr": ""}))
        } else {
            Settlement::Retry
        };
        session.settle(&Settle::new(&effect.effect_id, settlement)?).await?;
    }
    Ok(())
}

/// The word that the uncertain command writes: the record names the command.
fn uncertain_word(events: &[Event], effect_id: &str) -> String {
    let mut marks = events.iter().rev().filter(|event| event.kind == "effect.uncertain");
    let mark = marks.find(|event| event.payload["effectId"] == effect_id).expect("an event marks it");
    let command = mark.payload["command"].as_str().unwrap_or_else(|| panic!("{}", mark.text));
    let (before, _) = command.split_once(" >> marks").expect("it leaves a mark, last of all");
    before.split_whitespace().next_back().expect("it echoes a word").to_owned()
}

/// The words that commands of this session left in its workspace, in order.
pub(crate) fn marks(home: &Path, id: &str) -> Vec<String> {
    let text = std::fs::read_to_string(workspace(home, id).join("marks")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Where the files of the session's own workspace are.
pub(crate) fn workspace(home: &Path, id: &str) -> PathBuf {
    let root = home.join("tenant/workspaces");
    let digest = &nylorun_domain::hash::sha256_hex(id.as_bytes())[..16];
    let folders = std::fs::read_dir(&root).expect("the workspaces' folder is there");
    let names = folders.map(|entry| entry.expect("it can be listed").path());
    let mine = names.into_iter().find(|path| path.to_string_lossy().ends_with(digest));
    mine.unwrap_or_else(|| root.join("none")).join("workspace")
}

/// What the record of an ended drill says, without ids, times, epochs, and the marks that uncertainty leaves.
#[derive(Debug, PartialEq)]
pub(crate) struct Record(Vec<(String, Value)>);

impl Record {
    pub(crate) fn of(events: &[Event]) -> Self {
        let mut calls = HashMap::new();
        let mut lines = Vec::new();
        for event in events {
            match event.kind.as_str() {
                // Workspaces are opened again after a crash, and a lost answer is marked: both are as it was.
                "sandbox.state" | "sandbox.exec" | "effect.uncertain" | "effect.settled" => {}
                // When it comes during the first turn is a matter of moments.
                "message.queued" => {}
                _ => lines.push((event.kind.clone(), normalized(event, &mut calls))),
            }
        }
        sort_results_of_a_step(&mut lines);
        Self(lines)
    }
}

fn normalized(event: &Event, calls: &mut HashMap<String, usize>) -> Value {
    let payload = &event.payload;
    match event.kind.as_str() {
        "message.assistant" => {
            for call in payload["toolCalls"].as_array().into_iter().flatten() {
                let next = calls.len();
                calls.entry(call["callId"].as_str().expect("a call has an id").to_owned()).or_insert(next);
            }
            let asked = payload["toolCalls"].as_array().into_iter().flatten();
            let asked: Vec<Value> = asked.map(|call| json!([call["name"], call["input"]])).collect();
            json!([payload["text"], payload["finishReason"], payload["usage"], asked])
        }
        "tool.completed" => {
            let call = calls.get(payload["callId"].as_str().expect("a result names its call"));
            let call = call.unwrap_or_else(|| panic!("{payload} answers a call that nobody made"));
            json!([call, payload["toolName"], payload["output"], payload["error"]])
        }
        "command.message" => payload["content"].clone(),
        "command.approve" => payload["approved"].clone(),
        "context.compacted" => json!([payload["trigger"], payload["tokensBefore"], payload["tokensAfter"]]),
        "turn.paused" => {
            let asked = payload["interactions"].as_array().into_iter().flatten();
            asked.map(|asked| json!([asked["toolName"], asked["interaction"]["kind"], asked["status"]])).collect()
        }
        _ => payload.clone(),
    }
}

/// Results of parallel calls are recorded as they arrive: their order is not part of what must be equal.
fn sort_results_of_a_step(lines: &mut [(String, Value)]) {
    for step in lines.chunk_by_mut(|a, b| a.0 == "tool.completed" && b.0 == "tool.completed") {
        step.sort_by_key(|(_, line)| line[0].as_u64());
    }
}

/// What must hold for the record and the workspace of an ended drill.
pub(crate) async fn check(client: &Client, home: &Path, id: &str, undisturbed: &Record) {
    let events = client.session(id).history(None, None).await.expect("the history is there").items;
    let record = Record::of(&events);
    for (found, wanted) in record.0.iter().zip(&undisturbed.0) {
        assert_eq!(found, wanted, "session {id}");
    }
    assert_eq!(record.0.len(), undisturbed.0.len(), "session {id}: {record:?}");
    assert_eq!(marks(home, id), WORDS, "session {id}: every command ran once, in order");

    let numbers: Vec<u64> = events.iter().filter_map(Event::seq).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "session {id}: {numbers:?}");
    for (kind, name) in [("message.assistant", "invocationId"), ("tool.completed", "callId"), ("turn.completed", "")] {
        let mut seen: Vec<&str> =
            events.iter().filter(|event| event.kind == kind).filter_map(|event| event.payload[name].as_str()).collect();
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all, "session {id}: an outcome was recorded twice");
    }
    let asked = format!("message-{id}");
    let kept = events.iter().filter(|event| event.payload["idempotencyKey"] == json!(asked)).count();
    assert_eq!(kept, 1, "session {id}: the acknowledged message is in the record once");
}
