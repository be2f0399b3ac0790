//! Commands that print what other programs read: completion scripts, OpenAPI documents, the state of the schema.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cli::{nylorun, ok};
use crate::server::Setup;

/// Whether the shell finds no fault in the script; `None` where there is no such shell.
fn is_sound(shell: &str, check: &str, script: &str) -> Option<bool> {
    let mut child = Command::new(shell).arg(check).stdin(Stdio::piped()).spawn().ok()?;
    child.stdin.take().expect("it is piped").write_all(script.as_bytes()).expect("the shell reads");
    Some(child.wait().expect("it ended").success())
}

#[test]
fn completion_scripts_are_sound_and_know_every_command() {
    let home = tempfile::tempdir().expect("a folder can be made");
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = ok(&nylorun(home.path(), &["completions", shell]));
        for word in ["start", "stop", "logs", "session", "approve", "--application-key-file", "--follow"] {
            let word = if shell == "fish" { word.trim_start_matches("--") } else { word };
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains("internal-shell"), "{shell} offers what is not for people");
        match is_sound(shell, check, &script) {
            Some(sound) => assert!(sound, "{shell}"),
            None => eprintln!("{shell} is not installed: its script is not checked"),
        }
    }
}

#[test]
fn openapi_prints_the_documents_of_the_repository() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi");
    for (args, name) in [
        (&["openapi"][..], "runtime.json"),
        (&["openapi", "runtime"], "runtime.json"),
        (&["openapi", "management"], "management.json"),
    ] {
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let kept = std::fs::read_to_string(documents.join(name)).expect("it is there");
        assert_eq!(read(&ok(&nylorun(home.path(), args))), read(&kept), "{args:?}");
    }
    assert_eq!(nylorun(home.path(), &["openapi", "other"]).status.code(), Some(2));
}

#[test]
fn migrate_checks_without_a_change() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let database = path.join("tenant/nylorun.db");
    let check = || nylorun(path, &["migrate", "--check"]).status.code();
    assert_eq!(check(), Some(3), "this is no home directory");
    assert!(!path.join("tenant").exists());
    assert!(Setup::new(path).start().stop().success());
    assert_eq!(check(), Some(0));
    std::fs::remove_file(&database).expect("it is there");
    assert_eq!(check(), Some(3), "there is no database");
    assert!(!database.exists());
    // An empty one has no schema yet.
    std::fs::File::create(&database).expect("it can be made");
    assert_eq!(check(), Some(1));
    assert_eq!(check(), Some(1), "nothing was changed");
    let migrated = ok(&nylorun(path, &["migrate"]));
    assert!(migrated.starts_with("the database has schema version "), "{migrated}");
    assert_eq!(ok(&nylorun(path, &["migrate", "--check"])), migrated);
}
