//! Calls of HTTP tools: what they carry, what an abort does to them, and how their results fit.

use nylorun_domain::effect::EffectOutcome;
use nylorun_domain::json::Value;
use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::abort::AbortKind;
use nylorun_ports::run::{CoreError, EffectResult, RecordedOutcome, RunEnd};

use crate::fake_gates::aborted;
use crate::support::{Way, World, both_ways, says, start, wants};

both_ways! {
    a_call_carries_the_turn_and_its_key
    a_lost_answer_is_uncertain
    a_shutdown_lets_a_call_finish
    the_end_of_a_shutdowns_grace_stops_a_call_and_it_is_uncertain
    a_cancel_stops_a_call_at_once
    results_of_one_step_share_its_room_and_the_next_step_has_its_own
    what_a_dead_run_recorded_has_its_room_still
}

const MODEL: &str = "-> model";

/// A run that waits for `order`.
async fn at_the_endpoint(way: Way) -> World {
    let mut world = World::new(way, vec![wants(&["order \"held\""]), says("Done")]);
    world.begin(start(Vec::new()));
    world.http_tools.seen.wait_for("order \"held\"").await;
    world
}

async fn a_call_carries_the_turn_and_its_key(way: Way) {
    let (world, end) = World::play(way, vec![wants(&["order {\"n\":1}"]), says("Done")]).await;
    assert_eq!(end, RunEnd::Settled);
    let expected =
        [MODEL, "model answered -> order", "order {\"n\":1} -> model", "model answered -> completed \"Done\""];
    world.assert_lines(&expected);
    let calls = world.http_tools.calls.lock().unwrap();
    let call = &calls[0];
    assert_eq!((call.session_id.as_str(), call.turn_id.as_str(), call.agent_id.as_str()), ("session", "turn", "agent"));
    assert_eq!((call.epoch, call.tool_name.as_str(), call.input.as_str()), (7, "order", "{\"n\":1}"));
    assert!(call.effect_id.as_str().starts_with("turn:0:tool:"), "{}", call.effect_id);
    assert_eq!((call.request_hash.len(), &call.manifest.hash), (64, &start(Vec::new()).manifest.hash));
}

async fn a_lost_answer_is_uncertain(way: Way) {
    let (world, end) = World::play(way, vec![wants(&["order \"lost\""])]).await;
    assert_eq!(end, RunEnd::Settled);
    let expected = [MODEL, "model answered -> order", "order lost (http.lost: cut) -> uncertain"];
    world.assert_lines(&expected);
}

async fn a_shutdown_lets_a_call_finish(way: Way) {
    let mut world = World::new(way, vec![wants(&["order \"held\"", "read \"held\""]), says("Done")]);
    world.begin(start(Vec::new()));
    world.http_tools.seen.wait_for("order \"held\"").await;
    world.abort.abort(AbortKind::Shutdown);
    world.workspaces.seen.wait_for(&aborted("read", AbortKind::Shutdown)).await;
    world.http_tools.release();
    assert_eq!(world.end().await, RunEnd::Stopped);
    world.assert_lines(&[MODEL, "model answered -> order + read", "order \"released\" -> nothing"]);
}

async fn the_end_of_a_shutdowns_grace_stops_a_call_and_it_is_uncertain(way: Way) {
    let mut world = at_the_endpoint(way).await;
    world.abort.abort(AbortKind::Shutdown);
    world.abort.abort(AbortKind::Deadline);
    assert_eq!(world.end().await, RunEnd::Settled);
    world.http_tools.seen.wait_for("Deadline").await;
    world.assert_lines(&[MODEL, "model answered -> order", "order lost (order was stopped) -> uncertain"]);
}

async fn a_cancel_stops_a_call_at_once(way: Way) {
    let mut world = at_the_endpoint(way).await;
    world.abort.abort(AbortKind::Cancel);
    assert_eq!(world.end().await, RunEnd::Released(CoreError::TurnCancelled));
    world.http_tools.seen.wait_for("Cancel").await;
    world.assert_lines(&[MODEL, "model answered -> order"]);
}

/// Sizes of the tools' results as they were committed.
fn sizes(world: &World) -> Vec<usize> {
    let commits = world.core.commits();
    let results = commits.iter().flat_map(|(reports, _)| reports).map(|report| &report.result);
    let outputs = results.filter_map(|result| match result {
        EffectResult::Value(EffectOutcome::Tool(ToolOutcome::Completed { output })) => Some(output.as_str().len()),
        EffectResult::Value(_) | EffectResult::Lost { .. } => None,
    });
    outputs.collect()
}

const LARGE: usize = 30_000;

async fn results_of_one_step_share_its_room_and_the_next_step_has_its_own(way: Way) {
    let one = format!("order {{\"size\":{LARGE}}}");
    let (world, _) = World::play(way, vec![wants(&[one.as_str(); 12]), wants(&[&one]), says("Done")]).await;
    let sizes = sizes(&world);
    assert_eq!(sizes.len(), 13);
    assert_eq!(sizes[..8], [LARGE; 8]);
    assert!(sizes[8] < LARGE && sizes[8] > 4_096, "{sizes:?}");
    assert!(sizes[..12].iter().sum::<usize>() <= 256 * 1024 + 4 * 512, "{sizes:?}");
    assert_eq!(sizes[12], LARGE);
}

async fn what_a_dead_run_recorded_has_its_room_still(way: Way) {
    let one = format!("order {{\"size\":{LARGE}}}");
    let (first, _) = World::play(way, vec![wants(&[one.as_str(); 12]), says("Done")]).await;
    let recorded: Vec<RecordedOutcome> = first.core.recorded().into_iter().take(9).collect();
    let mut world = World::new(way, vec![says("Done")]);
    world.begin(start(recorded));
    assert_eq!(world.end().await, RunEnd::Settled);
    assert_eq!(sizes(&world), sizes(&first)[8..]);
    let commits = world.core.commits();
    let first = commits.iter().flat_map(|(reports, _)| reports).next().expect("something was reported");
    let EffectResult::Value(EffectOutcome::Tool(ToolOutcome::Completed { output })) = &first.result else {
        panic!("{first:?}")
    };
    assert_eq!(output.value().get("truncated"), Some(&Value::from(true)));
}
