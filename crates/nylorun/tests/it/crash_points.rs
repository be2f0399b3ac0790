//! The process is ended at every durable step, before it is applied and after it was: the final record is the same.

use std::path::Path;
use std::sync::Arc;

use nylorun_domain::id::{SessionId, TenantId};
use nylorun_domain::time::Millis;
use nylorun_store::db::DatabaseUrl;
use nylorun_store::{NewTenant, Store};

use crate::database::{Database, postgres};
use crate::direct_calls;
use crate::drill::{self, Left, Record};
use crate::server::{Server, Setup};

/// More durable steps than the scenario has: a loop that goes further has lost its end.
const MOST_STEPS: u32 = 200;

#[tokio::test]
async fn every_durable_step_survives_a_crash_on_sqlite() {
    every_step(|_| Database::Sqlite).await;
}

#[tokio::test]
async fn every_durable_step_survives_a_crash_on_postgresql() {
    if let Some(database) = postgres("crash_points").await {
        every_step(move |_| database.clone()).await;
    }
}

async fn every_step(database: impl Fn(u32) -> Database) {
    if !cfg!(feature = "crash-points") {
        eprintln!("skipped: this build has no crash points (make drill builds one that has)");
        return;
    }
    let undisturbed = undisturbed(&database(0)).await;
    for step in 1..MOST_STEPS {
        // A write that fails its precondition has no "after".
        let before = crash_at(step, "before", &database(step), &undisturbed).await;
        let after = crash_at(step, "after", &database(step), &undisturbed).await;
        if before && after {
            eprintln!("{} durable steps, each with a crash before and after it", step - 1);
            assert!(step > 25, "three turns with a pause and a yield have more durable steps than {step}");
            return;
        }
    }
    panic!("the scenario has more than {MOST_STEPS} durable steps");
}

async fn undisturbed(database: &Database) -> Record {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = database.setup(Setup::new(home.path())).with("NYLORUN_YIELD_STEPS", "2").start();
    drill::prepare(&server).await.expect("it is undisturbed");
    drill::begin(&server.client(), "calm", &drill::script(0)).await.expect("it is undisturbed");
    drill::see_to_its_end(&server.client(), home.path(), "calm").await.expect("it is undisturbed");
    let events = server.client().session("calm").history(None, None).await.expect("it is undisturbed").items;
    assert!(server.stop().success(), "a clean stop exits with 0");
    Record::of(&events)
}

/// Answers whether the server came through without reaching the crash point.
async fn crash_at(step: u32, side: &str, database: &Database, undisturbed: &Record) -> bool {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = database.setup(Setup::new(home.path())).with("NYLORUN_YIELD_STEPS", "2");
    let id = format!("crash-{step}-{side}");
    let crashing = setup.clone().with("NYLORUN_CRASH_POINT", &format!("{step}:{side}"));
    let survived = match crashing.try_start() {
        None => false,
        Some(server) => scenario(&server, home.path(), &id).await.is_ok(),
    };
    let server = setup.start();
    scenario(&server, home.path(), &id).await.expect("nothing crashes any more");
    drill::check(&server.client(), home.path(), &id, undisturbed).await;
    assert!(server.stop().success(), "a clean stop exits with 0");
    check_numbers(database, home.path(), &id).await;
    survived
}

async fn scenario(server: &Server, home: &Path, id: &str) -> Result<(), Left> {
    drill::prepare(server).await?;
    drill::begin(&server.client(), id, &drill::script(0)).await?;
    drill::see_to_its_end(&server.client(), home, id).await
}

/// Every event of the record, internal ones included: numbered from 0 without a gap.
async fn check_numbers(database: &Database, home: &Path, id: &str) {
    let store = open_store(database, home).await;
    let events = store.event_range(&SessionId::from_trusted(id), -1, 1_000).await.expect("the record is there");
    let numbers: Vec<i64> = events.iter().map(|event| event.seq).collect();
    let wanted = 0..i64::try_from(numbers.len()).expect("a record is not that long");
    assert_eq!(numbers, wanted.collect::<Vec<_>>());
    store.db().close().await;
}

/// The store of a server that is gone.
async fn open_store(database: &Database, home: &Path) -> Store {
    let url: DatabaseUrl = match database {
        Database::Sqlite => DatabaseUrl::Sqlite(home.join("tenant/nylorun.db")),
        Database::Postgres(url) => url.parse().expect("the URL was used before"),
    };
    let db = Arc::new(nylorun_store::Db::open(&url, &Default::default()).await.expect("the server is gone"));
    let fresh = NewTenant { id: TenantId::from_trusted("tn_"), name: String::new(), created_at: Millis(0) };
    Store::open(db, &fresh).await.expect("the tenant is there")
}

#[tokio::test]
async fn a_direct_call_ends_once_whenever_the_server_dies_on_sqlite() {
    every_step_of_a_direct_call(&Database::Sqlite).await;
}

#[tokio::test]
async fn a_direct_call_ends_once_whenever_the_server_dies_on_postgresql() {
    if let Some(database) = postgres("crash_direct").await {
        every_step_of_a_direct_call(&database).await;
    }
}

async fn every_step_of_a_direct_call(database: &Database) {
    if !cfg!(feature = "crash-points") {
        eprintln!("skipped: this build has no crash points (make drill builds one that has)");
        return;
    }
    for step in 1..MOST_STEPS {
        let before = crash_in_direct_call(step, "before", database).await;
        let after = crash_in_direct_call(step, "after", database).await;
        if before && after {
            assert!(step > 5, "a direct call in a new session has more durable steps than {step}");
            return;
        }
    }
    panic!("the scenario has more than {MOST_STEPS} durable steps");
}

/// Answers whether the server came through without reaching the crash point.
async fn crash_in_direct_call(step: u32, side: &str, database: &Database) -> bool {
    let home = tempfile::tempdir().expect("a folder can be made");
    let setup = database.setup(Setup::new(home.path()));
    let id = format!("direct-{step}-{side}");
    let crashing = setup.clone().with("NYLORUN_CRASH_POINT", &format!("{step}:{side}"));
    let (survived, (open, told)) = match crashing.try_start() {
        // It did not live to open a session.
        None => (false, (0, 0)),
        Some(server) => {
            let survived = direct_calls::scenario(&server, &id).await.is_ok();
            drop(server);
            (survived, calls(database, home.path(), &id).await)
        }
    };
    direct_calls::check(home.path(), &id, open, told);
    assert!(!survived || told == 1, "session {id}: an answered call is in the record");

    let server = setup.start();
    if open + told > 0 {
        direct_calls::until_told(&server.client(), &id, open + told).await;
    }
    assert!(server.stop().success(), "a clean stop exits with 0");
    assert_eq!(calls(database, home.path(), &id).await, (0, open + told), "session {id}");
    survived
}

/// How many calls of this session have no end yet, and of how many the record tells.
async fn calls(database: &Database, home: &Path, id: &str) -> (usize, usize) {
    let store = open_store(database, home).await;
    let session = SessionId::from_trusted(id);
    let open = store.direct_call_list().await.expect("the calls are there");
    let events = store.event_range(&session, -1, 1_000).await.expect("the record is there");
    store.db().close().await;
    let told = events.iter().filter(|event| &*event.kind == "environment.exec").count();
    (open.iter().filter(|call| call.session_id == session).count(), told)
}
