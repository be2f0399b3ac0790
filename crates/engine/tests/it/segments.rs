//! Turns of several segments: yields and approvals.

use nylorun_domain::checkpoint::{Answer, Interaction, Said, SavedCall};
use nylorun_domain::effect::{EffectOutcome, ToolTarget};
use nylorun_domain::model::PromptItem;
use nylorun_domain::segment::{SegmentInput, TurnEnd, TurnOutput};
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::transcript::{Entry, Input, Line};
use nylorun_engine::{Run, Start};

use crate::support::{after, answer, call, careful, done, items, only, prompt, start, text, tool};

/// Plays the segment's model call with this answer.
fn answered(run: &mut Run, parts: Vec<nylorun_domain::model::OutputPart>) {
    let model = only(run);
    run.resolve(&model.id, answer(parts)).unwrap();
}

fn output(run: &Run) -> TurnOutput {
    run.output().expect("the segment ended").clone()
}

fn paused(run: &Run) -> Vec<Interaction> {
    match output(run).end {
        TurnEnd::Paused { interactions, .. } => interactions,
        other => panic!("{other:?}"),
    }
}

fn said(interaction: &Interaction, said: Said) -> Answer {
    Answer { interaction_id: interaction.id.clone(), said }
}

/// A turn that is paused after `calls`, with the outcome `1` of each call that did not wait.
fn paused_at(calls: Vec<nylorun_domain::model::OutputPart>) -> (Start, Run) {
    let begin = careful("t", Vec::new());
    let mut run = Run::new(begin.clone());
    answered(&mut run, calls);
    for effect in run.wants() {
        run.resolve(&effect.id, EffectOutcome::Tool(done("1"))).unwrap();
    }
    (begin, run)
}

#[test]
fn a_yield_ends_between_two_steps_and_the_next_segment_asks_what_this_one_would_have() {
    let begin = start("t", Vec::new());
    let (mut yielding, mut whole) = (Run::new(begin.clone()), Run::new(begin.clone()));
    for run in [&mut yielding, &mut whole] {
        answered(run, vec![call("a", "bash", "{}"), call("b", "read", "{}")]);
    }
    let tools = yielding.wants();
    yielding.yield_at_boundary();
    yielding.resolve(&tools[0].id, EffectOutcome::Tool(done("1"))).unwrap();
    assert_eq!(yielding.output(), None, "a result is missing");
    yielding.resolve(&tools[1].id, EffectOutcome::Tool(done("2"))).unwrap();
    for (effect, outcome) in whole.wants().iter().zip(["1", "2"]) {
        whole.resolve(&effect.id, EffectOutcome::Tool(done(outcome))).unwrap();
    }
    let ended = output(&yielding);
    assert!(yielding.wants().is_empty());
    let TurnEnd::Yielded { state } = &ended.end else { panic!("{ended:?}") };
    assert_eq!((state.turn_start, state.steps, state.calls.len()), (0, 1, 0));
    assert_eq!((ended.edits.len(), ended.edits[0].entries.len()), (1, 3));

    let mut next = Run::new(after(&begin, &ended, Vec::new()));
    let (resumed, unbroken) = (only(&mut next), only(&mut whole));
    assert_eq!(prompt(&resumed), prompt(&unbroken));
    assert!(resumed.id.as_str().starts_with("t:1:model:"), "{}", resumed.id);
    assert_ne!(resumed.invocation_id, unbroken.invocation_id);
    assert_eq!((next.steps(), whole.steps()), (1, 2));
    next.resolve(&resumed.id, answer(vec![text("Done")])).unwrap();
    let edits = output(&next).edits;
    assert_eq!((edits[0].keep, edits[0].length), (3, 5));
}

#[test]
fn a_message_that_steers_is_read_before_the_model_call_that_was_about_to_begin() {
    let mut run = Run::new(start("t", Vec::new()));
    answered(&mut run, vec![call("a", "read", "{}")]);
    let read = only(&mut run);
    run.resolve(&read.id, EffectOutcome::Tool(done("1"))).unwrap();
    let before = only(&mut run);
    run.steer(&before.id, vec![Input::Content("rather this".into()), Input::Content("and that".into())]).unwrap();
    let steered = only(&mut run);
    assert_eq!(steered.id, before.id, "the same call of the same step");
    assert_ne!(steered.request_hash, before.request_hash);
    let said = |text: &str| PromptItem::User(vec![text.into()]);
    assert_eq!(items(&steered)[3..], [said("rather this"), said("and that")]);
    assert_eq!(run.steps(), 2);
    run.resolve(&steered.id, answer(vec![text("Done")])).unwrap();
    assert_eq!(output(&run).edits[0].entries.len(), 7);
    assert!(run.steer(&steered.id, Vec::new()).is_err(), "nothing is about to begin");
}

