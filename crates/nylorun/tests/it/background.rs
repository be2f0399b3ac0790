//! `nylorun start`, `stop` and `logs`: the real binary in the background of a project.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nylorun_client::{Client, Follow, Key, Update};
use nylorun_store::db::HomeLock;
use rustix::process::{Pid, Signal, getsid, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::drill;

/// A project, and a home directory beside it. What runs there is stopped when it is dropped.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder can be made");
        fs::create_dir_all(root.path().join("project/src")).expect("it can be made");
        Self { root }
    }

    fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// A command in a directory, with no home directory but the one that it finds.
    fn command(&self, directory: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nylorun"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NYLORUN_")) {
            command.env_remove(name);
        }
        command.args(args).env("HOME", self.root.path().join("nobody")).env("NO_COLOR", "1").current_dir(directory);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(&self.project(), args).output().expect("the binary starts")
    }

    /// Starts a server on a free port.
    fn start(&self) -> Started {
        let mut command = self.command(&self.project(), &["start", "--json", "--listen", "127.0.0.1:0"]);
        let output = command.env("NYLORUN_HOME", self.home()).output().expect("the binary starts");
        Started::of(&output)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let home = self.home().display().to_string();
        self.command(self.root.path(), &["stop", "--home", &home]).output().expect("the binary starts");
    }
}

#[derive(Debug)]
struct Started {
    url: String,
    pid: Pid,
    is_new: bool,
}

impl Started {
    #[track_caller]
    fn of(output: &Output) -> Self {
        let told: Value = serde_json::from_str(&ok(output)).expect("JSON");
        let pid = told["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        Self {
            url: told["url"].as_str().expect("it has a URL").to_owned(),
            pid: pid.expect("it has a process"),
            is_new: told["started"] == true,
        }
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, err(output));
    out(output)
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("it is there")).expect("it is JSON")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn a_project_starts_finds_and_stops_its_server() {
    let place = Place::new();
    let folder = place.project().join(".nylorun");
    let nothing = place.run(&["status"]);
    assert_eq!(nothing.status.code(), Some(3));
    assert!(err(&nothing).contains("nobody/.nylorun") && err(&nothing).contains("no .nylorun/link.json"));

    // The output ends with the command: the server holds nothing of its caller's.
    let started = place.start();
    assert!(started.is_new);
    assert_eq!(getsid(Some(started.pid)).expect("it runs"), started.pid, "it has a session of its own");
    let host = json_of(&place.home().join("host.json"));
    let link = json!({"format": 1, "hostId": host["hostId"], "tenantId": host["tenantId"], "url": started.url,
        "home": place.home()});
    assert_eq!(json_of(&folder.join("link.json")), link);
    assert_eq!(json_of(&folder.join("credentials.json")), json_of(&place.home().join("host-credentials.json")));
    assert_eq!((mode(&folder), mode(&folder.join("credentials.json"))), (0o700, 0o600));
    assert!(fs::read_to_string(folder.join(".gitignore")).expect("it is there").ends_with("\n*\n"));

    // From here on, and from below, the link is all that is needed.
    let status = place.command(&place.project().join("src"), &["status", "--json"]).output().expect("it starts");
    let status: Value = serde_json::from_str(&ok(&status)).expect("JSON");
    assert_eq!((&status["url"], &status["ready"]["status"]), (&json!(started.url), &json!("ready")));
    assert_eq!(status["origin"], json!(folder.join("link.json")));
    let key: Value = serde_json::from_str(&ok(&place.run(&["key", "put", "ci", "--json"]))).expect("JSON");
    assert_eq!(key["id"], "ci", "the linked home directory is meant");
    let again = place.run(&["start"]);
    assert!(ok(&again).starts_with(&format!("nylorun runs already at {} (process ", started.url)), "{}", out(&again));
    let logs = ok(&place.run(&["logs"]));
    assert!(logs.contains("starting") && logs.contains("ready") && !logs.contains('\u{1b}'), "{logs}");
    assert_eq!(ok(&place.run(&["logs", "--lines", "1"])).lines().count(), 1);

    let stopped = ok(&place.run(&["stop"]));
    let which = format!("; no turn ran\nhome  {}\nurl   {}\n", place.home().display(), started.url);
    assert!(stopped.starts_with("stopped process ") && stopped.ends_with(&which), "{stopped}");
    let gone = place.run(&["stop"]);
    assert_eq!((gone.status.code(), out(&gone)), (Some(3), String::new()));
    let gone = place.run(&["status"]);
    assert_eq!(gone.status.code(), Some(3));
    assert!(err(&gone).contains("its address comes from") && err(&gone).contains("link.json"), "{}", err(&gone));

    let next = Started::of(&place.run(&["start", "--json", "--listen", "127.0.0.1:0"]));
    assert_ne!(next.pid, started.pid);
    assert_eq!(json_of(&folder.join("link.json"))["url"], json!(next.url), "the link is renewed");
}

