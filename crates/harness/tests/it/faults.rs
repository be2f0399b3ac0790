//! Lost answers, panics, and a runtime that refuses.

use nylorun_ports::abort::AbortKind;
use nylorun_ports::run::{CoreError, RunEnd};

use crate::fake_gates::{Script, aborted};
use crate::support::{World, says, start, wants};

#[tokio::test]
async fn a_lost_answer_makes_the_turn_uncertain() {
    let (world, end) = World::play(vec![wants(&["bash \"lost\""])]).await;
    assert_eq!(end, RunEnd::Settled);
    let expected = ["-> model", "model answered -> bash", "bash lost (no answer) -> uncertain"];
    assert_eq!(world.core.lines(), expected);
}

#[tokio::test]
async fn a_lost_answer_of_a_read_is_a_failure() {
    let (world, _) = World::play(vec![wants(&["read \"lost\""]), says("Done")]).await;
    assert_eq!(world.core.lines()[2], "read sandbox.error -> model");
}

#[tokio::test]
async fn a_panic_is_an_outcome() {
    let (world, end) = World::play(vec![Script::Panics]).await;
    assert_eq!(end, RunEnd::Settled);
    assert_eq!(world.core.lines(), ["-> model", "model transient -> failed model.transient"]);

    let (world, _) = World::play(vec![wants(&["grep \"panics\""]), says("Done")]).await;
    assert_eq!(world.core.lines()[2], "grep sandbox.error -> model");

    let (world, _) = World::play(vec![wants(&["write \"panics\"", "read 1"])]).await;
    let lost = "write lost (the call stopped by an internal fault)";
    let lines = world.core.lines();
    assert!(lines[2..].iter().any(|line| line.contains(lost)), "{lines:?}");
    assert!(lines.last().unwrap().ends_with("-> uncertain"), "{lines:?}");
}

#[tokio::test]
async fn a_refusal_of_the_runtime_ends_the_run_and_its_commands() {
    for (error, kind) in [
        (CoreError::OwnershipLost, AbortKind::OwnershipLost),
        (CoreError::TurnCancelled, AbortKind::Cancel),
        (CoreError::Unavailable("down".to_owned()), AbortKind::Deadline),
    ] {
        let mut world = World::new(vec![wants(&["bash \"held\"", "read 1"])]);
        world.core.fail(3, error.clone());
        world.begin(start(Vec::new()));
        assert_eq!(world.end().await, RunEnd::Released(error));
        world.workspaces.seen.wait_for(&aborted("bash", kind)).await;
        let expected = ["-> model", "model answered -> bash + read", "read 1 -> nothing"];
        assert_eq!(world.core.lines(), expected);
    }
}

#[tokio::test]
async fn a_refusal_of_the_first_intent_calls_no_model() {
    let mut world = World::new(Vec::new());
    world.core.fail(1, CoreError::OwnershipLost);
    world.begin(start(Vec::new()));
    assert_eq!(world.end().await, RunEnd::Released(CoreError::OwnershipLost));
    assert!(world.model.seen.lines().is_empty());
}
