//! What a start makes of its home directory and of its environment: who may read what, and whether the vault key is the
//! one that sealed what is stored.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use nylorun_client::{ModelAuth, ModelChoice, SetModel};

use crate::cli::{nylorun_with, ok};
use crate::database::{Database, postgres};
use crate::server::{Server, Setup};

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is there");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn open_folders_are_closed_and_open_files_are_refused() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let setup = Setup::new(path);
    assert!(setup.start().stop().success());
    for folder in [path.to_owned(), path.join("keys")] {
        chmod(&folder, 0o777);
    }
    assert!(setup.start().stop().success());
    assert_eq!((mode(path), mode(&path.join("keys"))), (0o700, 0o700));
    assert!(setup.log().contains("was open to other users and is closed now"), "{}", setup.log());
    for (name, wide) in [("host-credentials.json", 0o644), ("tenant/nylorun.db", 0o640), ("keys/vault-kek", 0o604)] {
        let file = path.join(name);
        chmod(&file, wide);
        let (code, log) = setup.refused();
        let said = log.lines().rfind(|line| line.starts_with("error:")).unwrap_or_default();
        assert_eq!(code, Some(1), "{log}");
        assert!(said.contains(name) && said.contains(&format!("{wide:o}")), "{said}");
        chmod(&file, 0o600);
    }
    assert!(setup.start().stop().success());
}

#[test]
fn damaged_credentials_are_made_anew_once_they_are_removed() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = Setup::new(home.path());
    let server = setup.start();
    let before = server.key_text("applicationKey");
    assert!(server.stop().success());
    let file = home.path().join("host-credentials.json");
    fs::write(&file, &before).expect("it can be written");
    let (code, log) = setup.refused();
    assert_eq!(code, Some(1));
    assert!(log.contains("is damaged") && log.contains("or remove it") && !log.contains(&before), "{log}");
    fs::remove_file(&file).expect("it is there");
    assert_ne!(setup.start().key_text("applicationKey"), before);
}

async fn store_a_key(server: &Server) {
    let choice = ModelChoice {
        provider: "custom".to_owned(),
        model: "m".to_owned(),
        base_url: Some("http://127.0.0.1:9/v1".to_owned()),
    };
    let auth = ModelAuth::ApiKey("sk-sealed".to_owned());
    server.tenant().set_model(&SetModel { choice, settings: None, auth }).await.expect("it is stored");
}

#[tokio::test]
async fn a_lost_vault_key_is_never_made_anew_beside_what_it_sealed() {
    lost_vault_key(Database::Sqlite).await;
}

#[tokio::test]
async fn a_lost_vault_key_is_never_made_anew_beside_what_it_sealed_on_postgres() {
    if let Some(database) = postgres("lost_vault_key").await {
        lost_vault_key(database).await;
    }
}

async fn lost_vault_key(database: Database) {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let setup = database.setup(Setup::new(path));
    let run = |args: &[&str]| nylorun_with(path, args, &setup.env);
    let key = path.join("keys/vault-kek");
    let server = setup.start();
    // Nothing is sealed yet: nothing is lost with the key.
    assert!(server.stop().success());
    fs::remove_file(&key).expect("it is there");
    let server = setup.start();
    store_a_key(&server).await;
    assert!(server.stop().success());
    let kept = fs::read(&key).expect("it is there");

    fs::remove_file(&key).expect("it is there");
    let (code, log) = setup.refused();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("vault-kek is missing, and the stored key of custom was sealed with it"), "{log}");
    assert!(log.contains("nylorun secrets discard"), "{log}");
    assert!(!key.exists(), "no other key stands in its place");
    let doctor = run(&["doctor"]);
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(told.contains("fail  key of custom") && told.contains("cannot be opened without"), "{told}");

    // A key of another home.
    let other = tempfile::tempdir().expect("a folder can be made");
    assert!(Setup::new(other.path()).start().stop().success());
    fs::copy(other.path().join("keys/vault-kek"), &key).expect("it can be copied");
    let (code, log) = setup.refused();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("vault-kek is not the vault key with which the stored key of custom was sealed"), "{log}");

    // Its own key opens everything again.
    fs::write(&key, kept).expect("it can be written");
    assert!(ok(&run(&["secrets", "list"])).contains("yes"));
    assert_eq!(run(&["secrets", "discard", "--yes"]).status.code(), Some(0));
    assert!(setup.start().stop().success());

    // It is lost for good.
    fs::remove_file(&key).expect("it is there");
    assert_eq!(run(&["secrets", "discard"]).status.code(), Some(2), "nothing is removed without being told to");
    assert_eq!(setup.refused().0, Some(1));
    assert!(ok(&run(&["secrets", "discard", "--yes"])).contains("key of custom"));
    let server = setup.start();
    assert!(!server.tenant().model().await.expect("it answers").configured);
    let busy = run(&["secrets", "discard", "--yes"]);
    assert_eq!(busy.status.code(), Some(1), "a server runs on it: {busy:?}");
}

#[tokio::test]
async fn a_disk_that_takes_nothing_is_named_with_the_remedy() {
    let home = tempfile::tempdir().expect("a folder can be made");
    assert!(Setup::new(home.path()).start().stop().success());
    // As on a full disk, no file may grow; what a write over the limit gets is an error, not a signal.
    let run = |words: &str| {
        let script = format!("trap '' XFSZ; ulimit -f 0; exec \"$0\" {words} --home \"$1\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_nylorun")]).arg(home.path()).current_dir(home.path());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NYLORUN_")) {
            command.env_remove(name);
        }
        command.output().expect("it starts")
    };
    let remedy = "make room on the disk of ";
    let served = run("serve --listen 127.0.0.1:0");
    let said = String::from_utf8_lossy(&served.stderr);
    assert_eq!(served.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("try: {remedy}{}", home.path().display())), "{said}");
    let looked = run("doctor");
    let said = String::from_utf8_lossy(&looked.stdout);
    let secrets = said.lines().skip_while(|line| !line.contains("secrets")).nth(1).unwrap_or_default();
    assert!(secrets.trim_start().starts_with(remedy), "{said}");
    assert!(said.lines().any(|line| line.contains(" disk ") && line.contains(" free on the disk of ")), "{said}");
}

#[test]
fn a_variable_that_cannot_be_used_is_wrong_usage() {
    for (name, value, allowed) in [
        ("NYLORUN_SANDBOX", "docker", "virtual"),
        ("NYLORUN_SANDBOX", "microvm", "virtual"),
        ("NYLORUN_LOG", "nonsense", "debug"),
        ("NYLORUN_ALLOWED_HOSTS", "http://x", "host:port"),
        ("NYLORUN_MANAGEMENT_KEY_FILE", "/does/not/exist", "64 lower-case"),
        ("NYLORUN_MODELS_FILE", "/does/not/exist", "data/models.json"),
    ] {
        let home = tempfile::tempdir().expect("a folder can be made");
        let (code, log) = Setup::new(home.path()).with(name, value).refused();
        let said = log.split_once("error:").map(|(_, said)| said).unwrap_or_default();
        assert_eq!(code, Some(2), "{name}: {log}");
        assert!(said.contains(&format!("{name}={value:?}")) && said.contains(allowed), "{said}");
    }
}
