//! Calls of HTTP tools: what they carry, what an abort does to them, and how their results fit.

use nylorun_domain::effect::EffectOutcome;
use nylorun_domain::json::Value;
use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::abort::AbortKind;
use nylorun_ports::run::{CoreError, EffectResult, RecordedOutcome, RunEnd};

use crate::support::{World, says, start, wants};

const MODEL: &str = "-> model";

/// A run that waits for `order`.
async fn at_the_endpoint() -> World {
    let mut world = World::new(vec![wants(&["order \"held\""]), says("Done")]);
    world.begin(start(Vec::new()));
    world.http_tools.seen.wait_for("order \"held\"").await;
    world
}

#[tokio::test]
async fn a_call_carries_the_turn_and_its_key() {
    let (world, end) = World::play(vec![wants(&["order {\"n\":1}"]), says("Done")]).await;
    assert_eq!(end, RunEnd::Settled);
    let expected =
        [MODEL, "model answered -> order", "order {\"n\":1} -> model", "model answered -> completed \"Done\""];
    assert_eq!(world.core.lines(), expected);
    let calls = world.http_tools.calls.lock().unwrap();
    let call = &calls[0];
    assert_eq!((call.session_id.as_str(), call.turn_id.as_str(), call.agent_id.as_str()), ("session", "turn", "agent"));
    assert_eq!((call.epoch, call.tool_name.as_str(), call.input.as_str()), (7, "order", "{\"n\":1}"));
    assert!(call.effect_id.as_str().starts_with("turn:0:tool:"), "{}", call.effect_id);
    assert_eq!((call.request_hash.len(), call.manifest.hash.as_str()), (64, "0123"));
}

#[tokio::test]
async fn a_lost_answer_is_uncertain() {
    let (world, end) = World::play(vec![wants(&["order \"lost\""])]).await;
    assert_eq!(end, RunEnd::Settled);
    let expected = [MODEL, "model answered -> order", "order lost (http.lost: cut) -> uncertain"];
    assert_eq!(world.core.lines(), expected);
}

#[tokio::test]
async fn a_shutdown_lets_a_call_finish() {
    let mut world = at_the_endpoint().await;
    world.abort.abort(AbortKind::Shutdown);
    world.http_tools.release();
    assert_eq!(world.end().await, RunEnd::Stopped);
    assert_eq!(world.core.lines(), [MODEL, "model answered -> order", "order \"released\" -> nothing"]);
}

#[tokio::test]
async fn the_end_of_a_shutdowns_grace_stops_a_call_and_it_is_uncertain() {
    let mut world = at_the_endpoint().await;
    world.abort.abort(AbortKind::Shutdown);
    world.abort.abort(AbortKind::Deadline);
    assert_eq!(world.end().await, RunEnd::Settled);
    world.http_tools.seen.wait_for("Deadline").await;
    assert_eq!(world.core.lines(), [MODEL, "model answered -> order", "order lost (order was stopped) -> uncertain"]);
}

#[tokio::test]
async fn a_cancel_stops_a_call_at_once() {
    let mut world = at_the_endpoint().await;
    world.abort.abort(AbortKind::Cancel);
    assert_eq!(world.end().await, RunEnd::Released(CoreError::TurnCancelled));
    world.http_tools.seen.wait_for("Cancel").await;
    assert_eq!(world.core.lines(), [MODEL, "model answered -> order"]);
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

#[tokio::test]
async fn results_of_one_step_share_its_room_and_the_next_step_has_its_own() {
    let one = format!("order {{\"size\":{LARGE}}}");
    let (world, _) = World::play(vec![wants(&[one.as_str(); 12]), wants(&[&one]), says("Done")]).await;
    let sizes = sizes(&world);
    assert_eq!(sizes.len(), 13);
    assert_eq!(sizes[..8], [LARGE; 8]);
    assert!(sizes[8] < LARGE && sizes[8] > 4_096, "{sizes:?}");
    assert!(sizes[..12].iter().sum::<usize>() <= 256 * 1024 + 4 * 512, "{sizes:?}");
    assert_eq!(sizes[12], LARGE);
}

#[tokio::test]
async fn what_a_dead_run_recorded_has_its_room_still() {
    let one = format!("order {{\"size\":{LARGE}}}");
    let (first, _) = World::play(vec![wants(&[one.as_str(); 12]), says("Done")]).await;
    let recorded: Vec<RecordedOutcome> = first.core.recorded().into_iter().take(9).collect();
    let mut world = World::new(vec![says("Done")]);
    world.begin(start(recorded));
    assert_eq!(world.end().await, RunEnd::Settled);
    assert_eq!(sizes(&world), sizes(&first)[8..]);
    let commits = world.core.commits();
    let EffectResult::Value(EffectOutcome::Tool(ToolOutcome::Completed { output })) = &commits[1].0[0].result else {
        panic!("{commits:?}")
    };
    assert_eq!(output.value().get("truncated"), Some(&Value::from(true)));
}
