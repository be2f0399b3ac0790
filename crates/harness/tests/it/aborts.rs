//! Aborts of each kind (engine b.4).

use nylorun_ports::abort::AbortKind;
use nylorun_ports::run::{CoreError, RunEnd};

use crate::fake_gates::{Script, aborted};
use crate::support::{World, says, start, wants};

const MODEL: &str = "-> model";

/// A run whose model waits.
async fn at_the_model(script: Script) -> World {
    let mut world = World::new(vec![script]);
    world.begin(start(Vec::new()));
    world.model.seen.wait_for("called").await;
    world
}

/// A run whose tools are held, as `name input` each.
async fn at_the_tools(calls: &[&str]) -> World {
    let mut world = World::new(vec![wants(calls), says("Done")]);
    world.begin(start(Vec::new()));
    for call in calls {
        world.workspaces.seen.wait_for(call).await;
    }
    world
}

#[tokio::test]
async fn a_cancel_stops_at_once_and_reports_nothing() {
    for (kind, error) in
        [(AbortKind::Cancel, CoreError::TurnCancelled), (AbortKind::OwnershipLost, CoreError::OwnershipLost)]
    {
        let mut world = at_the_tools(&["bash \"held\"", "read \"held\"", "write \"deaf\""]).await;
        world.abort.abort(kind);
        assert_eq!(world.end().await, RunEnd::Released(error.clone()));
        world.workspaces.seen.wait_for(&aborted("bash", kind)).await;
        world.workspaces.seen.wait_for(&aborted("read", kind)).await;
        world.workspaces.release("write");
        assert_eq!(world.core.lines(), [MODEL, "model answered -> bash + read + write"]);

        let mut world = at_the_model(Script::Hangs).await;
        world.abort.abort(kind);
        assert_eq!(world.end().await, RunEnd::Released(error));
        world.model.seen.wait_for("dropped").await;
        assert_eq!(world.core.lines(), [MODEL]);
    }
}

#[tokio::test]
async fn a_shutdown_drops_model_calls() {
    let mut world = at_the_model(Script::Waits).await;
    world.abort.abort(AbortKind::Shutdown);
    assert_eq!(world.end().await, RunEnd::Stopped);
    world.model.seen.wait_for("Shutdown").await;
    assert_eq!(world.core.lines(), [MODEL]);
    assert!(world.core.deltas().is_empty());
}

#[tokio::test]
async fn a_shutdown_drops_reads_and_waits_for_the_rest() {
    let mut world = at_the_tools(&["bash \"held\"", "read \"held\"", "write \"held\""]).await;
    world.abort.abort(AbortKind::Shutdown);
    world.workspaces.seen.wait_for(&aborted("read", AbortKind::Shutdown)).await;
    world.workspaces.release("bash");
    world.core.committed(3).await;
    world.workspaces.release("write");
    assert_eq!(world.end().await, RunEnd::Stopped);
    let expected = [
        MODEL,
        "model answered -> bash + read + write",
        "bash \"bash was released\" -> nothing",
        "write \"write was released\" -> nothing",
    ];
    assert_eq!(world.core.lines(), expected);
}

