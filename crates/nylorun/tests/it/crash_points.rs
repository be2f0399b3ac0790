//! The process is ended at every durable step, before it is applied and after it was: the final record is the same.

use std::path::Path;
use std::sync::Arc;

use nylorun_domain::id::{SessionId, TenantId};
use nylorun_domain::time::Millis;
use nylorun_store::NewTenant;
use nylorun_store::db::DatabaseUrl;

use crate::database::{Database, postgres};
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
            assert!(step > 15, "a turn of four model steps has more durable steps than {step}");
            return;
        }
    }
    panic!("the scenario has more than {MOST_STEPS} durable steps");
}

async fn undisturbed(database: &Database) -> Record {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = database.setup(Setup::new(home.path())).start();
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
    let setup = database.setup(Setup::new(home.path()));
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
    let url: DatabaseUrl = match database {
        Database::Sqlite => DatabaseUrl::Sqlite(home.join("tenant/nylorun.db")),
        Database::Postgres(url) => url.parse().expect("the URL was used before"),
    };
    let db = Arc::new(nylorun_store::Db::open(&url, &Default::default()).await.expect("the server is gone"));
    let fresh = NewTenant { id: TenantId::from_trusted("tn_"), name: String::new(), created_at: Millis(0) };
    let store = nylorun_store::Store::open(Arc::clone(&db), &fresh).await.expect("the tenant is there");
    let events = store.event_range(&SessionId::from_trusted(id), -1, 1_000).await.expect("the record is there");
    let numbers: Vec<i64> = events.iter().map(|event| event.seq).collect();
    let wanted = 0..i64::try_from(numbers.len()).expect("a record is not that long");
    assert_eq!(numbers, wanted.collect::<Vec<_>>());
    db.close().await;
}
