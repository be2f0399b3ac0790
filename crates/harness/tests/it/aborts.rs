//! Aborts of each kind (engine b.4).

use nylorun_ports::abort::AbortKind;
use nylorun_ports::run::{CoreError, RunEnd};

use crate::fake_gates::{Script, aborted};
use crate::support::{Way, World, both_ways, says, start, wants};

both_ways! {
    a_cancel_stops_at_once_and_reports_nothing
    a_shutdown_drops_model_calls
    a_shutdown_drops_reads_and_waits_for_the_rest
    after_a_shutdown_nothing_new_begins
    the_end_of_a_shutdowns_grace_kills_commands_and_they_are_uncertain
    a_cancel_ends_the_wait_of_a_shutdown
    a_turn_out_of_time_settles
    a_run_told_before_it_began_does_nothing
    an_output_in_hand_is_settled_at_a_shutdown_and_thrown_away_at_a_cancel
    a_shutdown_waits_for_no_read_that_is_slow_to_end
    a_run_that_is_dropped_ends_its_commands
}

const MODEL: &str = "-> model";

/// A run whose model waits.
async fn at_the_model(way: Way, script: Script) -> World {
    let mut world = World::new(way, vec![script]);
    world.begin(start(Vec::new()));
    world.model.seen.wait_for("called").await;
    world
}

/// A run whose tools are held, as `name input` each.
async fn at_the_tools(way: Way, calls: &[&str]) -> World {
    let mut world = World::new(way, vec![wants(calls), says("Done")]);
    world.begin(start(Vec::new()));
    for call in calls {
        world.workspaces.seen.wait_for(call).await;
    }
    world
}

async fn a_cancel_stops_at_once_and_reports_nothing(way: Way) {
    for (kind, error) in
        [(AbortKind::Cancel, CoreError::TurnCancelled), (AbortKind::OwnershipLost, CoreError::OwnershipLost)]
    {
        let mut world = at_the_tools(way, &["bash \"held\"", "read \"held\"", "write \"deaf\""]).await;
        world.abort.abort(kind);
        assert_eq!(world.end().await, RunEnd::Released(error.clone()));
        world.workspaces.seen.wait_for(&aborted("bash", kind)).await;
        world.workspaces.seen.wait_for(&aborted("read", kind)).await;
        world.workspaces.release("write");
        world.assert_lines(&[MODEL, "model answered -> bash + read + write"]);

        let mut world = at_the_model(way, Script::Hangs).await;
        world.abort.abort(kind);
        assert_eq!(world.end().await, RunEnd::Released(error));
        world.model.seen.wait_for("dropped").await;
        world.assert_lines(&[MODEL]);
    }
}

async fn a_shutdown_drops_model_calls(way: Way) {
    let mut world = at_the_model(way, Script::Waits).await;
    world.abort.abort(AbortKind::Shutdown);
    assert_eq!(world.end().await, RunEnd::Stopped);
    world.model.seen.wait_for("Shutdown").await;
    world.assert_lines(&[MODEL]);
    assert!(world.core.deltas().is_empty());
}

async fn a_shutdown_drops_reads_and_waits_for_the_rest(way: Way) {
    let mut world = at_the_tools(way, &["bash \"held\"", "read \"held\"", "write \"held\""]).await;
    world.abort.abort(AbortKind::Shutdown);
    world.workspaces.seen.wait_for(&aborted("read", AbortKind::Shutdown)).await;
    world.workspaces.release("bash");
    world.core.committed("bash \"bash was released\"").await;
    world.workspaces.release("write");
    assert_eq!(world.end().await, RunEnd::Stopped);
    let expected = [
        MODEL,
        "model answered -> bash + read + write",
        "bash \"bash was released\" -> nothing",
        "write \"write was released\" -> nothing",
    ];
    world.assert_lines(&expected);
}

async fn after_a_shutdown_nothing_new_begins(way: Way) {
    let mut world = at_the_tools(way, &["bash \"held\"", "read \"held\""]).await;
    world.abort.abort(AbortKind::Shutdown);
    world.workspaces.seen.wait_for(&aborted("read", AbortKind::Shutdown)).await;
    world.workspaces.release("bash");
    assert_eq!(world.end().await, RunEnd::Stopped);
    let expected = [MODEL, "model answered -> bash + read", "bash \"bash was released\" -> nothing"];
    world.assert_lines(&expected);
    assert_eq!(world.model.calls.lock().unwrap().len(), 1);
}

