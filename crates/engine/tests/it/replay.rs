//! What makes a turn durable: replays and orders of arrival change nothing.

use std::collections::{HashMap, HashSet};

use nylorun_domain::effect::{Effect, EffectOutcome, EffectRequest};
use nylorun_domain::id::{CallId, EffectId, InvocationId};
use nylorun_domain::model::{ModelFailureCode, OutputPart};
use nylorun_domain::segment::{TurnEnd, TurnOutput};
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::transcript::Entry;
use nylorun_engine::{Run, Start};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::{answer, call, done, failure, start, text};

/// What the outside does in one step.
#[derive(Clone, Debug)]
enum Step {
    Tools(Vec<(OutputPart, Given)>),
    Text(String),
    Failed(ModelFailureCode),
}

#[derive(Clone, Debug)]
enum Given {
    Outcome(ToolOutcome),
    Uncertain,
}

/// Everything that a run showed.
#[derive(Debug, PartialEq)]
struct Trace {
    batches: Vec<Vec<Effect>>,
    output: TurnOutput,
}

/// Outcomes in the order in which they were recorded.
type Recorded = Vec<(EffectId, EffectOutcome)>;

fn tool_call() -> impl Strategy<Value = (OutputPart, Given)> {
    let ids = select(vec!["", "a", "b", "call_1", "x\ny"]);
    let names = select(vec!["bash", "read", "remote", "unknown"]);
    let inputs = select(vec!["{}", "{\"command\": \"ls\"}", "{\"comm", "[1, 2.50]"]);
    let given = prop_oneof![
        8 => any::<u8>().prop_map(|n| Given::Outcome(done(&n.to_string()))),
        2 => Just(Given::Outcome(ToolOutcome::failed("sandbox.not_found", "no"))),
        1 => Just(Given::Uncertain),
    ];
    (ids, names, inputs, given).prop_map(|(id, name, input, given)| (call(id, name, input), given))
}

/// What fails a turn at once; a conversation that does not fit is compacted first (see `turns`).
fn failures() -> Vec<ModelFailureCode> {
    let is_final = |code: &ModelFailureCode| *code != ModelFailureCode::ContextOverflow;
    ModelFailureCode::ALL.iter().copied().filter(is_final).collect()
}

fn script() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => prop::collection::vec(tool_call(), 1..=5).prop_map(Step::Tools),
        1 => select(failures()).prop_map(Step::Failed),
        1 => "[a-z]{0,8}".prop_map(Step::Text),
    ];
    (prop::collection::vec(step, 0..8), "[a-z]{0,8}").prop_map(|(mut steps, last)| {
        steps.push(Step::Text(last));
        steps
    })
}

/// Plays a turn whose outcomes arrive in an order that `picks` decide, or are shipped with it.
fn play(start: Start, script: &[Step], picks: &[usize], shipped: &Recorded) -> (Trace, Recorded) {
    let shipped: HashMap<_, _> = shipped.iter().cloned().collect();
    let (mut steps, mut picks) = (script.iter(), picks.iter().cycle());
    let mut tools: &[(OutputPart, Given)] = &[];
    let (mut batches, mut recorded) = (Vec::new(), Vec::new());
    let mut run = Run::new(start);
    while run.output().is_none() {
        let batch = run.wants();
        assert!(!batch.is_empty(), "the run waits for nothing");
        let mut open: Vec<_> = batch.iter().enumerate().collect();
        while !open.is_empty() {
            let (at, effect) = open.remove(picks.next().map_or(0, |pick| pick % open.len()));
            let given = match &effect.request {
                EffectRequest::Summary(_) => unreachable!("these histories are short"),
                EffectRequest::Model(_) => Some(match steps.next().expect("a step for every model call") {
                    Step::Text(answered) => answer(vec![text(answered)]),
                    Step::Failed(code) => failure(*code),
                    Step::Tools(calls) => {
                        tools = calls;
                        answer(calls.iter().map(|(call, _)| call.clone()).collect())
                    }
                }),
                EffectRequest::Tool(_) => match &tools[at].1 {
                    Given::Outcome(outcome) => Some(EffectOutcome::Tool(outcome.clone())),
                    Given::Uncertain => None,
                },
            };
            match shipped.get(&effect.id).cloned().or(given) {
                Some(outcome) => recorded.push((effect.id.clone(), run.resolve(&effect.id, outcome).unwrap())),
                None => run.uncertain(&effect.id).unwrap(),
            }
        }
        batches.push(batch);
    }
    (Trace { batches, output: run.output().unwrap().clone() }, recorded)
}

proptest! {
    #[test]
    fn a_replay_from_any_prefix_gives_the_same_turn(
        script in script(), picks in prop::collection::vec(0..5_usize, 1..9), cut in any::<prop::sample::Index>(),
    ) {
        let (trace, recorded) = play(start("t", Vec::new()), &script, &picks, &Vec::new());
        let shipped = recorded[..cut.index(recorded.len() + 1)].to_vec();
        let (replayed, recorded_again) = play(start("t", Vec::new()), &script, &picks, &shipped);
        prop_assert_eq!(replayed, trace);
        prop_assert_eq!(recorded_again, recorded);
    }

    #[test]
    fn the_order_of_arrival_changes_nothing(
        script in script(), picks in prop::collection::vec(0..5_usize, 1..9),
    ) {
        let (in_order, _) = play(start("t", Vec::new()), &script, &[0], &Vec::new());
        let (shuffled, _) = play(start("t", Vec::new()), &script, &picks, &Vec::new());
        prop_assert_eq!(shuffled, in_order);
    }

    #[test]
    fn ids_never_collide_and_results_answer_every_call(scripts in prop::collection::vec(script(), 1..4)) {
        let (mut transcript, mut effects, mut invocations) = (Vec::new(), HashSet::new(), HashSet::new());
        for (turn, script) in scripts.iter().enumerate() {
            let (trace, _) = play(start(&format!("turn-{turn}"), transcript.clone()), script, &[0], &Vec::new());
            for effect in trace.batches.iter().flatten() {
                prop_assert!(effects.insert(effect.id.clone()), "{} twice", effect.id);
                prop_assert!(invocations.insert(effect.invocation_id.clone()), "{} twice", effect.invocation_id);
            }
            let is_completed = matches!(trace.output.end, TurnEnd::Completed { .. });
            prop_assert_eq!(trace.output.edits.len(), usize::from(is_completed));
            trace.output.edits.into_iter().for_each(|edit| edit.apply(&mut transcript).unwrap());
        }
        check_transcript(&transcript)?;
    }
}

/// Call ids are unique in the whole session, and each call has its result, in order.
fn check_transcript(transcript: &[Entry]) -> Result<(), TestCaseError> {
    let (mut calls, mut answered): (Vec<CallId>, Vec<CallId>) = (Vec::new(), Vec::new());
    let mut invocations: Vec<&InvocationId> = Vec::new();
    for entry in transcript {
        match entry {
            Entry::Candidate { invocation_id, candidate } => {
                prop_assert_eq!(calls.len(), answered.len());
                invocations.push(invocation_id);
                calls.extend(candidate.tool_calls().map(|call| call.call_id.clone()));
            }
            Entry::ToolResults(results) => answered.extend(results.iter().map(|result| result.call_id.clone())),
            Entry::Input(_) | Entry::Compaction(_) | Entry::Final { .. } => {}
        }
    }
    prop_assert_eq!(&calls, &answered);
    prop_assert_eq!(calls.iter().collect::<HashSet<_>>().len(), calls.len());
    prop_assert_eq!(invocations.iter().collect::<HashSet<_>>().len(), invocations.len());
    Ok(())
}