#[test]
fn a_start_that_fails_says_why() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it has an address").to_string();
    let home = place.home().display().to_string();
    let failed = place.run(&["start", "--home", &home, "--listen", &address]);
    assert_eq!(failed.status.code(), Some(1));
    let said = err(&failed);
    assert!(said.contains("did not become ready") && said.contains(&format!("cannot listen on {address}")), "{said}");
    assert!(said.contains("another port with --listen") && said.contains("logs/nylorun.log"), "{said}");
    assert!(!place.project().join(".nylorun").exists(), "nothing to link to");
    let mut unusable = place.command(&place.project(), &["start", "--home", &home]);
    let unusable = unusable.env("NYLORUN_SANDBOX", "docker").output().expect("it starts");
    assert_eq!(unusable.status.code(), Some(2));
    // What only the server itself looks at is said as it says it.
    for (name, value) in [("NYLORUN_MODELS_FILE", "/does/not/exist"), ("NYLORUN_IDENTITY_FILE", "/does/not/exist")] {
        let run = |args: &[&str]| {
            let mut command = place.command(&place.project(), args);
            command.env(name, value).output().expect("it starts")
        };
        let started = run(&["start", "--home", &home, "--listen", "127.0.0.1:0"]);
        assert_eq!((started.status.code(), out(&started)), (Some(2), String::new()));
        let served = err(&run(&["serve", "--home", &home, "--listen", "127.0.0.1:0"]));
        let error = served.split_once("error: ").map(|(_, error)| format!("error: {error}"));
        assert_eq!(Some(err(&started)), error, "{name}");
    }
    assert_eq!(place.run(&["stop", "--home", &home]).status.code(), Some(3));
}

#[test]
fn two_starts_at_once_are_one_server() {
    let place = Place::new();
    let home = place.home().display().to_string();
    let begin = || {
        let args = ["start", "--json", "--home", &home, "--listen", "127.0.0.1:0"];
        let mut command = place.command(&place.project(), &args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    };
    let started = [begin(), begin(), begin()].map(|child: Child| {
        let output = child.wait_with_output().expect("it ended");
        Started::of(&output)
    });
    assert!(started.iter().all(|other| other.url == started[0].url), "{started:?}");
    assert_eq!(started.iter().filter(|started| started.is_new).count(), 1, "{started:?}");
}

#[tokio::test]
async fn a_stop_tells_what_becomes_of_turns_and_the_next_start_goes_on() {
    let place = Place::new();
    let mut command = place.command(&place.project(), &["start", "--json", "--listen", "127.0.0.1:0"]);
    command.env("NYLORUN_HOME", place.home()).env("NYLORUN_STOP_GRACE", "100ms");
    let started = Started::of(&command.output().expect("the binary starts"));
    let client = |started: &Started| {
        let keys = json_of(&place.project().join(".nylorun/credentials.json"));
        let key = Key::new(keys["applicationKey"]["key"].as_str().expect("a key")).expect("a key");
        Client::new(&started.url, key).expect("a URL")
    };
    ok(&place.run(&["model", "fixture"]));
    let manifest =
        json!({"manifestSchemaVersion": 5, "id": drill::AGENT, "capabilities": [{"id": "c", "type": "agent"}]});
    client(&started).save_agent(drill::AGENT, &manifest, "1").await.expect("it is saved");
    let script = json!([{"text": "first", "tools": [{"name": "nothing"}]}, {"delayMs": 2_000, "text": "last"}]);
    drill::begin(&client(&started), "s", &script.to_string()).await.expect("it can begin");
    until(&client(&started), "tool.completed").await;
    let stopped = ok(&place.run(&["stop"]));
    assert!(stopped.contains("; 1 turn goes on at the next start\n"), "{stopped}");

    let next = place.start();
    until(&client(&next), "turn.completed").await;
    assert!(ok(&place.run(&["stop"])).contains("; no turn ran\n"));
}

async fn until(client: &Client, kind: &str) {
    let mut events = client.session("s").events(Follow::default());
    loop {
        match events.next().await.expect("it goes on").expect("no refusal") {
            Update::Event(event) if event.kind == kind => return,
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
        }
    }
}

#[test]
fn a_stop_signals_only_the_process_that_holds_the_home_directory() {
    let place = Place::new();
    let started = place.start();
    kill_process(started.pid, Signal::KILL).expect("it runs");
    // Another process has got the number of one that died, and a container that uses the directory counts for itself.
    let mut stranger = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let pid = stranger.id();
    let mut host = json_of(&place.home().join("host.json"));
    host["pid"] = json!(pid);
    fs::write(place.home().join("host.json"), host.to_string()).expect("it can be written");
    let lock = place.home().join("home.lock");
    while matches!(HomeLock::holder(&lock), Ok(nylorun_store::db::LockHolder::Process { .. })) {}
    fs::write(&lock, format!("{pid}\n")).expect("it can be written");
    assert_eq!(place.run(&["stop"]).status.code(), Some(3), "nobody holds the lock");
    let held = HomeLock::acquire(&lock).expect("it is free");
    fs::write(&lock, format!("{pid}\n")).expect("it can be written");
    let refused = place.run(&["stop"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("no such process of yours"), "{}", err(&refused));
    test_kill_process(Pid::from_child(&stranger)).expect("it lives");
    assert!(stranger.try_wait().expect("it can be asked").is_none(), "it was not signalled");
    stranger.kill().expect("it runs");
    stranger.wait().expect("it ended");
    drop(held);
    assert!(place.start().is_new, "what a killed server left is no hindrance");
}

#[test]
fn the_log_is_followed_until_the_server_is_gone() {
    let place = Place::new();
    place.start();
    let mut command = place.command(&place.project(), &["logs", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut lines = lines.map(|line| line.expect("it is text"));
    assert!(lines.any(|line| line.contains("ready")));
    ok(&place.run(&["stop"]));
    assert!(lines.any(|line| line.contains("stopped")));
    child.kill().expect("it runs");
    child.wait().expect("it ended");
}
