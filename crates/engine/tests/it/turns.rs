//! Whole turns against a random outside: segments, approvals, steering and compaction. Wherever the process dies, and
//! in whatever order outcomes arrive, the turn is the same.

use std::collections::{HashMap, HashSet, VecDeque};

use nylorun_domain::checkpoint::{Answer, Said};
use nylorun_domain::effect::{Effect, EffectOutcome, EffectRequest};
use nylorun_domain::id::EffectId;
use nylorun_domain::model::{Candidate, ModelFailureCode, ModelOutcome, OutputPart, Window};
use nylorun_domain::segment::{TurnEnd, TurnOutput};
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::transcript::{Entry, Input};
use nylorun_engine::{Run, Start};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::{after, answer, call, candidate, careful, done, failure, text};

/// What the model does with one call.
#[derive(Clone, Debug)]
enum Step {
    Says { parts: Vec<OutputPart>, window: Option<Window>, total: Option<i64> },
    Fails(ModelFailureCode),
}

/// What the outside does with a turn.
#[derive(Clone, Debug)]
struct Outside {
    steps: Vec<Step>,
    /// What a summary call gives; the empty text fails the turn.
    summaries: Vec<String>,
    /// How many questions are answered at a time, less one, and whether with yes.
    answers: Vec<(usize, bool)>,
    /// Before which model calls of the turn messages come, counted from 0.
    steers: HashSet<usize>,
    /// Steps of a segment before it yields.
    yield_after: u32,
}

/// Everything that a turn showed.
#[derive(Debug, PartialEq)]
struct Trace {
    effects: Vec<(EffectId, String)>,
    outputs: Vec<TurnOutput>,
    transcript: Vec<Entry>,
}

fn tool_call() -> impl Strategy<Value = OutputPart> {
    let ids = select(vec!["", "a", "b", "call_1"]);
    let names = select(vec!["bash", "read", "deploy", "deploy", "files__put", "remote", "unknown"]);
    let inputs = select(vec!["{}", "{}", "{}", "{}", "[\"fail\"]", "[\"lost\"]", "{\"cut"]);
    (ids, names, inputs).prop_map(|(id, name, input)| call(id, name, input))
}

fn step() -> impl Strategy<Value = Step> {
    let parts = prop_oneof![
        5 => prop::collection::vec(tool_call(), 1..=4),
        1 => "[a-z ]{0,400}".prop_map(|said| vec![text(&said)]),
    ];
    let window =
        select(vec![None, Some(Window { context: 600, output: 100 }), Some(Window { context: 300, output: 0 })]);
    let total = select(vec![None, Some(10), Some(480), Some(700)]);
    prop_oneof![
        8 => (parts, window, total).prop_map(|(parts, window, total)| Step::Says { parts, window, total }),
        1 => select(vec![ModelFailureCode::ContextOverflow, ModelFailureCode::Transient]).prop_map(Step::Fails),
    ]
}

fn outside() -> impl Strategy<Value = Outside> {
    (
        prop::collection::vec(step(), 0..10),
        prop::collection::vec(select(vec!["They talked.", "Briefly.", "So.", ""]), 1..5),
        prop::collection::vec((0..3_usize, any::<bool>()), 1..6),
        prop::collection::hash_set(0..8_usize, 0..3),
        1..5_u32,
    )
        .prop_map(|(mut steps, summaries, answers, steers, yield_after)| {
            steps.push(Step::Says { parts: vec![text("last")], window: None, total: None });
            let summaries = summaries.into_iter().map(str::to_owned).collect();
            Outside { steps, summaries, answers, steers, yield_after }
        })
}

/// The outside while a turn is played: what it gave once for an effect it gives again.
struct Play<'a> {
    outside: &'a Outside,
    picks: std::iter::Cycle<std::slice::Iter<'a, usize>>,
    given: HashMap<EffectId, Option<EffectOutcome>>,
    models: usize,
    summaries: usize,
    /// How many more outcomes are recorded before the process dies, once.
    crash_in: Option<usize>,
    trace: Trace,
    seen: HashSet<EffectId>,
}

/// A segment's journal.
#[derive(Default)]
struct Journal {
    outcomes: HashMap<EffectId, EffectOutcome>,
    steers: VecDeque<(EffectId, Vec<Input>)>,
}

enum Ended {
    Crashed,
    Output(TurnOutput),
}

