//! How few commits a turn takes, and what is in them.

use nylorun_domain::segment::TurnEnd;
use nylorun_domain::transcript::{Edit, Entry, MAX_EDIT_LEN};
use nylorun_ports::run::{EffectReport, Next, RunEnd};
use nylorun_wire::transcript::entry_len;

use crate::fake_gates::{Script, state_event};
use crate::support::{Way, World, both_ways, says, start, text, wants};

both_ways! {
    a_turn_of_one_model_step_is_two_commits
    a_tool_step_is_two_commits
    an_outcome_of_parallel_tools_commits_when_it_arrives_and_the_last_with_what_is_next
    refused_calls_complete_with_their_intent
    a_session_without_a_workspace_has_no_workspace_tools
    workspace_events_ride_with_the_outcome
    deltas_pass_through_by_reference
    a_long_turn_is_recorded_in_edits_that_fit
}

async fn a_turn_of_one_model_step_is_two_commits(way: Way) {
    let (world, end) = World::play(way, vec![says("Hi")]).await;
    assert_eq!(end, RunEnd::Settled);
    world.assert_lines(&["-> model", "model answered -> completed \"Hi\""]);
    let calls = world.model.calls.lock().unwrap();
    let call = &calls[0];
    let ids = (call.session_id.as_str(), call.turn_id.as_str(), call.agent_id.as_str(), call.epoch);
    assert_eq!(ids, ("session", "turn", "agent", 7));
}

async fn a_tool_step_is_two_commits(way: Way) {
    let mut script: Vec<_> = (0..20).map(|n| wants(&[&format!("bash {n}")])).collect();
    script.push(says("Done"));
    let (world, end) = World::play(way, script).await;
    assert_eq!(end, RunEnd::Settled);
    let mut expected = vec!["-> model".to_owned()];
    expected.extend((0..20).flat_map(|n| ["model answered -> bash".to_owned(), format!("bash {n} -> model")]));
    expected.push("model answered -> completed \"Done\"".to_owned());
    world.assert_lines(&expected);
}

async fn an_outcome_of_parallel_tools_commits_when_it_arrives_and_the_last_with_what_is_next(way: Way) {
    let mut world = World::new(way, vec![wants(&["bash \"held\"", "read \"held\"", "grep \"held\""]), says("Done")]);
    world.begin(start(Vec::new()));
    world.core.committed("grep").await;
    for tool in ["read", "bash", "grep"] {
        world.workspaces.release(tool);
        world.core.committed(&format!("{tool} \"{tool} was released\"")).await;
    }
    assert_eq!(world.end().await, RunEnd::Settled);
    let expected = [
        "-> model",
        "model answered -> bash + read + grep",
        "read \"read was released\" -> nothing",
        "bash \"bash was released\" -> nothing",
        "grep \"grep was released\" -> model",
        "model answered -> completed \"Done\"",
    ];
    world.assert_lines(&expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_tools_are_called_in_the_models_order() {
    let calls = ["bash 1", "read 2", "write 3", "edit 4", "grep 5", "glob 6", "bash 7", "read 8"];
    for way in [Way::ByReference, Way::ThroughJson] {
        for _ in 0..50 {
            let (world, end) = World::play(way, vec![wants(&calls), says("Done")]).await;
            assert_eq!(end, RunEnd::Settled);
            assert_eq!(world.workspaces.seen.lines(), calls);
        }
    }
}

async fn refused_calls_complete_with_their_intent(way: Way) {
    let (world, end) = World::play(way, vec![wants(&["remote 1", "nope 2"]), says("Done")]).await;
    assert_eq!(end, RunEnd::Settled);
    let expected = ["-> model", "model answered -> remote + nope", "-> model", "model answered -> completed \"Done\""];
    world.assert_lines(&expected);
    assert!(world.workspaces.seen.lines().is_empty());
}

async fn a_session_without_a_workspace_has_no_workspace_tools(way: Way) {
    let mut world = World::new(way, vec![wants(&["bash 1"]), says("Done")]);
    let mut start = start(Vec::new());
    start.workspace = None;
    world.begin(start);
    assert_eq!(world.end().await, RunEnd::Settled);
    world.assert_has("bash tool.unavailable -> model");
}

async fn workspace_events_ride_with_the_outcome(way: Way) {
    let (world, _) = World::play(way, vec![wants(&["bash \"state\"", "read 1"]), says("Done")]).await;
    let commits = world.core.commits();
    let reports: Vec<&EffectReport> = commits.iter().flat_map(|(reports, _)| reports).collect();
    let events: Vec<_> = reports.iter().flat_map(|report| &report.events).collect();
    assert_eq!(events, [&state_event()]);
}

async fn deltas_pass_through_by_reference(way: Way) {
    let (world, _) = World::play(way, vec![Script::Streams(vec!["He", "llo"], text("Hello"))]).await;
    match way {
        Way::ByReference => assert_eq!(world.core.deltas(), ["model 1.0 He", "model 1.1 llo"]),
        // The API has no message for them.
        Way::ThroughJson => assert!(world.core.deltas().is_empty()),
    }
}

async fn a_long_turn_is_recorded_in_edits_that_fit(way: Way) {
    let input = "x".repeat(20_000);
    let mut script: Vec<_> = (0..6).map(|_| wants(&[&format!("read \"{input}\"")])).collect();
    let last = "y".repeat(2 * MAX_EDIT_LEN);
    script.push(says(&last));
    let (world, _) = World::play(way, script).await;
    let commits = world.core.commits();
    let Some((_, Next::Output(output))) = commits.last() else { panic!("{commits:?}") };
    assert!(matches!(output.end, TurnEnd::Completed { .. }));
    let mut folded = Vec::new();
    for edit in output.edits.clone() {
        let len: usize = edit.entries.iter().map(entry_len).sum();
        assert!(len <= MAX_EDIT_LEN || edit.entries.len() == 1, "{len} of {}", edit.entries.len());
        edit.apply(&mut folded).unwrap();
    }
    assert_eq!(folded.len(), 1 + 6 * 2 + 2);
    assert!(matches!(folded[0], Entry::Input(_)) && matches!(folded[14], Entry::Final { .. }));
    assert!(output.edits.len() > 6 && output.edits.iter().all(|edit: &Edit| !edit.entries.is_empty()));
}
