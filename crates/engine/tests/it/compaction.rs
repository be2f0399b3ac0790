//! Compaction, step by step.

use nylorun_domain::compaction::{Compacted, Compaction, SUMMARY_HEADING, SUMMARY_TASK, Trigger};
use nylorun_domain::effect::{Effect, EffectOutcome, EffectRequest};
use nylorun_domain::json::Text;
use nylorun_domain::model::{Candidate, ModelFailureCode, ModelOutcome, OutputPart, PromptItem, UserPart, Window};
use nylorun_domain::segment::{SegmentInput, TurnEnd};
use nylorun_domain::transcript::{Entry, Input};
use nylorun_engine::{Run, Start};

use crate::support::{answer, call, candidate, done, failure, items, only, prompt, start, text, tool};

/// A window of 1,000 tokens: 250 are kept free, 300 stay as they are.
const WINDOW: Window = Window { context: 1_000, output: 250 };

fn sized(parts: Vec<OutputPart>, total: i64) -> Candidate {
    Candidate { window: Some(WINDOW), size: Some(total), ..candidate(parts) }
}

fn said(invocation: &str, candidate: Candidate) -> Entry {
    let invocation_id = nylorun_domain::id::InvocationId::from_trusted(invocation);
    Entry::Candidate { invocation_id, candidate: candidate.into() }
}

fn asked(text: &str) -> Entry {
    Entry::Input(Input::Content(text.into()))
}

/// A history of `turns` turns of about 100 tokens, the last of which was reported to make `total`.
fn history(turns: usize, total: i64) -> Vec<Entry> {
    let long = "x".repeat(380);
    let turn = |n: usize| {
        let usage = if n + 1 == turns { total } else { 10 };
        [asked(&format!("question {n}")), said(&format!("old-{n}"), sized(vec![text(&long)], usage))]
    };
    (0..turns).flat_map(turn).collect()
}

fn said_in(part: &UserPart) -> String {
    match part {
        UserPart::Text(text) => text.lossy().into_owned(),
        UserPart::Image(image) => panic!("{image:?}"),
    }
}

fn summary(effect: &Effect) -> String {
    assert!(matches!(effect.request, EffectRequest::Summary(_)), "{effect:?}");
    let instructions = &prompt(effect).instructions[0];
    assert!(instructions.starts_with(SUMMARY_TASK), "{instructions}");
    match &items(effect)[..] {
        [PromptItem::User(parts)] => said_in(&parts[0]),
        other => panic!("{other:?}"),
    }
}

fn give(run: &mut Run, effect: &Effect, text: &str) -> Option<Compacted> {
    match run.resolve(&effect.id, answer(vec![OutputPart::Text(Text::from(text))])).unwrap() {
        EffectOutcome::Summary { compacted, .. } => compacted,
        other => panic!("{other:?}"),
    }
}

fn with_history(entries: Vec<Entry>) -> Start {
    start("t", entries)
}

#[test]
fn a_conversation_near_to_the_windows_end_is_compacted_before_the_next_call() {
    for (total, compacts) in [(748, false), (749, true)] {
        // "Hello" is two tokens more than what was reported; 750 still leave room.
        let mut run = Run::new(with_history(history(8, total)));
        let effect = only(&mut run);
        assert_eq!(matches!(effect.request, EffectRequest::Summary(_)), compacts, "{total}");
    }
    let mut run = Run::new(with_history(history(8, 749)));
    let effect = only(&mut run);
    assert_eq!(effect.id.as_str(), "t:0:model:compaction-t_0:1");
    let asked_with = summary(&effect);
    assert!(asked_with.contains("[user]\nquestion 0") && asked_with.contains("[assistant]\nxxx"));
    assert!(asked_with.contains("question 4") && !asked_with.contains("question 5"), "{asked_with}");

    let compacted = give(&mut run, &effect, " They talked. ").expect("it was the only part");
    assert_eq!((compacted.trigger, compacted.tokens_before), (Trigger::Threshold, 751));
    assert!(compacted.tokens_after < 400, "{compacted:?}");
    let next = only(&mut run);
    assert!(matches!(next.request, EffectRequest::Model(_)));
    let items = &items(&next);
    assert_eq!(items[0], PromptItem::User(vec![format!("{SUMMARY_HEADING}\n\nThey talked.").into()]));
    assert_eq!(items.last(), Some(&PromptItem::User(vec!["Hello".into()])));
    assert_eq!(run.steps(), 1, "a summary is no step");

    run.resolve(&next.id, answer(vec![text("Bye")])).unwrap();
    let edits = &run.output().unwrap().edits;
    assert_eq!((edits.len(), edits[0].keep), (1, 0), "a snapshot");
    let expected = Entry::Compaction(Compaction { summary: "They talked.".into(), compacted });
    assert_eq!(edits[0].entries[0], expected);
    let reported = edits[0].entries.iter().filter_map(|entry| match entry {
        Entry::Candidate { candidate, .. } => candidate.usage,
        _ => None,
    });
    assert_eq!(reported.count(), 0, "what was reported of the whole says nothing of the rest");
}