async fn the_end_of_a_shutdowns_grace_kills_commands_and_they_are_uncertain(way: Way) {
    let mut world = at_the_tools(way, &["bash \"held\"", "read \"held\""]).await;
    world.abort.abort(AbortKind::Shutdown);
    world.workspaces.seen.wait_for(&aborted("read", AbortKind::Shutdown)).await;
    world.abort.abort(AbortKind::Deadline);
    assert_eq!(world.end().await, RunEnd::Stopped);
    world.workspaces.seen.wait_for(&aborted("bash", AbortKind::Deadline)).await;
    let expected = [MODEL, "model answered -> bash + read", "bash lost (bash was stopped) -> nothing"];
    world.assert_lines(&expected);
}

async fn a_cancel_ends_the_wait_of_a_shutdown(way: Way) {
    let mut world = at_the_tools(way, &["bash \"held\"", "read \"held\""]).await;
    world.abort.abort(AbortKind::Shutdown);
    world.workspaces.seen.wait_for(&aborted("read", AbortKind::Shutdown)).await;
    world.abort.abort(AbortKind::Cancel);
    assert_eq!(world.end().await, RunEnd::Released(CoreError::TurnCancelled));
    world.workspaces.seen.wait_for(&aborted("bash", AbortKind::Cancel)).await;
    world.assert_lines(&[MODEL, "model answered -> bash + read"]);
}

async fn a_turn_out_of_time_settles(way: Way) {
    let mut world = at_the_model(way, Script::Waits).await;
    world.abort.abort(AbortKind::Deadline);
    assert_eq!(world.end().await, RunEnd::Settled);
    world.assert_lines(&[MODEL, "-> failed turn.deadline"]);

    let mut world = at_the_tools(way, &["read \"held\"", "bash \"held\""]).await;
    world.abort.abort(AbortKind::Deadline);
    assert_eq!(world.end().await, RunEnd::Settled);
    let expected = [MODEL, "model answered -> read + bash", "bash lost (bash was stopped) -> uncertain"];
    world.assert_lines(&expected);
}

async fn a_run_told_before_it_began_does_nothing(way: Way) {
    let mut world = World::new(way, Vec::new());
    world.begin(start(Vec::new()));
    world.abort.abort(AbortKind::Shutdown);
    assert_eq!(world.end().await, RunEnd::Stopped);
    match way {
        Way::ByReference => assert!(world.core.lines().is_empty()),
        // It may have asked for its first effect before the word reached it.
        Way::ThroughJson => assert!(world.core.lines().len() <= 1, "{:?}", world.core.lines()),
    }
}

async fn an_output_in_hand_is_settled_at_a_shutdown_and_thrown_away_at_a_cancel(way: Way) {
    let (first, _) = World::play(way, vec![says("Done")]).await;
    for (kind, end, lines) in [
        (AbortKind::Shutdown, RunEnd::Settled, vec!["-> completed \"Done\""]),
        (AbortKind::Cancel, RunEnd::Released(CoreError::TurnCancelled), vec![]),
        (AbortKind::OwnershipLost, RunEnd::Released(CoreError::OwnershipLost), vec![]),
    ] {
        let mut world = World::new(way, Vec::new());
        world.begin(start(first.core.recorded()));
        world.abort.abort(kind);
        assert_eq!(world.end().await, end);
        world.assert_lines(&lines);
    }
}

async fn a_shutdown_waits_for_no_read_that_is_slow_to_end(way: Way) {
    let mut world = at_the_tools(way, &["read \"deaf\"", "bash \"held\""]).await;
    world.abort.abort(AbortKind::Shutdown);
    world.workspaces.release("bash");
    assert_eq!(world.end().await, RunEnd::Stopped);
    let expected = [MODEL, "model answered -> read + bash", "bash \"bash was released\" -> nothing"];
    world.assert_lines(&expected);
}

async fn a_run_that_is_dropped_ends_its_commands(way: Way) {
    let mut world = at_the_tools(way, &["bash \"held\"", "read \"held\""]).await;
    world.abandon();
    let kind = match way {
        Way::ByReference => AbortKind::Deadline,
        // Nobody in core stands behind it any more.
        Way::ThroughJson => AbortKind::OwnershipLost,
    };
    world.workspaces.seen.wait_for(&aborted("bash", kind)).await;
    world.workspaces.seen.wait_for(&aborted("read", kind)).await;
    world.assert_lines(&[MODEL, "model answered -> bash + read"]);
}
