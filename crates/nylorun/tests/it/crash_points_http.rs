//! The process is ended at every durable step of a turn with HTTP tools, the gate's crossings included: each call
//! reaches its endpoint once, and the final record is the same.

use nylorun_client::Event;

use crate::database::{Database, postgres};
use crate::drill::{Left, Record};
use crate::orders::{Orders, begin, order};
use crate::server::{Server, Setup};

/// More durable steps than the scenario has.
const MOST_STEPS: u32 = 200;

#[tokio::test]
async fn every_durable_step_of_http_tools_survives_a_crash_on_sqlite() {
    every_step(&Database::Sqlite).await;
}

#[tokio::test]
async fn every_durable_step_of_http_tools_survives_a_crash_on_postgresql() {
    if let Some(database) = postgres("crash_points_http").await {
        every_step(&database).await;
    }
}

/// What one crash led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Crash {
    /// The server came through without reaching the crash point.
    survived: bool,
    /// Calls that the first process sent and the second one took up with the answer that the gate had recorded.
    reattached: usize,
    /// Calls of which nobody knew what became of them.
    uncertain: usize,
}

async fn every_step(database: &Database) {
    if !cfg!(feature = "crash-points") {
        eprintln!("skipped: this build has no crash points (make drill builds one that has)");
        return;
    }
    let (undisturbed, _) = play(database, "calm", None).await;
    let (mut reattached, mut uncertain) = (0, 0);
    for step in 1..MOST_STEPS {
        let mut survived = true;
        for side in ["before", "after"] {
            let point = format!("{step}:{side}");
            let (record, crash) = play(database, &format!("crash-{step}-{side}"), Some(&point)).await;
            assert_eq!(record, undisturbed, "crash {point}");
            reattached += crash.reattached;
            uncertain += crash.uncertain;
            survived &= crash.survived;
        }
        if survived {
            eprintln!("{} durable steps, {reattached} calls re-attached, {uncertain} uncertain", step - 1);
            assert!(reattached > 0 && uncertain > 0, "{reattached} re-attached, {uncertain} uncertain");
            return;
        }
    }
    panic!("the scenario has more than {MOST_STEPS} durable steps");
}

/// Runs the scenario, with a crash at this point and another process after it.
async fn play(database: &Database, id: &str, point: Option<&str>) -> (Record, Crash) {
    let home = tempfile::tempdir().expect("a folder can be made");
    let orders = Orders::open().await;
    let setup = database.setup(Setup::new(home.path()));
    let mut crash = Crash { survived: true, ..Crash::default() };
    if let Some(point) = point {
        crash.survived = match setup.clone().with("NYLORUN_CRASH_POINT", point).try_start() {
            None => false,
            Some(server) => scenario(&orders, &server, id).await.is_ok(),
        };
    }
    let sent_before = orders.seen();
    let server = setup.start();
    scenario(&orders, &server, id).await.expect("nothing crashes any more");
    let events = server.client().session(id).history(None, None).await.expect("it has a history").items;
    assert!(server.stop().success(), "a clean stop exits with 0");

    let seen = orders.seen();
    assert_eq!(seen.values().map(|seen| seen.times).collect::<Vec<_>>(), [1, 1, 1], "{id}: {seen:?}");
    let of_kind = |kind: &'static str| events.iter().filter(move |event| event.kind == kind);
    let uncertain: Vec<&str> =
        of_kind("effect.uncertain").filter_map(|event| event.payload["effectId"].as_str()).collect();
    let was_reattached = |event: &&Event| {
        let call = event.payload["invocationId"].as_str().expect("a result names its call");
        let is_its = |key: &str| key.ends_with(call);
        let by_second = event.envelope["epoch"].as_i64() > Some(1);
        by_second && sent_before.keys().any(|key| is_its(key)) && !uncertain.iter().any(|key| is_its(key))
    };
    crash.reattached = of_kind("tool.completed").filter(was_reattached).count();
    crash.uncertain = uncertain.len();
    (Record::of(&events), crash)
}

async fn scenario(orders: &Orders, server: &Server, id: &str) -> Result<(), Left> {
    orders.prepare(server).await?;
    let script = serde_json::json!([
        {"tools": [order(1)]},
        {"tools": [order(2), order(3)]},
        {"text": "Ordered."},
    ]);
    begin(&server.client(), id, &script).await?;
    orders.see_to_its_end(&server.client(), id).await
}
