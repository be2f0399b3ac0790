//! What the database refuses for good, and what it cannot take for a while, on the real binary.

use std::path::Path;
use std::time::Duration;

use nylorun_client::{Command, CommandKind, Content, Event, Follow, OpenSession, Update};
use nylorun_store::db::{Db, DbOptions, Dialect, Statement};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};

use crate::database::{self, Database};
use crate::drill;
use crate::raw::{Answer, send};
use crate::server::{Server, Setup};

/// The database of a server, beside the server.
pub(crate) async fn open(database: &Database, home: &Path) -> Db {
    let url = match database {
        Database::Sqlite => format!("sqlite:{}", home.join("tenant/nylorun.db").display()),
        Database::Postgres(url) => url.clone(),
    };
    let url = url.parse().expect("it is a URL");
    Db::open(&url, &DbOptions::default()).await.expect("it can be opened beside the server")
}

/// Makes the database refuse rows of `table` that are `like` this.
async fn refuse(db: &Db, table: &str, like: &str) {
    let sql = match db.dialect() {
        Dialect::Sqlite => include_str!("../sql/refuse.sqlite.sql"),
        Dialect::Postgres => include_str!("../sql/refuse.postgres.sql"),
    };
    change_schema(db, sql, table, like).await;
}

/// Makes it take them again.
async fn take_again(db: &Db, table: &str) {
    let sql = match db.dialect() {
        Dialect::Sqlite => include_str!("../sql/take.sqlite.sql"),
        Dialect::Postgres => include_str!("../sql/take.postgres.sql"),
    };
    change_schema(db, sql, table, "").await;
}

async fn change_schema(db: &Db, sql: &str, table: &str, like: &str) {
    let sql = sql.replace("{table}", table).replace("{like}", like);
    db.write(vec![Statement::any(sql, Vec::new())]).await.expect("an operator may do so");
}

/// Says something, and gives the event that ended the turn.
pub(crate) async fn turn(server: &Server) -> Event {
    let session = server.client().session("s");
    let command = Command::new(CommandKind::Message(Content::Text("hello".to_owned()))).expect("a key can be made");
    let accepted = session.command(&command).await.expect("the session is free");
    let mut events = session.events(Follow { after: accepted.cursor, ..Follow::default() });
    loop {
        match events.next().await.expect("the stream goes on").expect("the stream goes on") {
            Update::Event(event) if event.ends_turn() => return event,
            Update::Event(_) | Update::Delta(_) | Update::Interrupted { .. } => {}
        }
    }
}

/// A turn whose record is refused fails at once, also when what belongs to an ordinary end is refused; the next one is
/// as if nothing had been.
#[tokio::test]
async fn a_turn_whose_record_is_refused_for_good_fails() {
    for database in database::each("refusals").await {
        for harness in ["in-process", "json"] {
            let home = tempfile::tempdir().expect("a folder can be made");
            let setup = database.setup(Setup::new(home.path())).with("NYLORUN_HARNESS", harness);
            let server = setup.start();
            drill::prepare(&server).await.expect("it can be prepared");
            let client = server.client();
            client.open_session("s", &OpenSession::new(drill::AGENT, "me")).await.expect("it can be opened");
            let db = open(&database, home.path()).await;
            for (table, like) in [("events", "type = 'message.assistant'"), ("model_usage", "id <> ''")] {
                refuse(&db, table, like).await;
                let failed = turn(&server).await;
                assert_eq!(failed.kind, "turn.failed", "{database:?} {harness} {table}: {}", failed.text);
                let error = &failed.payload["error"];
                assert_eq!(error["code"], "internal", "{}", failed.text);
                let message = error["message"].as_str().expect("it says why");
                assert!(message.contains("the database refuses what this turn records"), "{message}");
                assert!(!message.contains("INSERT"), "{message}");
                let view = client.session("s").view().await.expect("it is there");
                assert_eq!((view.status.as_str(), view.active_turn_id), ("failed", None));
                take_again(&db, table).await;
                assert_eq!(turn(&server).await.kind, "turn.completed", "{database:?} {harness} {table}");
            }
            db.close().await;
            assert!(server.stop().success());
            assert!(setup.log().contains("the database refuses what a turn records"), "{}", setup.log());
            if let Database::Postgres(_) = database {
                break;
            }
        }
    }
}

