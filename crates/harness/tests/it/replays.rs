//! Going on where another run left off.

use nylorun_domain::effect::EffectOutcome;
use nylorun_domain::json::Json;
use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::run::{CoreError, IntentAnswer, Next, RunEnd};

use crate::support::{Way, World, both_ways, says, start, wants};

both_ways! {
    what_is_recorded_is_not_asked_again
    a_finished_turn_settles_in_one_commit
    another_request_under_a_recorded_id_fails_the_turn
    a_drift_that_the_journal_finds_fails_the_turn
    the_journals_outcome_is_used
    an_uncertain_effect_lets_the_others_end_first
}

fn script() -> Vec<crate::fake_gates::Script> {
    vec![wants(&["bash 1", "read 2"]), wants(&["remote 3", "write 4"]), says("Done")]
}

async fn what_is_recorded_is_not_asked_again(way: Way) {
    let (first, _) = World::play(way, script()).await;
    let recorded = first.core.recorded();
    assert_eq!(recorded.len(), 6);
    let output = |world: &World| world.core.commits().last().cloned().map(|(_, next)| next);
    for cut in 0..=recorded.len() {
        // The outcomes of refused calls are the journal's own; their intents are simply asked for again.
        let models_left = recorded[cut..].iter().filter(|one| matches!(one.outcome, EffectOutcome::Model(_))).count();
        let mut world = World::new(way, script().split_off(3 - models_left));
        world.begin(start(recorded[..cut].to_vec()));
        assert_eq!(world.end().await, RunEnd::Settled);
        assert_eq!(output(&world), output(&first), "cut at {cut}");
        assert_eq!(world.model.calls.lock().unwrap().len(), models_left, "cut at {cut}");
    }
}

async fn a_finished_turn_settles_in_one_commit(way: Way) {
    let (first, _) = World::play(way, vec![wants(&["bash 1"]), says("Done")]).await;
    let mut world = World::new(way, Vec::new());
    world.begin(start(first.core.recorded()));
    assert_eq!(world.end().await, RunEnd::Settled);
    world.assert_lines(&["-> completed \"Done\""]);
}

async fn another_request_under_a_recorded_id_fails_the_turn(way: Way) {
    let (first, _) = World::play(way, vec![wants(&["bash 1"]), says("Done")]).await;
    let mut recorded = first.core.recorded();
    recorded[1].request_hash = "0".repeat(64);
    let mut world = World::new(way, Vec::new());
    world.begin(start(recorded));
    assert_eq!(world.end().await, RunEnd::Settled);
    world.assert_lines(&["-> failed effect_drift"]);
}

async fn a_drift_that_the_journal_finds_fails_the_turn(way: Way) {
    let mut world = World::new(way, vec![wants(&["bash 1"])]);
    world.fail("model answered -> bash", CoreError::EffectDrift(nylorun_domain::id::EffectId::from_trusted("e")));
    world.begin(start(Vec::new()));
    assert_eq!(world.end().await, RunEnd::Settled);
    world.assert_lines(&["-> model", "model answered -> bash", "-> failed effect_drift"]);
    assert!(world.workspaces.seen.lines().is_empty());
}

async fn the_journals_outcome_is_used(way: Way) {
    let mut world = World::new(way, vec![wants(&["bash 1"]), says("Done")]);
    let outcome = ToolOutcome::Completed { output: Json::from_trusted("9") };
    world.core.answer("bash", IntentAnswer::Completed(EffectOutcome::Tool(outcome)));
    world.begin(start(Vec::new()));
    assert_eq!(world.end().await, RunEnd::Settled);
    let expected = ["-> model", "model answered -> bash", "-> model", "model answered -> completed \"Done\""];
    world.assert_lines(&expected);
    assert!(world.workspaces.seen.lines().is_empty());
}

async fn an_uncertain_effect_lets_the_others_end_first(way: Way) {
    let mut world = World::new(way, vec![wants(&["bash 1", "read \"held\"", "write 2"])]);
    world.core.answer("bash", IntentAnswer::Uncertain);
    world.begin(start(Vec::new()));
    world.core.committed("write 2").await;
    world.workspaces.release("read");
    assert_eq!(world.end().await, RunEnd::Settled);
    let expected = [
        "-> model",
        "model answered -> bash + read + write",
        "write 2 -> nothing",
        "read \"read was released\" -> uncertain",
    ];
    world.assert_lines(&expected);
    let Some((_, Next::Output(output))) = world.core.commits().last().cloned() else { panic!() };
    assert!(output.edits.is_empty());
}
