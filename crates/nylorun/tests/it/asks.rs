//! Turns that ask, and messages to turns that run, at the terminal: `chat`, `session approve`, `respond` and `queue`.

use std::io::Write as _;
use std::path::Path;
use std::process::ChildStdin;

use nylorun_client::{Follow, OpenSession, Update};
use serde_json::{Value, json};

use crate::chat::{Chat, prepared, without_duration};
use crate::cli::{nylorun, ok};
use crate::server::Server;

/// A server whose agent has `deploy`, a tool whose calls a person allows.
async fn careful(home: &Path) -> Server {
    let (_, server) = prepared(home).await;
    let deploy = json!({
        "name": "deploy",
        "inputSchema": {"type": "object"},
        "http": {"url": "http://127.0.0.1:9/deploy"},
        "approval": "always",
    });
    let manifest = json!({
        "manifestSchemaVersion": 6,
        "id": "helper",
        "capabilities": [{"id": "c", "type": "agent", "tools": [deploy]}],
    });
    server.client().save_agent("helper", &manifest, "2").await.expect("the manifest is valid");
    server
}

/// A turn that wants `deploy` so often.
fn deploys(count: usize) -> String {
    let call = |n: usize| json!({"name": "deploy", "input": {"to": "production", "n": n}});
    json!([{"tools": (1..=count).map(call).collect::<Vec<_>>()}, {"text": "last"}]).to_string()
}

/// A turn whose first model call takes a while.
fn slow(delay_ms: u64) -> String {
    json!([{"delayMs": delay_ms, "tools": [{"name": "nothing"}]}, {"text": "first is done"}]).to_string()
}

/// Opens the session that a chat goes on with, so that it can be followed from the first event on.
async fn open(server: &Server) {
    server.client().open_session("s", &OpenSession::new("helper", "me")).await.expect("it can be opened");
}

/// A chat line by line, with what is typed.
struct Talk {
    chat: Chat,
    stdin: ChildStdin,
}

impl Talk {
    fn start(home: &Path, args: &[&str]) -> Self {
        let mut chat = Chat::start(home, &[&["--session", "s", "--interactive"], args].concat());
        let stdin = chat.child.stdin.take().expect("it is piped");
        Self { chat, stdin }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("it reads");
    }

    /// Reads up to the line that begins so; gives it with those before.
    #[track_caller]
    fn until(&mut self, begin: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = without_duration(&self.chat.line());
            lines.push(line);
            if lines.last().is_some_and(|line| line.starts_with(begin)) {
                return lines;
            }
        }
    }

    /// Leaves, with the lines that were left.
    fn end(self) -> (Vec<String>, Option<i32>) {
        drop(self.stdin);
        self.chat.end()
    }
}

async fn until_event(server: &Server, kind: &str) {
    let mut events = server.client().session("s").events(Follow::default());
    loop {
        match events.next().await.expect("it goes on").expect("no refusal") {
            Update::Event(event) if event.kind == kind => return,
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
        }
    }
}

#[tokio::test]
async fn a_call_is_asked_about_with_its_input_and_answered() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let _server = careful(home.path()).await;
    let mut talk = Talk::start(home.path(), &[]);
    talk.say(&deploys(2));
    let shown = talk.until("The turn asks:");
    assert!(shown.iter().any(|line| line.starts_with("→ [1] deploy")), "{shown:?}");
    assert_eq!(shown.last().expect("one"), "The turn asks: Allow this call of the tool deploy?");
    let input = talk.until("  }");
    assert_eq!(input[0], "  deploy {");
    assert!(input.iter().any(|line| line.contains("\"to\": \"production\"")), "{input:?}");
    talk.say("perhaps");
    talk.say("n");
    talk.until("The turn asks:");
    talk.until("  }");
    talk.say("yes");
    let rest = talk.until("last");
    assert!(rest.contains(&"· answered: not allowed".to_owned()), "{rest:?}");
    assert!(rest.contains(&"· answered: allowed".to_owned()), "{rest:?}");
    assert!(rest.iter().any(|line| line.starts_with("✗ [1] deploy  denied")), "{rest:?}");
    assert!(rest.iter().any(|line| line.starts_with("✗ [2] deploy") && !line.contains("denied")), "{rest:?}");
    assert_eq!(talk.end().1, Some(0));
}