/// What waits for a turn that fails so begins at once, and not when the sweep finds it after half a minute.
#[tokio::test]
async fn a_message_that_waits_begins_its_turn_when_the_one_before_is_refused() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    let session = server.client().session("s");
    let slow = json!([{"delayMs": 2_000, "text": "never recorded"}]).to_string();
    drill::begin(&server.client(), "s", &slow).await.expect("it can begin");
    let db = open(&Database::Sqlite, home.path()).await;
    refuse(&db, "events", "type = 'message.assistant'").await;
    let body =
        json!({"requestId": "r", "idempotencyKey": "k", "type": "message", "content": "next", "whenBusy": "queue"});
    let bearer = format!("Bearer {}", server.key_text("applicationKey"));
    let headers = [("Nylorun-Protocol", "10"), ("Authorization", &bearer), ("Content-Type", "application/json")];
    let body = body.to_string();
    let answer = send(&server.url, "POST", "/v1/sessions/s/commands", &headers, Some(body.as_bytes()));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let both = async {
        let mut events = session.events(Follow::default());
        let mut failed = 0;
        while failed < 2 {
            if let Update::Event(event) = events.next().await.expect("it goes on").expect("it goes on") {
                failed += usize::from(event.kind == "turn.failed");
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(15), both).await.expect("nobody waits for the sweep");
    db.close().await;
    assert!(server.stop().success());
}

/// Sending it again does not help, so nobody is told to.
#[tokio::test]
async fn what_the_database_refuses_for_good_is_an_internal_error() {
    for database in database::each("refused_writes").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = database.setup(Setup::new(home.path())).start();
        drill::prepare(&server).await.expect("it can be prepared");
        let db = open(&database, home.path()).await;
        let application = format!("Bearer {}", server.key_text("applicationKey"));
        let management = format!("Bearer {}", server.key_text("managementKey"));
        let open_session = json!({"requestId": "r", "agentId": drill::AGENT, "ownerUserId": "me"});
        let model = json!({
            "requestId": "r",
            "idempotencyKey": "k",
            "provider": "custom",
            "model": "m",
            "baseUrl": "https://models.example/v1",
            "auth": {"type": "api_key", "key": "a key"},
        });
        let writes = [
            ("sessions", "id", "/v1/sessions/s", &application, open_session),
            ("settings", "key", "/v1/tenant/retention", &management, json!({"sessions": "30d"})),
            ("model_providers", "provider", "/v1/tenant/model", &management, model),
        ];
        for (table, column, target, bearer, body) in writes {
            let headers =
                [("Nylorun-Protocol", "10"), ("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
            let put = || send(&server.url, "PUT", target, &headers, Some(body.to_string().as_bytes()));
            refuse(&db, table, &format!("{column} <> ''")).await;
            let Answer { status, body: refused } = put();
            let refused: Value = serde_json::from_str(&refused).expect("it is JSON");
            assert_eq!((status, &refused["code"]), (500, &json!("internal_error")), "{database:?} {table}: {refused}");
            assert_eq!(refused["message"], "Internal error", "no detail is told");
            take_again(&db, table).await;
            assert_eq!(put().status, 200, "{database:?} {table}: {}", put().body);
        }
        db.close().await;
        assert!(server.stop().success());
    }
}

fn ready(server: &Server) -> (u16, Value) {
    let Answer { status, body } = send(&server.url, "GET", "/ready", &[], None);
    let body: Value = serde_json::from_str(&body).expect("it is JSON");
    (status, body["checks"]["database"].clone())
}

/// The longest file that a process may write, in bytes; `None` for as long as before.
fn limit_files(server: &Server, bytes: Option<u64>) {
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw);
    let Rlimit { current, maximum } = getrlimit(Resource::Fsize);
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes.or(current), maximum }).expect("it is our process");
}

#[tokio::test]
async fn a_server_whose_disk_takes_nothing_is_not_ready_until_it_does() {
    let home = tempfile::tempdir().expect("a folder can be made");
    // A write over the limit fails then, instead of ending the process.
    let server = Setup::new(home.path()).after("trap '' XFSZ").start();
    drill::prepare(&server).await.expect("it can be prepared");
    let client = server.client();
    client.open_session("s", &OpenSession::new(drill::AGENT, "me")).await.expect("it can be opened");
    assert_eq!(ready(&server), (200, Value::Bool(true)));

    limit_files(&server, Some(0));
    let command = Command::new(CommandKind::Message(Content::Text("hello".to_owned()))).expect("a key can be made");
    let refused = client.session("s").command(&command).await.expect_err("it cannot be kept");
    assert_eq!(refused.refusal().map(|refusal| refusal.status), Some(503), "{refused}");
    assert_eq!(ready(&server), (503, Value::Bool(false)));
    assert_eq!(client.session("s").view().await.expect("it can be read").status.as_str(), "idle");

    limit_files(&server, None);
    assert_eq!(ready(&server), (200, Value::Bool(true)), "nothing but the question had to happen");
    assert_eq!(turn(&server).await.kind, "turn.completed");
    assert!(server.stop().success());
}
