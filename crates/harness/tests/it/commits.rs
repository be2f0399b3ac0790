//! How few commits a turn takes, and what is in them.

use nylorun_domain::segment::TurnEnd;
use nylorun_domain::transcript::{Edit, Entry, MAX_EDIT_LEN};
use nylorun_ports::run::{EffectReport, Next, RunEnd};
use nylorun_wire::transcript::entry_len;

use crate::fake_gates::{Script, state_event};
use crate::support::{World, says, start, text, wants};

#[tokio::test]
async fn a_turn_of_one_model_step_is_two_commits() {
    let (world, end) = World::play(vec![says("Hi")]).await;
    assert_eq!(end, RunEnd::Settled);
    assert_eq!(world.core.lines(), ["-> model", "model answered -> completed \"Hi\""]);
    let calls = world.model.calls.lock().unwrap();
    let call = &calls[0];
    let ids = (call.session_id.as_str(), call.turn_id.as_str(), call.agent_id.as_str(), call.epoch);
    assert_eq!(ids, ("session", "turn", "agent", 7));
}

#[tokio::test]
async fn a_tool_step_is_two_commits() {
    let mut script: Vec<_> = (0..20).map(|n| wants(&[&format!("bash {n}")])).collect();
    script.push(says("Done"));
    let (world, end) = World::play(script).await;
    assert_eq!(end, RunEnd::Settled);
    let mut expected = vec!["-> model".to_owned()];
    expected.extend((0..20).flat_map(|n| ["model answered -> bash".to_owned(), format!("bash {n} -> model")]));
    expected.push("model answered -> completed \"Done\"".to_owned());
    assert_eq!(world.core.lines(), expected);
}

#[tokio::test]
async fn an_outcome_of_parallel_tools_commits_when_it_arrives_and_the_last_with_what_is_next() {
    let mut world = World::new(vec![wants(&["bash \"held\"", "read \"held\"", "grep \"held\""]), says("Done")]);
    world.begin(start(Vec::new()));
    world.core.committed(2).await;
    for (tool, commits) in [("read", 3), ("bash", 4), ("grep", 6)] {
        world.workspaces.release(tool);
        world.core.committed(commits).await;
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
    assert_eq!(world.core.lines(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_tools_are_called_in_the_models_order() {
    let calls = ["bash 1", "read 2", "write 3", "edit 4", "grep 5", "glob 6", "bash 7", "read 8"];
    for _ in 0..50 {
        let (world, end) = World::play(vec![wants(&calls), says("Done")]).await;
        assert_eq!(end, RunEnd::Settled);
        assert_eq!(world.workspaces.seen.lines(), calls);
    }
}

#[tokio::test]
async fn refused_calls_complete_with_their_intent() {
    let (world, end) = World::play(vec![wants(&["remote 1", "nope 2"]), says("Done")]).await;
    assert_eq!(end, RunEnd::Settled);
    let expected = ["-> model", "model answered -> remote + nope", "-> model", "model answered -> completed \"Done\""];
    assert_eq!(world.core.lines(), expected);
    assert!(world.workspaces.seen.lines().is_empty());
}

#[tokio::test]
async fn a_session_without_a_workspace_has_no_workspace_tools() {
    let mut world = World::new(vec![wants(&["bash 1"]), says("Done")]);
    let mut start = start(Vec::new());
    start.workspace = None;
    world.begin(start);
    assert_eq!(world.end().await, RunEnd::Settled);
    assert_eq!(world.core.lines()[2], "bash tool.unavailable -> model");
}

#[tokio::test]
async fn workspace_events_ride_with_the_outcome() {
    let (world, _) = World::play(vec![wants(&["bash \"state\"", "read 1"]), says("Done")]).await;
    let commits = world.core.commits();
    let reports: Vec<&EffectReport> = commits.iter().flat_map(|(reports, _)| reports).collect();
    let events: Vec<_> = reports.iter().flat_map(|report| &report.events).collect();
    assert_eq!(events, [&state_event()]);
}

#[tokio::test]
async fn deltas_pass_through() {
    let (world, _) = World::play(vec![Script::Streams(vec!["He", "llo"], text("Hello"))]).await;
    assert_eq!(world.core.deltas(), ["model 1.0 He", "model 1.1 llo"]);
}

#[tokio::test]
async fn a_long_turn_is_recorded_in_edits_that_fit() {
    let input = "x".repeat(20_000);
    let mut script: Vec<_> = (0..6).map(|_| wants(&[&format!("read \"{input}\"")])).collect();
    let last = "y".repeat(2 * MAX_EDIT_LEN);
    script.push(says(&last));
    let (world, _) = World::play(script).await;
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