#[tokio::test]
async fn after_a_shutdown_nothing_new_begins() {
    let mut world = at_the_tools(&["bash \"held\""]).await;
    world.abort.abort(AbortKind::Shutdown);
    world.workspaces.release("bash");
    assert_eq!(world.end().await, RunEnd::Stopped);
    let expected = [MODEL, "model answered -> bash", "bash \"bash was released\" -> nothing"];
    assert_eq!(world.core.lines(), expected);
    assert_eq!(world.model.calls.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn the_end_of_a_shutdowns_grace_kills_commands_and_they_are_uncertain() {
    let mut world = at_the_tools(&["bash \"held\"", "read \"held\""]).await;
    world.abort.abort(AbortKind::Shutdown);
    world.workspaces.seen.wait_for(&aborted("read", AbortKind::Shutdown)).await;
    world.abort.abort(AbortKind::Deadline);
    assert_eq!(world.end().await, RunEnd::Stopped);
    world.workspaces.seen.wait_for(&aborted("bash", AbortKind::Deadline)).await;
    let expected = [MODEL, "model answered -> bash + read", "bash lost (bash was stopped) -> nothing"];
    assert_eq!(world.core.lines(), expected);
}

#[tokio::test]
async fn a_cancel_ends_the_wait_of_a_shutdown() {
    let mut world = at_the_tools(&["bash \"held\"", "read \"held\""]).await;
    world.abort.abort(AbortKind::Shutdown);
    world.workspaces.seen.wait_for(&aborted("read", AbortKind::Shutdown)).await;
    world.abort.abort(AbortKind::Cancel);
    assert_eq!(world.end().await, RunEnd::Released(CoreError::TurnCancelled));
    world.workspaces.seen.wait_for(&aborted("bash", AbortKind::Cancel)).await;
    assert_eq!(world.core.lines(), [MODEL, "model answered -> bash + read"]);
}

#[tokio::test]
async fn a_turn_out_of_time_settles() {
    let mut world = at_the_model(Script::Waits).await;
    world.abort.abort(AbortKind::Deadline);
    assert_eq!(world.end().await, RunEnd::Settled);
    assert_eq!(world.core.lines(), [MODEL, "-> failed turn.deadline"]);

    let mut world = at_the_tools(&["read \"held\"", "bash \"held\""]).await;
    world.abort.abort(AbortKind::Deadline);
    assert_eq!(world.end().await, RunEnd::Settled);
    let expected = [MODEL, "model answered -> read + bash", "bash lost (bash was stopped) -> uncertain"];
    assert_eq!(world.core.lines(), expected);
}

#[tokio::test]
async fn a_run_told_before_it_began_does_nothing() {
    let mut world = World::new(Vec::new());
    world.begin(start(Vec::new()));
    world.abort.abort(AbortKind::Shutdown);
    assert_eq!(world.end().await, RunEnd::Stopped);
    assert!(world.core.lines().is_empty());
}

#[tokio::test]
async fn an_output_in_hand_is_settled_at_a_shutdown_and_thrown_away_at_a_cancel() {
    let (first, _) = World::play(vec![says("Done")]).await;
    for (kind, end, lines) in [
        (AbortKind::Shutdown, RunEnd::Settled, vec!["-> completed \"Done\""]),
        (AbortKind::Cancel, RunEnd::Released(CoreError::TurnCancelled), vec![]),
        (AbortKind::OwnershipLost, RunEnd::Released(CoreError::OwnershipLost), vec![]),
    ] {
        let mut world = World::new(Vec::new());
        world.begin(start(first.core.recorded()));
        world.abort.abort(kind);
        assert_eq!(world.end().await, end);
        assert_eq!(world.core.lines(), lines);
    }
}

#[tokio::test]
async fn a_shutdown_waits_for_no_read_that_is_slow_to_end() {
    let mut world = at_the_tools(&["read \"deaf\"", "bash \"held\""]).await;
    world.abort.abort(AbortKind::Shutdown);
    world.workspaces.release("bash");
    assert_eq!(world.end().await, RunEnd::Stopped);
    let expected = [MODEL, "model answered -> read + bash", "bash \"bash was released\" -> nothing"];
    assert_eq!(world.core.lines(), expected);
}

#[tokio::test]
async fn a_run_that_is_dropped_ends_its_commands() {
    let mut world = at_the_tools(&["bash \"held\"", "read \"held\""]).await;
    world.abandon();
    world.workspaces.seen.wait_for(&aborted("bash", AbortKind::Deadline)).await;
    world.workspaces.seen.wait_for(&aborted("read", AbortKind::Deadline)).await;
    assert_eq!(world.core.lines().len(), 2);
}
