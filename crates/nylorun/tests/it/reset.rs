//! Resets through the real binary: what goes, what stays, and what a kill in the middle leaves.

use std::path::Path;

use nylorun_client::{
    ActiveWork, Client, Command, Effects, Environment, Follow, InlineEnvironment, OpenSession, ResetScope,
    SessionFilter, SessionStatus, Update,
};
use serde_json::json;

use crate::cli::{nylorun_with, ok};
use crate::database;
use crate::drill;
use crate::server::{Server, Setup};

async fn open(client: &Client, id: &str) {
    let environment = Some(Environment::Inline(InlineEnvironment::default()));
    let open = OpenSession { environment, ..OpenSession::new(drill::AGENT, "ann") };
    client.open_session(id, &open).await.expect("it can be opened");
}

/// Runs a command in the session's workspace by a turn; gives what it printed.
async fn bash(client: &Client, id: &str, command: &str) -> String {
    let script = json!([{"tools": [{"name": "bash", "input": {"command": command}}]}, {"text": "Done."}]);
    let session = client.session(id);
    let message = Command::text(script.to_string()).expect("a key can be made");
    let accepted = session.command(&message).await.expect("it is free");
    let mut events = session.events(Follow { after: accepted.cursor, ..Follow::default() });
    let mut printed = String::new();
    loop {
        let update = events.next().await.expect("the stream goes on").expect("the stream goes on");
        let Update::Event(event) = update else { continue };
        if event.kind == "tool.completed" {
            printed = event.payload["output"]["stdout"].as_str().unwrap_or_default().to_owned();
        }
        if event.ends_turn() {
            return printed;
        }
    }
}

/// Folders of workspaces with files in them.
fn workspaces(home: &Path) -> usize {
    let folders = std::fs::read_dir(home.join("tenant/workspaces")).expect("it is there");
    folders.filter(|folder| folder.as_ref().is_ok_and(|folder| folder.path().join("workspace").exists())).count()
}

async fn session_ids(server: &Server) -> Vec<String> {
    let page = server
        .client()
        .sessions(&SessionFilter {
            limit: 200,
            cursor: None,
            agent_id: None,
            status: None,
            owner_user_id: None,
            effects: Effects::Any,
        })
        .await;
    page.expect("it answers").sessions.into_iter().map(|session| session.id).collect()
}

#[tokio::test]
async fn sessions_go_with_their_files_and_begin_again_at_nothing() {
    for database in database::each("nylorun_reset").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let server = setup.start();
        drill::prepare(&server).await.expect("it can be prepared");
        let client = server.client();
        open(&client, "s").await;
        assert_eq!(bash(&client, "s", "echo mine > file; cat file").await, "mine\n");
        assert_eq!(workspaces(home.path()), 1);
        let mut followed = client.session("s").events(Follow::default());
        let first = followed.next().await.expect("it begins").expect("it begins");
        assert!(matches!(first, Update::Event(_)));

        server.tenant().reset(ResetScope::Sessions, ActiveWork::Drain).await.expect("nothing runs");
        // A stream that ended is followed again: there is no such session.
        while let Some(Ok(_)) = followed.next().await {}
        assert_eq!((session_ids(&server).await, workspaces(home.path())), (vec![], 0));
        let status = server.tenant().status().await.expect("it answers");
        assert_eq!((status.counts.sessions, status.model.provider.as_deref()), (0, Some("fixture")));

        open(&client, "s").await;
        assert_eq!(bash(&client, "s", "ls").await, "");
        let events = client.session("s").history(None, None).await.expect("it has one").items;
        assert_eq!((events[0].seq(), events[0].kind.as_str()), (Some(0), "command.message"));
        assert_eq!(events.iter().filter(|event| event.kind == "turn.completed").count(), 1);
        // The model is told nothing of the session that was.
        assert!(events.iter().all(|event| !event.text.contains("mine")));
        assert!(server.stop().success());
    }
}

