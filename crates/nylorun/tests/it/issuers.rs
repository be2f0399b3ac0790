//! The identity file and the public URL at a start. What tokens reach, the conformance suite shows.

use std::fs;
use std::path::Path;

use crate::raw::send;
use crate::server::Setup;

const SOUND: &str = "issuers:\n  - name: acme\n    issuer: https://id.example\n    audience: nylorun\n    \
                     jwks: https://id.example/keys\n";

fn setup(home: &Path, file: &str) -> Setup {
    let path = home.join("identity.yaml");
    fs::write(&path, file).expect("the file can be written");
    Setup::new(home).with("NYLORUN_IDENTITY_FILE", path.to_str().expect("a readable path"))
}

#[test]
fn a_file_in_which_something_is_wrong_stops_the_start_and_says_where() {
    for (file, said) in [
        (SOUND.replace("acme", "Acme"), "issuers.0.name: Invalid string: expected a lower-case letter"),
        (SOUND.replace("https://id.example/keys", "http://id.example/keys"), "issuers.0.jwks: Invalid URL"),
        (SOUND.replace("    audience: nylorun\n", ""), "issuers.0.audience: Invalid input: required"),
        ("issuers: [\n".to_owned(), "identity.yaml"),
        (String::new(), "identity.yaml"),
    ] {
        let home = tempfile::tempdir().expect("a folder can be made");
        let (code, log) = setup(home.path(), &file).refused();
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains("NYLORUN_IDENTITY_FILE=") && log.contains(said), "{file}: {log}");
    }
    let home = tempfile::tempdir().expect("a folder can be made");
    let (code, log) = Setup::new(home.path()).with("NYLORUN_IDENTITY_FILE", "/no/such/file.yaml").refused();
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("/no/such/file.yaml") && log.contains("No such file"), "{log}");
}

#[test]
fn the_document_names_the_public_url() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = setup(home.path(), SOUND).with("NYLORUN_PUBLIC_URL", "https://agents.example/base//").start();
    let answer = send(&server.url, "GET", "/.well-known/oauth-protected-resource/base", &[], None);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body.contains(r#""resource":"https://agents.example/base""#), "{}", answer.body);
    assert!(answer.body.contains(r#""authorization_servers":["https://id.example"]"#), "{}", answer.body);
}