#[test]
fn the_turns_own_message_stays_word_for_word_and_its_newest_step_whole() {
    let mut begin = with_history(history(8, 100));
    begin.input = SegmentInput::Message(Input::Content("do all of it".into()));
    let mut run = Run::new(begin);
    let model = only(&mut run);
    let calls = vec![call("a", "read", "{}")];
    run.resolve(&model.id, EffectOutcome::Model(ModelOutcome::Completed(sized(calls, 500)))).unwrap();
    let read = only(&mut run);
    let large = format!("\"{}\"", "y".repeat(4_000));
    run.resolve(&read.id, EffectOutcome::Tool(done(&large))).unwrap();
    let effect = only(&mut run);
    assert!(summary(&effect).contains("question 7"));
    give(&mut run, &effect, "They talked.").expect("it was the only part");
    let next = only(&mut run);
    let items = &items(&next);
    assert_eq!(items.len(), 4, "summary, message, answer, results");
    assert_eq!(items[1], PromptItem::User(vec!["do all of it".into()]));
    assert!(matches!((&items[2], &items[3]), (PromptItem::Assistant(_), PromptItem::ToolResults(_))));
}

#[test]
fn long_histories_are_summarized_part_by_part() {
    let mut run = Run::new(with_history(history(60, 800)));
    let mut parts = Vec::new();
    let compacted = loop {
        let effect = only(&mut run);
        parts.push((effect.id.as_str().to_owned(), summary(&effect)));
        if let Some(compacted) = give(&mut run, &effect, &format!("part {}", parts.len())) {
            break compacted;
        }
    };
    let ids: Vec<_> = parts.iter().map(|(id, _)| id.trim_start_matches("t:0:model:compaction-t_0:")).collect();
    assert_eq!(ids[..3], ["1", "1-2", "1-3"]);
    assert!(!parts[0].1.contains("Merge") && parts[1].1.contains("came before:\n\npart 1"));
    assert!(parts.iter().all(|(_, text)| text.len() < 4_600), "a part fits the window");
    assert_eq!(compacted.trigger, Trigger::Threshold);
    let next = only(&mut run);
    let PromptItem::User(shown) = &items(&next)[0] else { panic!() };
    assert!(said_in(&shown[0]).ends_with(&format!("part {}", parts.len())));
}

#[test]
fn an_overflow_is_compacted_once_and_again_after_a_call_that_succeeded() {
    let mut run = Run::new(with_history(history(8, 100)));
    let first = only(&mut run);
    run.resolve(&first.id, failure(ModelFailureCode::ContextOverflow)).unwrap();
    let effect = only(&mut run);
    assert!(effect.id.as_str().ends_with(":compaction-t_0:2-overflow"), "{}", effect.id);
    let compacted = give(&mut run, &effect, "They talked.").expect("it was the only part");
    assert_eq!(compacted.trigger, Trigger::Overflow);
    let again = only(&mut run);
    assert_ne!(again.id, first.id);
    let mut failing = Run::new(with_history(history(8, 100)));
    for (given, is_summary) in [(None, false), (Some("x"), true), (None, false)] {
        let effect = only(&mut failing);
        assert_eq!(matches!(effect.request, EffectRequest::Summary(_)), is_summary);
        match given {
            None => drop(failing.resolve(&effect.id, failure(ModelFailureCode::ContextOverflow)).unwrap()),
            Some(text) => drop(give(&mut failing, &effect, text)),
        }
    }
    let Some(TurnEnd::Failed { code, .. }) = failing.output().map(|output| &output.end) else { panic!() };
    assert_eq!(code, "model.context_overflow");
}

#[test]
fn what_cannot_be_compacted_fails_and_so_does_a_summary_that_fails_or_says_nothing() {
    let end = |run: &Run| match run.output().map(|output| output.end.clone()) {
        Some(TurnEnd::Failed { code, .. }) => code,
        other => panic!("{other:?}"),
    };
    let mut run = Run::new(with_history(Vec::new()));
    let model = only(&mut run);
    run.resolve(&model.id, failure(ModelFailureCode::ContextOverflow)).unwrap();
    assert_eq!(end(&run), "model.context_overflow");
    let outcomes = [
        (failure(ModelFailureCode::RateLimited), "model.rate_limited"),
        (answer(vec![text(" \n")]), "model.invalid_output"),
    ];
    for (outcome, code) in outcomes {
        let mut run = Run::new(with_history(history(8, 900)));
        let effect = only(&mut run);
        run.resolve(&effect.id, outcome).unwrap();
        assert_eq!(end(&run), code);
        assert_eq!(run.output().unwrap().edits, []);
    }
}

#[test]
fn an_earlier_summary_is_merged_and_ids_of_forgotten_calls_are_not_given_again() {
    let compacted = Compacted { trigger: Trigger::Threshold, tokens_before: 9, tokens_after: 1 };
    let mut entries = vec![Entry::Compaction(Compaction { summary: "Long ago.".into(), compacted })];
    entries.extend(history(8, 900));
    let mut run = Run::new(with_history(entries));
    let effect = only(&mut run);
    assert!(summary(&effect).starts_with("Merge what follows into this summary of what came before:\n\nLong ago.\n\n"));
    give(&mut run, &effect, "All of it.").expect("it was the only part");
    let model = only(&mut run);
    run.resolve(&model.id, answer(vec![call("a", "read", "{}")])).unwrap();
    let read = only(&mut run);
    assert_eq!(tool(&read).call_id.as_str(), format!("call_{}_0", model.invocation_id));
}
