//! Lost answers, panics, and a runtime that refuses.

use nylorun_ports::abort::AbortKind;
use nylorun_ports::run::{CoreError, RunEnd};

use crate::fake_gates::{Script, aborted};
use crate::support::{Way, World, both_ways, says, start, wants};

both_ways! {
    a_lost_answer_makes_the_turn_uncertain
    a_lost_answer_of_a_read_is_a_failure
    a_panic_is_an_outcome
    a_refusal_of_the_runtime_ends_the_run_and_its_commands
    a_refusal_of_the_first_intent_calls_no_model
}

async fn a_lost_answer_makes_the_turn_uncertain(way: Way) {
    let (world, end) = World::play(way, vec![wants(&["bash \"lost\""])]).await;
    assert_eq!(end, RunEnd::Settled);
    let expected = ["-> model", "model answered -> bash", "bash lost (no answer) -> uncertain"];
    world.assert_lines(&expected);
}

async fn a_lost_answer_of_a_read_is_a_failure(way: Way) {
    let (world, _) = World::play(way, vec![wants(&["read \"lost\""]), says("Done")]).await;
    world.assert_has("read sandbox.error -> model");
}

async fn a_panic_is_an_outcome(way: Way) {
    let (world, end) = World::play(way, vec![Script::Panics]).await;
    assert_eq!(end, RunEnd::Settled);
    world.assert_lines(&["-> model", "model transient -> failed model.transient"]);

    let (world, _) = World::play(way, vec![wants(&["grep \"panics\""]), says("Done")]).await;
    world.assert_has("grep sandbox.error -> model");

    let (world, _) = World::play(way, vec![wants(&["write \"panics\"", "read 1"])]).await;
    let lost = "write lost (the call stopped by an internal fault)";
    let lines = world.core.lines();
    assert!(lines.iter().any(|line| line.contains(lost)), "{lines:?}");
    assert!(lines.last().unwrap().ends_with("-> uncertain"), "{lines:?}");
}

async fn a_refusal_of_the_runtime_ends_the_run_and_its_commands(way: Way) {
    for (error, kind) in [
        (CoreError::OwnershipLost, AbortKind::OwnershipLost),
        (CoreError::TurnCancelled, AbortKind::Cancel),
        (CoreError::Unavailable("down".to_owned()), AbortKind::Deadline),
    ] {
        let mut world = World::new(way, vec![wants(&["bash \"held\"", "read 1"])]);
        world.fail("read 1 -> nothing", error.clone());
        world.begin(start(Vec::new()));
        assert_eq!(world.end().await, RunEnd::Released(error));
        world.workspaces.seen.wait_for(&aborted("bash", kind)).await;
        let expected = ["-> model", "model answered -> bash + read", "read 1 -> nothing"];
        world.assert_lines(&expected);
    }
}

async fn a_refusal_of_the_first_intent_calls_no_model(way: Way) {
    let mut world = World::new(way, Vec::new());
    world.fail("-> model", CoreError::OwnershipLost);
    world.begin(start(Vec::new()));
    assert_eq!(world.end().await, RunEnd::Released(CoreError::OwnershipLost));
    assert!(world.model.seen.lines().is_empty());
}