#[test]
fn a_turn_that_yields_at_every_step_ends_at_the_limit_of_a_turn() {
    let mut start = start("t", Vec::new());
    let end = loop {
        let mut run = Run::new(start.clone());
        if let Some(ended) = run.output() {
            break ended.end.clone();
        }
        run.yield_at_boundary();
        answered(&mut run, vec![call("", "read", "{}")]);
        let read = only(&mut run);
        run.resolve(&read.id, EffectOutcome::Tool(done("1"))).unwrap();
        start = after(&start, &output(&run), Vec::new());
    };
    let TurnEnd::Failed { code, .. } = end else { panic!("{end:?}") };
    assert_eq!((code.as_str(), start.segment), ("turn.step_limit", nylorun_engine::MAX_STEPS));
}

#[test]
fn a_call_that_needs_approval_waits_while_the_others_run() {
    let begin = careful("t", Vec::new());
    let mut run = Run::new(begin.clone());
    answered(&mut run, vec![call("a", "deploy", r#"{"to":"live"}"#), call("b", "bash", "{}")]);
    let bash = only(&mut run);
    assert_eq!(tool(&bash).tool_name, "bash");
    run.resolve(&bash.id, EffectOutcome::Tool(done("1"))).unwrap();
    let asked = paused(&run);
    let [question] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(question.id.as_str(), format!("t:0:interaction:{}", question.invocation_id));
    let words = (question.call_id.as_str(), question.tool_name.as_str(), question.kind.as_str());
    assert_eq!((words, question.prompt.as_str()), (("a", "deploy", "approval"), "Allow this call of the tool deploy?"));
    let ended = output(&run);
    assert_eq!(ended.edits[0].entries.len(), 2, "the message and the answer; results come when all are there");

    let mut next = Run::new(after(&begin, &ended, vec![said(question, Said::Approved)]));
    let deploy = only(&mut next);
    assert_eq!(deploy.id.as_str(), format!("t:1:tool:{}", question.invocation_id));
    assert_eq!(tool(&deploy).input.as_str(), r#"{"to":"live"}"#);
    next.resolve(&deploy.id, EffectOutcome::Tool(done("2"))).unwrap();
    let model = only(&mut next);
    let PromptItem::ToolResults(results) = &items(&model)[2] else { panic!() };
    assert_eq!(results.iter().map(|result| result.outcome.clone()).collect::<Vec<_>>(), [done("2"), done("1")]);
}

#[test]
fn a_denied_call_gives_denied_and_an_approved_one_goes_to_its_endpoint() {
    for (answer, target, refusal) in
        [(Said::Denied, ToolTarget::Denied, Some("denied")), (Said::Approved, ToolTarget::Http, None)]
    {
        let (begin, run) = paused_at(vec![call("a", "deploy", "{}")]);
        let mut next = Run::new(after(&begin, &output(&run), vec![said(&paused(&run)[0], answer)]));
        let deploy = only(&mut next);
        assert_eq!(tool(&deploy).target, target);
        let refused = tool(&deploy).refusal().map(|outcome| match outcome {
            ToolOutcome::Failed { code, .. } => code,
            other => panic!("{other:?}"),
        });
        assert_eq!(refused.as_deref(), refusal);
    }
}

#[test]
fn answers_may_come_one_by_one_and_what_is_open_stays_open() {
    let calls = vec![call("a", "deploy", "{}"), call("b", "bash", "{}"), call("c", "files__put", "{}")];
    let (begin, run) = paused_at(calls);
    let asked = paused(&run);
    assert_eq!(asked.iter().map(|one| one.tool_name.as_str()).collect::<Vec<_>>(), ["deploy", "files__put"]);
    let second = after(&begin, &output(&run), vec![said(&asked[1], Said::Denied)]);
    let mut run = Run::new(second.clone());
    let put = only(&mut run);
    run.resolve(&put.id, EffectOutcome::Tool(tool(&put).refusal().unwrap())).unwrap();
    assert_eq!(paused(&run), asked[..1], "the first question under its first id");
    assert_eq!(output(&run).edits, [], "nothing came to the transcript");
    let TurnEnd::Paused { state, .. } = output(&run).end else { panic!() };
    assert!(matches!(&state.calls[..], [SavedCall::Waiting(_), SavedCall::Done(_), SavedCall::Done(_)]));

    let mut run = Run::new(after(&second, &output(&run), vec![said(&asked[0], Said::Approved)]));
    let deploy = only(&mut run);
    run.resolve(&deploy.id, EffectOutcome::Tool(done("3"))).unwrap();
    assert!(run.output().is_none());
    assert_eq!(items(&only(&mut run)).len(), 3);
}

#[test]
fn only_calls_that_could_run_are_asked_about() {
    let calls = vec![
        call("a", "deploy", "{\"to"),
        call("b", "nope", "{}"),
        call("c", "files__list", "{}"),
        call("d", "files__drop", "{}"),
        call("e", "files__put", "{}"),
    ];
    let mut run = Run::new(careful("t", Vec::new()));
    answered(&mut run, calls);
    let targets: Vec<_> = run.wants().iter().map(|effect| tool(effect).target).collect();
    let expected =
        [ToolTarget::MalformedInput, ToolTarget::UnknownTool, ToolTarget::Unavailable, ToolTarget::UnknownTool];
    assert_eq!(targets, expected);
}

#[test]
fn an_uncertain_effect_comes_before_questions() {
    let mut run = Run::new(careful("t", Vec::new()));
    answered(&mut run, vec![call("a", "deploy", "{}"), call("b", "bash", "{}")]);
    let bash = only(&mut run);
    run.uncertain(&bash.id).unwrap();
    assert_eq!(output(&run), TurnOutput { end: TurnEnd::Uncertain, edits: Vec::new() });
}

#[test]
fn an_answer_to_nothing_and_one_of_another_kind_leave_the_question_open() {
    let (begin, run) = paused_at(vec![call("a", "deploy", "{}")]);
    let question = &paused(&run)[0];
    let value = said(question, Said::Value(nylorun_domain::json::Json::null()));
    let stranger =
        Answer { interaction_id: nylorun_domain::id::InteractionId::from_trusted("x"), said: Said::Approved };
    let next = Run::new(after(&begin, &output(&run), vec![value, stranger]));
    assert_eq!(paused(&next), std::slice::from_ref(question));
}

#[test]
fn a_tool_that_asks_is_called_again_with_the_answer() {
    let begin = start("t", Vec::new());
    let mut run = Run::new(begin.clone());
    answered(&mut run, vec![call("a", "bash", "{}"), call("b", "read", "{}")]);
    let tools = run.wants();
    let asks = EffectOutcome::Asked { kind: "form".to_owned(), prompt: "Which one?".to_owned() };
    assert_eq!(run.resolve(&tools[0].id, asks.clone()), Ok(asks));
    run.resolve(&tools[1].id, EffectOutcome::Tool(done("1"))).unwrap();
    let asked = paused(&run);
    let [question] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(question.id.as_str(), format!("t:0:interaction:{}", tools[0].invocation_id));
    let words = (question.kind.as_str(), question.prompt.as_str(), question.call_id.as_str());
    assert_eq!(words, ("form", "Which one?", "a"));

    let value = nylorun_domain::json::Json::from_trusted("{\"n\": 2}");
    let second = after(&begin, &output(&run), vec![said(question, Said::Value(value.clone()))]);
    let mut next = Run::new(second.clone());
    let again = only(&mut next);
    assert_eq!(
        (again.invocation_id.clone(), tool(&again).resume.clone()),
        (tools[0].invocation_id.clone(), Some(value))
    );
    assert_ne!(again.id, tools[0].id);
    // It may ask again, under an id of the new segment.
    next.resolve(&again.id, EffectOutcome::Asked { kind: "form".to_owned(), prompt: "Sure?".to_owned() }).unwrap();
    assert_eq!(paused(&next)[0].id.as_str(), format!("t:1:interaction:{}", tools[0].invocation_id));
}

#[test]
fn a_checkpoint_that_does_not_fit_the_record_fails_the_turn() {
    let (begin, run) = paused_at(vec![call("a", "deploy", "{}")]);
    let mut resumed = after(&begin, &output(&run), Vec::new());
    let SegmentInput::Resume { state, .. } = &mut resumed.input else { panic!() };
    state.calls.push(SavedCall::Done(done("1")));
    let end = output(&Run::new(resumed)).end;
    let TurnEnd::Failed { code, .. } = end else { panic!("{end:?}") };
    assert_eq!(code, "execution.incompatible");
}

#[test]
fn later_segments_know_every_call_id_of_the_turn() {
    let (begin, run) = paused_at(vec![call("a", "deploy", "{}")]);
    let mut next = Run::new(after(&begin, &output(&run), vec![said(&paused(&run)[0], Said::Approved)]));
    let deploy = only(&mut next);
    next.resolve(&deploy.id, EffectOutcome::Tool(done("1"))).unwrap();
    answered(&mut next, vec![call("a", "bash", "{}")]);
    assert_ne!(tool(&only(&mut next)).call_id.as_str(), "a");
    let history = after(&begin, &output(&run), Vec::new()).transcript;
    let history: Vec<&Entry> = history.iter().map(Line::entry).collect();
    assert!(matches!(history[..], [Entry::Input(_), Entry::Candidate { .. }]));
}