#[tokio::test]
async fn workspaces_go_alone_and_turns_that_run_are_cancelled() {
    for database in database::each("nylorun_reset_sandboxes").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let server = setup.start();
        drill::prepare(&server).await.expect("it can be prepared");
        let client = server.client();
        open(&client, "s").await;
        bash(&client, "s", "echo mine > file").await;
        let script = json!([{"tools": [{"name": "bash", "input": {"command": "echo now; sleep 60"}}]}]);
        let session = client.session("s");
        let accepted = session.command(&Command::text(script.to_string()).expect("a key can be made")).await;
        let mut events = session.events(Follow { after: accepted.expect("it is free").cursor, ..Follow::default() });
        // Until the command is asked for.
        while !matches!(events.next().await, Some(Ok(Update::Event(event))) if event.kind == "message.assistant") {}

        server.tenant().reset(ResetScope::Sandboxes, ActiveWork::Cancel).await.expect("work is cancelled");
        let view = client.session("s").view().await.expect("it is there");
        assert_eq!((view.status, view.active_turn_id), (SessionStatus::Cancelled, None));
        assert_eq!(workspaces(home.path()), 0);
        assert_eq!(bash(&client, "s", "ls").await, "");
        let events = client.session("s").history(None, None).await.expect("it has one").items;
        let cancelled = events.iter().find(|event| event.kind == "turn.cancelled").expect("it was cancelled");
        assert_eq!(cancelled.payload["reason"], "the tenant is being reset");
        assert!(server.stop().success());
    }
}

#[tokio::test]
async fn a_reset_that_was_killed_leaves_whole_sessions_and_is_repeated() {
    const SESSIONS: usize = 150;
    for database in database::each("nylorun_reset_killed").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let setup = database.setup(Setup::new(home.path()));
        let mut server = setup.start();
        drill::prepare(&server).await.expect("it can be prepared");
        let client = server.client();
        for number in 0..SESSIONS {
            let id = format!("s{number:03}");
            open(&client, &id).await;
            client.session(&id).command(&Command::cancel().expect("a key can be made")).await.expect("it is taken");
        }
        let tenant = server.tenant();
        let resetting = tokio::spawn(async move { tenant.reset(ResetScope::All, ActiveWork::Drain).await });
        while session_ids(&server).await.len() == SESSIONS {}
        server.kill();
        // It may have been done just before.
        let _ = resetting.await.expect("it does not panic");

        let server = setup.start();
        for id in session_ids(&server).await {
            let events = server.client().session(&id).history(None, None).await.expect("it is whole").items;
            assert_eq!(events.iter().map(|event| event.seq()).collect::<Vec<_>>(), [Some(0)], "{id}");
        }
        for _ in 0..2 {
            server.tenant().reset(ResetScope::All, ActiveWork::Drain).await.expect("it is repeated");
            assert_eq!((session_ids(&server).await, workspaces(home.path())), (vec![], 0));
        }
        server
            .client()
            .agents()
            .await
            .expect("they answer")
            .iter()
            .find(|agent| agent.agent_id == drill::AGENT)
            .expect("the agent stays");
        assert!(server.stop().success());
    }
}

#[tokio::test]
async fn the_command_line_asks_before_it_removes() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    open(&server.client(), "s").await;
    let reset = |args: &[&str]| nylorun_with(home.path(), &[&["reset"], args].concat(), &[]);
    let refused = reset(&["--sessions"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("1 session with their records") && told.contains("--yes"), "{told}");
    for wrong in [&["--yes"][..], &["--yes", "--all", "--sessions"]] {
        assert_eq!(reset(wrong).status.code(), Some(2));
    }
    assert_eq!(session_ids(&server).await, ["s"]);
    assert_eq!(ok(&reset(&["--sandboxes", "--yes"])), "removed 0 workspaces with their files\n");
    assert_eq!(session_ids(&server).await, ["s"]);
    assert!(ok(&reset(&["--all", "--cancel", "--yes"])).starts_with("removed 1 session"));
    assert_eq!(session_ids(&server).await, Vec::<String>::new());
    assert!(server.stop().success());
}
