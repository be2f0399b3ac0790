//! The process is ended at every durable step, before it is applied and after it was: the final record is the same.

use std::path::Path;
use std::time::Duration;

use nylorun_client::Error;
use nylorun_store::db::DatabaseUrl;

use crate::database::{Database, postgres};
use crate::drill::{self, Progress, Record};
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
    until_ended(&server, home.path(), "calm").await.expect("it is undisturbed");
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

async fn scenario(server: &Server, home: &Path, id: &str) -> Result<(), Error> {
    drill::prepare(server).await?;
    drill::begin(&server.client(), id, &drill::script(0)).await?;
    until_ended(server, home, id).await
}

async fn until_ended(server: &Server, home: &Path, id: &str) -> Result<(), Error> {
    let client = server.client();
    while drill::look(&client, home, id).await? == Progress::Working {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Every event of the record, internal ones included: numbered from 0 without a gap.
async fn check_numbers(database: &Database, home: &Path, id: &str) {
    let url: DatabaseUrl = match database {
        Database::Sqlite => DatabaseUrl::Sqlite(home.join("tenant/nylorun.db")),
        Database::Postgres(url) => url.parse().expect("the URL was used before"),
    };
    let db = nylorun_store::Db::open(&url, &Default::default()).await.expect("the server is gone");
    let rows = db.query("SELECT seq FROM events WHERE session_id = $1 ORDER BY seq", vec![id.into()]).await;
    let numbers: Vec<i64> =
        rows.expect("the record is there").iter().map(|row| row.int(0).expect("a number")).collect();
    let wanted = 0..i64::try_from(numbers.len()).expect("a record is not that long");
    assert_eq!(numbers, wanted.collect::<Vec<_>>());
    db.close().await;
}
