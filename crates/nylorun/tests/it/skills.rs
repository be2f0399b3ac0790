//! Definition files and skills through the real binary: stored once, read by a turn, and there after a kill.

use std::path::Path;

use nylorun_client::{Command, Event, Follow, OpenSession, Seed, Update};
use nylorun_domain::hash::sha256_hex;
use serde_json::{Value, json};

use crate::database::{self, Database};
use crate::raw::{Answer, send};
use crate::server::{Server, Setup};

const SKILL: &str = "---\nname: pdf\ndescription: Reads PDFs\n---\n\nRead forms.md first.\n";
const FORMS: &str = "Fill in every field.";

fn name(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

fn file(server: &Server, method: &str, name: &str, bytes: Option<&[u8]>) -> Answer {
    let bearer = format!("Bearer {}", server.key_text("applicationKey"));
    let headers = [("Nylorun-Protocol", "10"), ("Authorization", &bearer), ("Content-Type", "text/markdown")];
    send(&server.url, method, &format!("/v1/files/{name}"), &headers, bytes)
}

fn manifest() -> Value {
    json!({"manifestSchemaVersion": 5, "id": "reader", "capabilities": [{"id": "c", "type": "agent", "skills": {
        "pdf": {"name": "pdf", "description": "Reads PDFs",
            "files": {"SKILL.md": name(SKILL.as_bytes()), "forms.md": name(FORMS.as_bytes())}}}}]})
}

/// What the tools of a turn gave, whose message is this script.
async fn results(server: &Server, id: &str, script: &Value) -> Vec<Value> {
    let client = server.client();
    client.open_session(id, &OpenSession::new("reader", "ann")).await.expect("it can be opened");
    let session = client.session(id);
    let command = Command::text(script.to_string()).expect("a key can be made");
    let accepted = session.command(&command).await.expect("it is free");
    let mut events = session.events(Follow { after: accepted.cursor, ..Follow::default() });
    let mut results = Vec::new();
    loop {
        match events.next().await.expect("the stream goes on").expect("the stream goes on") {
            Update::Event(event) if event.ends_turn() => {
                assert_eq!(event.kind, "turn.completed", "{}", event.text);
                return results;
            }
            Update::Event(event) if event.kind == "tool.completed" => results.push(result(&event)),
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
        }
    }
}

fn result(event: &Event) -> Value {
    if event.payload["error"].is_null() {
        event.payload["output"].clone()
    } else {
        event.payload["error"]["code"].clone()
    }
}

fn calls(calls: Value) -> Value {
    json!([{"tools": calls}, {"text": "Done."}])
}

fn unfinished(home: &Path) -> usize {
    std::fs::read_dir(home.join("tenant/blobs/unfinished")).expect("it is there").count()
}

#[tokio::test]
async fn a_turn_reads_the_skills_whose_files_were_stored() {
    let mut databases = vec![Database::Sqlite];
    databases.extend(database::postgres("nylorun_skills").await);
    for database in databases {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let mut server = setup.start();
        server.tenant().seed(&Seed::FixtureModel).await.expect("it can be seeded");
        let refused = server.client().save_agent("reader", &manifest(), "1").await.expect_err("no file is there");
        assert!(refused.to_string().contains("not stored"), "{refused}");
        for text in [SKILL, FORMS] {
            let name = name(text.as_bytes());
            assert_eq!(file(&server, "HEAD", &name, None).status, 404);
            let stored = format!(r#"{{"sha256":"{name}","size":{}}}"#, text.len());
            for status in [201, 200] {
                let answer = file(&server, "PUT", &name, Some(text.as_bytes()));
                assert_eq!((answer.status, answer.body.as_str()), (status, stored.as_str()));
            }
            assert_eq!(file(&server, "HEAD", &name, None), Answer { status: 200, body: String::new() });
        }
        server.client().save_agent("reader", &manifest(), "1").await.expect("all files are there");
        server.kill();

        let server = setup.start();
        let script = calls(json!([
            {"name": "load_skill", "input": {"name": "pdf"}},
            {"name": "read_skill_resource", "input": {"name": "pdf", "path": "forms.md"}},
            {"name": "load_skill", "input": {"name": "docx"}},
        ]));
        let mut results = results(&server, "s", &script).await;
        results.sort_by_key(ToString::to_string);
        let loaded = json!({"name": "pdf", "instructions": "Read forms.md first.\n", "files": ["forms.md"]});
        assert_eq!(results, [json!(FORMS), json!("skill.not_found"), loaded]);
        assert!(server.stop().success());
    }
}

#[tokio::test]
async fn a_large_file_is_stored_up_to_the_limit_and_nothing_else_stays() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    let largest = vec![b'x'; 10 << 20];
    assert_eq!(file(&server, "PUT", &name(&largest), Some(&largest)).status, 201);
    let larger = vec![b'x'; (10 << 20) + 1];
    let refused = file(&server, "PUT", &name(&larger), Some(&larger));
    assert_eq!(refused.status, 413);
    let body: Value = serde_json::from_str(&refused.body).expect("JSON");
    assert_eq!((&body["code"], &body["details"]["limitBytes"]), (&json!("limit_exceeded"), &json!(10 << 20)));
    let other = file(&server, "PUT", &name(b"other"), Some(&largest));
    let body: Value = serde_json::from_str(&other.body).expect("JSON");
    let details = json!({"expected": name(b"other"), "actual": name(&largest)});
    assert_eq!((other.status, &body["code"], &body["details"]), (400, &json!("invalid_request"), &details));
    assert_eq!(unfinished(home.path()), 0);
    assert_eq!(file(&server, "HEAD", &name(b"other"), None).status, 404);
    assert!(server.stop().success());
}
