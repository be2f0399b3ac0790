//! `nylorun chat` against the real server: what is printed, through deaths of the server and of the chat.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use nylorun_client::{CommandKind, Content, OpenSession};
use serde_json::json;

use crate::server::{Server, Setup};

/// A server that starts again at the address that its clients know, with an agent that the fixture model plays.
pub(crate) async fn prepared(home: &Path) -> (Setup, Server) {
    let server = Setup::new(home).start();
    let manifest = json!({"manifestSchemaVersion": 5, "id": "helper", "capabilities": [{"id": "c", "type": "agent"}]});
    server.client().save_agent("helper", &manifest, "1").await.expect("the agent is saved");
    server.tenant().seed(&nylorun_client::Seed::FixtureModel).await.expect("the fixture model is set");
    let listen = server.url.strip_prefix("http://").expect("an http URL").to_owned();
    (Setup { listen, ..Setup::new(home) }, server)
}

/// A chat that runs, with what it printed line by line.
pub(crate) struct Chat {
    pub(crate) child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Chat {
    pub(crate) fn start(home: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nylorun"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NYLORUN_")) {
            command.env_remove(name);
        }
        command.args(["chat", "helper", "--home"]).arg(home).args(args).current_dir(home);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        Self { child, lines }
    }

    /// The next line.
    pub(crate) fn line(&mut self) -> String {
        self.lines.next().expect("there is a line").expect("it is text")
    }

    /// The lines that are left, without what changes from run to run, and the exit code.
    pub(crate) fn end(mut self) -> (Vec<String>, Option<i32>) {
        let lines = self.lines.map(|line| line.expect("it is text"));
        let lines = lines.filter(|line| !line.contains("connecting again")).map(|line| without_duration(&line));
        (lines.collect(), self.child.wait().expect("it ended").code())
    }

    /// Ctrl-C.
    pub(crate) fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    }

    pub(crate) fn stderr(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().expect("it is piped").read_to_string(&mut text).expect("it is text");
        text
    }
}

/// `✓ bash  12 ms  out` without how long it took.
pub(crate) fn without_duration(line: &str) -> String {
    let parts: Vec<&str> = line.split("  ").collect();
    match parts[..] {
        [call, took, outcome] if took.ends_with(" ms") || took.ends_with(" s") => format!("{call}  {outcome}"),
        _ => line.to_owned(),
    }
}

#[tokio::test]
async fn a_turn_is_printed_as_it_happens() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (_, _server) = prepared(home.path()).await;
    let script = json!([
        {"text": "Looking.", "tools": [
            {"name": "bash", "input": {"command": "printf '\\033[31mred\\n'"}},
            {"name": "read", "input": {"path": "missing"}},
        ]},
        {"text": "Done."},
    ]);
    let mut chat = Chat::start(home.path(), &["--sandbox"]);
    chat.child.stdin.take().expect("it is piped").write_all(script.to_string().as_bytes()).expect("it reads");
    assert!(chat.stderr().starts_with("session "));
    let (mut lines, code) = chat.end();
    // The two calls run at once: either may end first.
    lines[3..5].sort();
    let expected = [
        "Looking.",
        "→ [1] bash  printf '\\033[31mred\\n'",
        "→ [2] read  missing",
        "✓ [1] bash  ␛[31mred",
        "✗ [2] read  sandbox.not_found: There is no file at /workspace/missing.",
        "Done.",
    ];
    assert_eq!((lines, code), (expected.map(str::to_owned).to_vec(), Some(0)));
}