impl Play<'_> {
    fn turn(mut self, begin: Start) -> Trace {
        let (mut start, mut journal, mut pauses) = (begin, Journal::default(), 0);
        loop {
            let output = match self.segment(&start, &mut journal) {
                Ended::Crashed => continue,
                Ended::Output(output) => output,
            };
            let answers = match &output.end {
                TurnEnd::Yielded { .. } => Vec::new(),
                TurnEnd::Paused { interactions, .. } => {
                    let (more, yes) = self.outside.answers[pauses % self.outside.answers.len()];
                    pauses += 1;
                    let said = if yes { Said::Approved } else { Said::Denied };
                    let answer = |id| Answer { interaction_id: id, said: said.clone() };
                    interactions.iter().rev().take(1 + more).map(|asked| answer(asked.id.clone())).collect()
                }
                TurnEnd::Completed { .. } | TurnEnd::Failed { .. } | TurnEnd::Uncertain => {
                    self.trace.transcript = start.transcript.iter().map(|line| line.entry().clone()).collect();
                    let edits = output.edits.iter().cloned();
                    edits.for_each(|edit| edit.apply(&mut self.trace.transcript).unwrap());
                    self.trace.outputs.push(output);
                    return self.trace;
                }
            };
            start = after(&start, &output, answers);
            self.trace.outputs.push(output);
            journal = Journal::default();
        }
    }

    fn segment(&mut self, start: &Start, journal: &mut Journal) -> Ended {
        let mut run = Run::new(start.clone());
        let (mut replayed, mut steers) = (0, journal.steers.clone());
        while run.output().is_none() {
            let mut open: Vec<Effect> = run.wants();
            assert!(!open.is_empty(), "the run waits for nothing");
            if let Some(inputs) = self.steering(&open, &mut steers, journal, replayed) {
                run.steer(&open[0].id, inputs).unwrap();
                continue;
            }
            for effect in &open {
                if self.seen.insert(effect.id.clone()) {
                    self.trace.effects.push((effect.id.clone(), effect.request_hash.clone()));
                }
            }
            while !open.is_empty() {
                let recorded = open.iter().position(|effect| journal.outcomes.contains_key(&effect.id));
                let at = recorded.unwrap_or_else(|| self.picks.next().map_or(0, |pick| pick % open.len()));
                let effect = open.remove(at);
                let outcome = match journal.outcomes.get(&effect.id) {
                    Some(outcome) => {
                        replayed += 1;
                        Some(outcome.clone())
                    }
                    None => {
                        if self.crashes() {
                            return Ended::Crashed;
                        }
                        if replayed == journal.outcomes.len() && run.steps() >= self.outside.yield_after {
                            run.yield_at_boundary();
                        }
                        self.outcome(&effect)
                    }
                };
                match outcome {
                    None => run.uncertain(&effect.id).unwrap(),
                    Some(outcome) => {
                        let recorded = run.resolve(&effect.id, outcome).unwrap();
                        if journal.outcomes.insert(effect.id, recorded).is_none() {
                            replayed += 1;
                        }
                    }
                }
            }
        }
        Ended::Output(run.output().unwrap().clone())
    }

    /// What the turn reads before this model call: as recorded, or new.
    fn steering(
        &mut self,
        open: &[Effect],
        recorded: &mut VecDeque<(EffectId, Vec<Input>)>,
        journal: &mut Journal,
        replayed: usize,
    ) -> Option<Vec<Input>> {
        let [effect @ Effect { request: EffectRequest::Model(_), .. }] = open else { return None };
        if let Some(at) = recorded.iter().position(|(model, _)| *model == effect.id) {
            return recorded.remove(at).map(|(_, inputs)| inputs);
        }
        let is_new = !self.given.contains_key(&effect.id) && replayed == journal.outcomes.len();
        let is_steered = journal.steers.iter().any(|(model, _)| *model == effect.id);
        if !is_new || is_steered || !self.outside.steers.contains(&self.models) || self.seen.contains(&effect.id) {
            return None;
        }
        let inputs = vec![Input::Content(format!("steer {}", self.models).into())];
        journal.steers.push_back((effect.id.clone(), inputs.clone()));
        Some(inputs)
    }

    fn crashes(&mut self) -> bool {
        match &mut self.crash_in {
            Some(0) => {
                self.crash_in = None;
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }

    /// `None`: the answer is lost.
    fn outcome(&mut self, effect: &Effect) -> Option<EffectOutcome> {
        if let Some(given) = self.given.get(&effect.id) {
            return given.clone();
        }
        let outcome = match &effect.request {
            EffectRequest::Summary(_) => {
                self.summaries += 1;
                Some(answer(vec![text(&self.outside.summaries[self.summaries % self.outside.summaries.len()])]))
            }
            EffectRequest::Model(_) => {
                let step = self.outside.steps.get(self.models).or(self.outside.steps.last());
                self.models += 1;
                Some(match step.expect("a script has a last step") {
                    Step::Fails(code) => failure(*code),
                    Step::Says { parts, window, total } => {
                        let said = Candidate { window: *window, size: *total, ..candidate(parts.clone()) };
                        EffectOutcome::Model(ModelOutcome::Completed(said))
                    }
                })
            }
            EffectRequest::Tool(request) => match (request.refusal(), request.input.as_str()) {
                (Some(refusal), _) => Some(EffectOutcome::Tool(refusal)),
                (None, "[\"lost\"]") => None,
                (None, "[\"fail\"]") => Some(EffectOutcome::Tool(ToolOutcome::failed("sandbox.not_found", "no"))),
                (None, _) => Some(EffectOutcome::Tool(done(&format!("\"{}\"", effect.id)))),
            },
        };
        self.given.insert(effect.id.clone(), outcome.clone());
        outcome
    }
}

fn play(begin: Start, outside: &Outside, picks: &[usize], crash_in: Option<usize>) -> Trace {
    let trace = Trace { effects: Vec::new(), outputs: Vec::new(), transcript: Vec::new() };
    let play = Play {
        outside,
        picks: picks.iter().cycle(),
        given: HashMap::new(),
        models: 0,
        summaries: 0,
        crash_in,
        trace,
        seen: HashSet::new(),
    };
    play.turn(begin)
}

proptest! {
    #[test]
    fn a_crash_at_any_moment_changes_nothing(
        outside in outside(), picks in prop::collection::vec(0..5_usize, 1..9), crash in 0..40_usize,
    ) {
        let calm = play(careful("t", Vec::new()), &outside, &picks, None);
        let crashed = play(careful("t", Vec::new()), &outside, &picks, Some(crash));
        let in_any_order = |mut trace: Trace| { trace.effects.sort(); trace };
        prop_assert_eq!(in_any_order(crashed), in_any_order(calm));
    }

    #[test]
    fn the_order_of_arrival_changes_nothing(
        outside in outside(), picks in prop::collection::vec(0..5_usize, 1..9),
    ) {
        let in_order = play(careful("t", Vec::new()), &outside, &[0], None);
        let shuffled = play(careful("t", Vec::new()), &outside, &picks, None);
        prop_assert_eq!(shuffled, in_order);
    }

    #[test]
    fn turns_leave_whole_steps_and_no_id_comes_twice(
        outsides in prop::collection::vec(outside(), 1..4), cut in any::<Index>(),
    ) {
        let (mut transcript, mut effects) = (Vec::new(), HashSet::new());
        for (turn, outside) in outsides.iter().enumerate() {
            let trace = play(careful(&format!("turn-{turn}"), transcript.clone()), outside, &[cut.index(5)], None);
            for (id, _) in &trace.effects {
                prop_assert!(effects.insert(id.clone()), "{id} twice");
            }
            let ended = trace.outputs.last().map(|output| &output.end);
            if matches!(ended, Some(TurnEnd::Completed { .. })) {
                transcript = trace.transcript;
            }
            check_transcript(&transcript)?;
        }
    }
}

/// Every call has its result, in order, no call id comes twice, and a summary stands first or nowhere.
fn check_transcript(transcript: &[Entry]) -> Result<(), TestCaseError> {
    let (mut calls, mut answered) = (Vec::new(), Vec::new());
    for (at, entry) in transcript.iter().enumerate() {
        match entry {
            Entry::Candidate { candidate, .. } => {
                prop_assert_eq!(&calls, &answered);
                calls.extend(candidate.tool_calls().map(|call| call.call_id.clone()));
            }
            Entry::ToolResults(results) => answered.extend(results.iter().map(|result| result.call_id.clone())),
            Entry::Compaction(_) => prop_assert_eq!(at, 0),
            Entry::Input(_) | Entry::Final { .. } => {}
        }
    }
    prop_assert_eq!(&calls, &answered);
    prop_assert_eq!(calls.iter().collect::<HashSet<_>>().len(), calls.len());
    Ok(())
}