#[tokio::test]
async fn without_a_terminal_it_is_said_what_is_asked_and_how_to_answer() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let server = careful(path).await;
    let (lines, code) = Chat::start(path, &["--session", "s", "--message", &deploys(1)]).end();
    assert_eq!(code, Some(1));
    let at = lines.iter().position(|line| line.starts_with("The turn asks:")).expect("it is said");
    let approve = lines.iter().find(|line| line.contains("session approve")).expect("it says how");
    let question = approve.split_whitespace().nth(4).expect("it names the question");
    // Once more, by whoever goes on with the session, and by a look.
    let (again, code) = Chat::start(path, &["--session", "s", "--message", "hello"]).end();
    assert_eq!((&again[again.len() - (lines.len() - at)..], code), (&lines[at..], Some(1)));
    let shown = ok(&nylorun(path, &["session", "show", "s"]));
    assert!(shown.ends_with(&(lines[at..].join("\n") + "\n")), "{shown}");

    let wrong = nylorun(path, &["session", "respond", "s", question, "yes"]);
    assert_eq!(wrong.status.code(), Some(1), "a call is approved, not answered");
    let denied = ok(&nylorun(path, &["session", "approve", "s", question, "--deny"]));
    assert_eq!(denied, format!("denied {question}; the turn goes on\n"));
    until_event(&server, "turn.completed").await;
    assert_eq!(nylorun(path, &["session", "approve", "s", question]).status.code(), Some(1), "it was answered");
    let (lines, code) = Chat::start(path, &["--session", "s", "--message", "hello"]).end();
    assert_eq!((lines.last().map(String::as_str), code), (Some("hello"), Some(0)));
}

#[tokio::test]
async fn a_paused_turn_is_taken_up_by_another_chat() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let _server = careful(home.path()).await;
    let mut talk = Talk::start(home.path(), &[]);
    talk.say(&deploys(1));
    talk.until("The turn asks:");
    let (left, code) = talk.end();
    assert_eq!(code, Some(1));
    assert!(left.iter().any(|line| line.contains("nylorun session approve s ")), "{left:?}");
    let mut talk = Talk::start(home.path(), &[]);
    talk.until("The turn asks:");
    talk.say("n");
    talk.until("last");
    talk.say("hello");
    talk.until("hello");
    assert_eq!(talk.end().1, Some(0));
}

#[tokio::test]
async fn lines_typed_while_a_turn_runs_steer_it_or_wait() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (_, server) = prepared(home.path()).await;
    open(&server).await;
    let mut talk = Talk::start(home.path(), &[]);
    talk.say(&slow(2_000));
    server.until_running("s").await;
    talk.say("/steer rather this");
    talk.say("and then");
    let lines = talk.until("and then");
    for line in [
        "· waits: rather this (the turn reads it at its next step)",
        "· waits: and then (it begins the next turn)",
        "> rather this",
        "rather this",
        "> and then",
    ] {
        assert!(lines.iter().any(|shown| shown == line), "{line}: {lines:?}");
    }
    let (rest, code) = talk.end();
    assert_eq!((rest, code), (Vec::new(), Some(0)));
}

#[tokio::test]
async fn one_message_waits_for_its_own_turn() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let (_, server) = prepared(path).await;
    open(&server).await;
    let mut talk = Talk::start(path, &[]);
    talk.say(&slow(2_000));
    server.until_running("s").await;
    let args = ["--session", "s", "--when-busy", "queue", "--message", "second"];
    let (lines, code) = Chat::start(path, &args).end();
    assert_eq!((lines.last().map(String::as_str), code), (Some("second"), Some(0)));
    talk.until("first is done");
    assert_eq!(talk.end().1, Some(0));
    // A session that is free begins at once.
    let args = ["--session", "s", "--when-busy", "steer", "--message", "third"];
    let (lines, code) = Chat::start(path, &args).end();
    assert_eq!((lines.last().map(String::as_str), code), (Some("third"), Some(0)));
}

#[tokio::test]
async fn what_waits_is_listed_and_taken_back() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let (_, server) = prepared(path).await;
    open(&server).await;
    let mut talk = Talk::start(path, &[]);
    talk.say(&slow(60_000));
    until_event(&server, "command.message").await;
    assert_eq!(ok(&nylorun(path, &["session", "queue", "s"])), "nothing waits in s\n");
    talk.say("later");
    talk.until("· waits: later");
    let listed = ok(&nylorun(path, &["session", "queue", "s"]));
    assert!(listed.contains("queue") && listed.contains("later"), "{listed}");
    let queue: Value = serde_json::from_str(&ok(&nylorun(path, &["session", "queue", "s", "--json"]))).expect("JSON");
    let id = queue[0]["id"].as_str().expect("it has an id");
    assert!(ok(&nylorun(path, &["session", "queue", "s", "--remove", id])).starts_with("took back "));
    talk.until("· a message that waited is gone (removed)");
    assert_eq!(nylorun(path, &["session", "queue", "s", "--remove", id]).status.code(), Some(1));
    assert_eq!(ok(&nylorun(path, &["session", "cancel", "s"])), "cancelled s\n");
    talk.until("the turn was cancelled");
    assert_eq!(talk.end().1, Some(0));
}