#[tokio::test]
async fn a_turn_that_fails_says_why_and_is_exit_code_1() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (_, _server) = prepared(home.path()).await;
    let (lines, code) = Chat::start(home.path(), &["--message", r#"[{"fail": "content_policy"}]"#]).end();
    assert_eq!(
        (lines.last().map(|line| line.starts_with("✗ the turn failed: model.content_policy")), code),
        (Some(true), Some(1))
    );
}

#[tokio::test]
async fn a_killed_server_is_waited_for_and_nothing_is_shown_twice() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (setup, mut server) = prepared(home.path()).await;
    let script = json!([{"text": "One.", "tools": [{"name": "bash", "input": {"command": "echo 1"}}]},
        {"delayMs": 1500}, {"text": "Two."}]);
    let mut chat = Chat::start(home.path(), &["--sandbox", "--session", "s1", "--message", &script.to_string()]);
    assert_eq!(chat.line(), "One.");
    assert_eq!(chat.line(), "→ bash  echo 1");
    assert_eq!(without_duration(&chat.line()), "✓ bash  1");
    server.kill();
    let _server = setup.start();
    assert_eq!(chat.end(), (vec!["Two.".to_owned()], Some(0)));
}

#[tokio::test]
async fn a_server_that_starts_again_elsewhere_is_found_there() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (_, mut server) = prepared(home.path()).await;
    let script = json!([{"text": "One.", "tools": [{"name": "nothing"}]}, {"delayMs": 3_000}, {"text": "Two."}]);
    let mut chat = Chat::start(home.path(), &["--session", "s1", "--message", &script.to_string()]);
    assert_eq!(chat.line(), "One.");
    // A port that is free while the first server has its own.
    let other = std::net::TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a port is free");
    server.kill();
    let next = Setup { listen: other.to_string(), ..Setup::new(home.path()) }.start();
    let (lines, code) = chat.end();
    assert_eq!((lines.last().map(String::as_str), code), (Some("Two."), Some(0)), "{lines:?}");
    assert!(lines.contains(&format!("the server is at {} now", next.url)), "{lines:?}");
}

#[tokio::test]
async fn a_server_that_stays_away_is_given_up_with_the_command_that_goes_on() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (_, mut server) = prepared(home.path()).await;
    let script = json!([{"text": "One.", "tools": [{"name": "nothing"}]}, {"delayMs": 600_000}]).to_string();
    let args = ["--session", "s1", "--give-up-after", "1s", "--message", &script];
    let mut chat = Chat::start(home.path(), &args);
    assert_eq!(chat.line(), "One.");
    server.kill();
    let stderr = chat.stderr();
    assert_eq!(chat.end().1, Some(3));
    let given_up = stderr.lines().find(|line| line.starts_with("error: the server has not answered for "));
    assert!(given_up.is_some() && stderr.contains("`nylorun chat helper --session s1`"), "{stderr}");
}

#[tokio::test]
async fn a_chat_that_died_takes_its_turn_up_again() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (_, server) = prepared(home.path()).await;
    let slowly = json!({"name": "bash", "input": {"command": "sleep 1; echo 1"}});
    let script = json!([{"text": "One.", "tools": [slowly]}, {"text": "Two."}]);
    let mut chat = Chat::start(home.path(), &["--sandbox", "--session", "s1", "--message", &script.to_string()]);
    assert_eq!(chat.line(), "One.");
    chat.child.kill().expect("it runs");
    chat.child.wait().expect("it ended");
    let again = Chat::start(home.path(), &["--session", "s1", "--message", "hello"]);
    let (lines, code) = again.end();
    assert_eq!(lines[1..], ["One.", "→ bash  sleep 1; echo 1", "✓ bash  1", "Two.", "hello"].map(str::to_owned));
    assert_eq!(code, Some(0));
    drop(server);
}

