//! The shipped binary is killed at random moments, again and again, until all its sessions have ended.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nylorun_client::{Client, Error};

use crate::database::{Database, postgres};
use crate::drill::{self, Left, Record};
use crate::server::Setup;

const SESSIONS_AT_ONCE: usize = 4;
const SEED: u64 = 0x006e_796c_6f72_756e;

/// How often the server is killed: 200 times in CI and in `make drill`, `NYLORUN_DRILL_KILLS` otherwise.
fn kills() -> u32 {
    std::env::var("NYLORUN_DRILL_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_survive_kills_at_random_moments_on_sqlite() {
    survive(Database::Sqlite, "in-process", kills()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_over_frames_survive_kills_at_random_moments() {
    survive(Database::Sqlite, "json", kills().div_ceil(4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_survive_kills_at_random_moments_on_postgresql() {
    if let Some(database) = postgres("kills").await {
        survive(database, "in-process", kills()).await;
    }
}

async fn survive(database: Database, harness: &str, kills: u32) {
    let home = tempfile::tempdir().expect("a folder can be made");
    // One port for all lives of the server, so that clients find it again.
    let port = TcpListener::bind("127.0.0.1:0").expect("a port is free").local_addr().expect("it is bound").port();
    let setup = Setup { listen: format!("127.0.0.1:{port}"), ..database.setup(Setup::new(home.path())) };
    let setup = setup.with("NYLORUN_YIELD_STEPS", "2").with("NYLORUN_HARNESS", harness);

    let mut server = setup.start();
    drill::prepare(&server).await.expect("nothing disturbs it yet");
    let client = server.client();
    let undisturbed = run(&client, home.path(), "calm").await;

    let more = Arc::new(AtomicBool::new(true));
    let users: Vec<_> = (0..SESSIONS_AT_ONCE)
        .map(|user| tokio::spawn(use_it(client.clone(), home.path().to_owned(), user, Arc::clone(&more))))
        .collect();
    let mut random = SEED;
    let mut slowest = Duration::ZERO;
    for _ in 0..kills {
        // The moment itself is random: there is no condition to wait for.
        let moment = Duration::from_millis(20 + next(&mut random) % 180);
        assert!(tokio::time::timeout(moment, std::future::pending::<()>()).await.is_err());
        server.kill();
        server = setup.start();
        slowest = slowest.max(server.started_in);
    }
    more.store(false, Ordering::Relaxed);
    let mut ended = 0;
    for user in users {
        for id in user.await.expect("its user did not fail") {
            drill::check(&client, home.path(), &id, &undisturbed).await;
            ended += 1;
        }
    }
    eprintln!("{kills} kills, {ended} sessions, the slowest start took {slowest:?}");
    assert!(ended >= SESSIONS_AT_ONCE, "no session ended");
    assert!(server.stop().success(), "a clean stop exits with 0");
}

async fn run(client: &Client, home: &Path, id: &str) -> Record {
    until_it_is_done(client, home, id).await;
    Record::of(&client.session(id).history(None, None).await.expect("nothing disturbs it yet").items)
}

/// One session after the other, each begun and looked after until it has ended, whatever happens to the server.
async fn use_it(client: Client, home: std::path::PathBuf, user: usize, more: Arc<AtomicBool>) -> Vec<String> {
    let mut ended = Vec::new();
    while more.load(Ordering::Relaxed) {
        let id = format!("user-{user}-{}", ended.len());
        until_it_is_done(&client, &home, &id).await;
        ended.push(id);
    }
    ended
}

async fn until_it_is_done(client: &Client, home: &Path, id: &str) {
    loop {
        match try_once(client, home, id).await {
            Ok(()) => return,
            Err(Left::Gone) => {}
            Err(Left::Refused(error)) => assert!(is_the_server_gone(&error), "session {id}: {error}"),
        }
        // The server is being started again: this gives the processor to it.
        tokio::task::yield_now().await;
    }
}

async fn try_once(client: &Client, home: &Path, id: &str) -> Result<(), Left> {
    drill::begin(client, id, &drill::script(15)).await?;
    drill::see_to_its_end(client, home, id).await
}

/// A dead server refuses connections or cuts them off; anything else is a fault.
fn is_the_server_gone(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } => true,
        Error::Refused(refusal) => refusal.status == 409 && refusal.message.contains("not uncertain"),
        other => other.may_pass(),
    }
}

/// A small generator: the moments are the same in every run.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
