//! Going on where another run left off.

use nylorun_domain::effect::EffectOutcome;
use nylorun_domain::json::Json;
use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::run::{CoreError, IntentAnswer, Next, RunEnd};

use crate::support::{World, says, start, wants};

fn script() -> Vec<crate::fake_gates::Script> {
    vec![wants(&["bash 1", "read 2"]), wants(&["remote 3", "write 4"]), says("Done")]
}

#[tokio::test]
async fn what_is_recorded_is_not_asked_again() {
    let (first, _) = World::play(script()).await;
    let recorded = first.core.recorded();
    assert_eq!(recorded.len(), 6);
    let output = |world: &World| world.core.commits().last().cloned().map(|(_, next)| next);
    for cut in 0..=recorded.len() {
        // The outcomes of refused calls are the journal's own; their intents are simply asked for again.
        let models_left = recorded[cut..].iter().filter(|one| matches!(one.outcome, EffectOutcome::Model(_))).count();
        let mut world = World::new(script().split_off(3 - models_left));
        world.begin(start(recorded[..cut].to_vec()));
        assert_eq!(world.end().await, RunEnd::Settled);
        assert_eq!(output(&world), output(&first), "cut at {cut}");
        assert_eq!(world.model.calls.lock().unwrap().len(), models_left, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_finished_turn_settles_in_one_commit() {
    let (first, _) = World::play(vec![wants(&["bash 1"]), says("Done")]).await;
    let mut world = World::new(Vec::new());
    world.begin(start(first.core.recorded()));
    assert_eq!(world.end().await, RunEnd::Settled);
    assert_eq!(world.core.lines(), ["-> completed \"Done\""]);
}

#[tokio::test]
async fn another_request_under_a_recorded_id_fails_the_turn() {
    let (first, _) = World::play(vec![wants(&["bash 1"]), says("Done")]).await;
    let mut recorded = first.core.recorded();
    recorded[1].request_hash = "0".repeat(64);
    let mut world = World::new(Vec::new());
    world.begin(start(recorded));
    assert_eq!(world.end().await, RunEnd::Settled);
    assert_eq!(world.core.lines(), ["-> failed effect_drift"]);
}

#[tokio::test]
async fn a_drift_that_the_journal_finds_fails_the_turn() {
    let mut world = World::new(vec![wants(&["bash 1"])]);
    world.core.fail(2, CoreError::EffectDrift(nylorun_domain::id::EffectId::from_trusted("e")));
    world.begin(start(Vec::new()));
    assert_eq!(world.end().await, RunEnd::Settled);
    assert_eq!(world.core.lines(), ["-> model", "model answered -> bash", "-> failed effect_drift"]);
    assert!(world.workspaces.seen.lines().is_empty());
}

#[tokio::test]
async fn the_journals_outcome_is_used() {
    let mut world = World::new(vec![wants(&["bash 1"]), says("Done")]);
    let outcome = ToolOutcome::Completed { output: Json::from_trusted("9") };
    world.core.answer("bash", IntentAnswer::Completed(EffectOutcome::Tool(outcome)));
    world.begin(start(Vec::new()));
    assert_eq!(world.end().await, RunEnd::Settled);
    let expected = ["-> model", "model answered -> bash", "-> model", "model answered -> completed \"Done\""];
    assert_eq!(world.core.lines(), expected);
    assert!(world.workspaces.seen.lines().is_empty());
}

#[tokio::test]
async fn an_uncertain_effect_lets_the_others_end_first() {
    let mut world = World::new(vec![wants(&["bash 1", "read \"held\"", "write 2"])]);
    world.core.answer("bash", IntentAnswer::Uncertain);
    world.begin(start(Vec::new()));
    world.core.committed(3).await;
    world.workspaces.release("read");
    assert_eq!(world.end().await, RunEnd::Settled);
    let expected = [
        "-> model",
        "model answered -> bash + read + write",
        "write 2 -> nothing",
        "read \"read was released\" -> uncertain",
    ];
    assert_eq!(world.core.lines(), expected);
    let Some((_, Next::Output(output))) = world.core.commits().last().cloned() else { panic!() };
    assert!(output.edits.is_empty());
}