#[tokio::test]
async fn a_message_waits_for_the_turn_that_runs_and_for_those_that_wait() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (_, server) = prepared(home.path()).await;
    let client = server.client();
    client.open_session("s", &OpenSession::new("helper", "ann")).await.expect("it can be opened");
    let slow = |text: &str| Content::Text(json!([{"delayMs": 300}, {"text": text}]).to_string());
    for kind in [CommandKind::Message(slow("first")), CommandKind::Queue(slow("second"))] {
        let command = nylorun_client::Command::new(kind).expect("a key can be made");
        client.session("s").command(&command).await.expect("it is taken");
    }
    let chat = Chat::start(home.path(), &["--session", "s", "--message", "third"]);
    let (lines, code) = chat.end();
    assert_eq!((lines.last().map(String::as_str), code), (Some("third"), Some(0)), "{lines:?}");
    let items = client.session("s").history(None, None).await.expect("it has a history").items;
    let answers = items.iter().filter(|event| event.kind == "message.assistant");
    let texts: Vec<_> = answers.map(|event| event.payload["text"].clone()).collect();
    assert_eq!(texts, ["first", "second", "third"]);
}

#[tokio::test]
async fn two_quick_interrupts_leave_no_turn_that_runs_on() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (_, server) = prepared(home.path()).await;
    let script = json!([{"text": "One.", "tools": [{"name": "nothing"}]}, {"delayMs": 60_000}, {"text": "Two."}]);
    let mut chat = Chat::start(home.path(), &["--session", "s1", "--message", &script.to_string()]);
    assert_eq!(chat.line(), "One.");
    chat.interrupt();
    assert!(std::iter::repeat_with(|| chat.line()).any(|line| line == "cancelling the turn; Ctrl-C again leaves"));
    chat.interrupt();
    let (lines, code) = chat.end();
    assert!(lines.iter().any(|line| line.starts_with("left;") || line == "the turn was cancelled"), "{lines:?}");
    assert_eq!(code, Some(1));
    let view = server.client().session("s1").view().await.expect("it is there");
    assert_eq!(view.status, nylorun_client::SessionStatus::Cancelled);
}

#[tokio::test]
async fn a_lost_connection_is_told_beside_json() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (setup, mut server) = prepared(home.path()).await;
    let script = json!([{"text": "One.", "tools": [{"name": "nothing"}]}, {"delayMs": 1500}, {"text": "Two."}]);
    let mut chat = Chat::start(home.path(), &["--session", "s1", "--json", "--message", &script.to_string()]);
    assert!(chat.line().contains("message.assistant"));
    server.kill();
    let _server = setup.start();
    assert!(chat.stderr().contains("connecting again"));
    let (lines, code) = chat.end();
    assert!(lines.iter().all(|line| line.starts_with('{')), "{lines:?}");
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn an_unknown_outcome_is_explained_and_settled() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (setup, mut server) = prepared(home.path()).await;
    let script = json!([{"tools": [{"name": "bash", "input": {"command": "sleep 30"}}]}, {"text": "Fin."}]);
    let mut chat = Chat::start(home.path(), &["--sandbox", "--session", "s1", "--message", &script.to_string()]);
    assert_eq!(chat.line(), "→ bash  sleep 30");
    // What is shown is committed, and the call's intent with it.
    server.kill();
    let server = setup.start();
    let (lines, code) = chat.end();
    assert_eq!(code, Some(1));
    let command = lines.iter().find(|line| line.contains("nylorun session settle s1")).expect("it says how");
    assert!(lines.contains(&"It is unknown whether this happened: bash sleep 30".to_owned()), "{lines:?}");
    let effect = command.split_whitespace().nth(4).expect("it names the effect");
    let mut settle = Command::new(env!("CARGO_BIN_EXE_nylorun"));
    settle.args(["session", "settle", "s1", effect, "--error", "lost"]).arg("--home").arg(home.path());
    assert!(settle.output().expect("it runs").status.success());
    let mut events = server.client().session("s1").events(nylorun_client::Follow::default());
    loop {
        match events.next().await.expect("it goes on").expect("no refusal") {
            nylorun_client::Update::Event(event) if event.ends_turn() => {
                assert_eq!((event.kind.as_str(), &event.payload["output"]), ("turn.completed", &json!("Fin.")));
                break;
            }
            _ => {}
        }
    }
}
