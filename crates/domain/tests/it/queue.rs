//! Messages that come while a turn is active.

use nylorun_domain::change::{EffectChange, QueueChange, SessionChange, WakeChange};
use nylorun_domain::effect::{EffectKind, EffectOutcome, EffectStatus};
use nylorun_domain::event::{Payload, Removed};
use nylorun_domain::id::TurnId;
use nylorun_domain::json::{Json, Text};
use nylorun_domain::queue::{MAX_QUEUED, QueueMode, QueuedMessage};
use nylorun_domain::segment::{IntentAnswer, Next, TurnEnd, TurnOutput};
use nylorun_domain::session::{Session, Status};
use nylorun_domain::tool::WorkspaceTool;
use nylorun_domain::transcript::Input;
use nylorun_domain::turn::{
    Beside, Cancel, Journal, Message, Refusal, Step, WhenBusy, cancel, drop_queue, message, remove_queued, step,
};

use crate::turn::{
    answer, assert_sound, decide, head, intended, kinds, model_effect, report, session, tool_effect, turn,
};

fn input(text: &str) -> Input {
    Input::Content(Text::from(text))
}

fn say(before: &Session, when_busy: WhenBusy) -> Result<SessionChange, Refusal> {
    let variant = Some((Json::from_trusted("{}"), "v".to_owned()));
    let said = Message { head: head("k"), input: input("next"), variant, when_busy };
    decide(|stamp| message(before, said, None, stamp))
}

/// What a session with one waiting message is after `say`, and the message.
fn waiting(when_busy: WhenBusy) -> (Session, QueuedMessage) {
    let change = say(&session(Status::Running), when_busy).expect("it may wait");
    let [QueueChange::Put(queued)] = &change.queue[..] else { panic!("{:?}", change.queue) };
    (change.session.clone(), (**queued).clone())
}

fn take_step(before: &Session, journal: &Journal, next: &Next, queued: &[QueuedMessage]) -> Step {
    let beside = Beside { queued: queued.to_vec(), ..Beside::default() };
    let reports = match next {
        Next::Output(_) => vec![report("1", answer("x"))],
        Next::Nothing | Next::Intents(_) => Vec::new(),
    };
    let base = SessionChange::of(before);
    let step = decide(|stamp| step(base, &turn(), journal, reports, next, &beside, stamp)).expect("a step");
    assert_sound(before, &step.change);
    step
}

fn ended(end: TurnEnd) -> Next {
    Next::Output(TurnOutput { end, edits: Vec::new() })
}

#[test]
fn a_message_waits_only_while_a_turn_is_active_and_only_when_it_says_so() {
    for status in Status::ALL {
        for (when_busy, mode) in [(WhenBusy::Queue, QueueMode::Queue), (WhenBusy::Steer, QueueMode::Steer)] {
            let before = session(*status);
            let change = say(&before, when_busy).expect("it begins a turn or waits");
            assert_sound(&before, &change);
            if status.accepts_message() {
                assert_eq!(kinds(&change), ["message"]);
                continue;
            }
            assert_eq!(kinds(&change), ["queued"]);
            assert_eq!(change.session.status, *status, "the active turn is not touched");
            assert_eq!((change.session.queued, change.session.steers), (1, i64::from(mode == QueueMode::Steer)));
            assert_eq!(change.wake, WakeChange::Keep);
            let [QueueChange::Put(queued)] = &change.queue[..] else { panic!("{:?}", change.queue) };
            assert_eq!((queued.mode, queued.seq, &queued.input), (mode, before.head, &input("next")));
            let record = change.command.expect("it is remembered");
            let own_turn = TurnId::from_trusted(queued.id.as_str());
            let expected = if mode == QueueMode::Queue { own_turn } else { turn() };
            assert_eq!(record.turn_id, Some(expected), "{status:?}");
        }
    }
    let full = Session { queued: MAX_QUEUED, ..session(Status::Running) };
    let refused = say(&full, WhenBusy::Queue).err();
    assert_eq!(refused, Some(Refusal::QueueFull { active_turn_id: Some(turn()) }));
}

#[test]
fn the_first_message_begins_the_next_turn_in_the_transaction_that_ends_this_one() {
    let ends = [
        (TurnEnd::Completed { output: Json::null() }, "completed"),
        (TurnEnd::Failed { code: "c".into(), message: "m".into() }, "failed"),
    ];
    for (end, event) in ends {
        for when_busy in [WhenBusy::Queue, WhenBusy::Steer] {
            let (before, queued) = waiting(when_busy);
            let journal = intended(&[model_effect("1")]);
            let change = take_step(&before, &journal, &ended(end.clone()), std::slice::from_ref(&queued)).change;
            assert_eq!(kinds(&change), ["assistant", event, "message"], "{when_busy:?}");
            let after = &change.session;
            let begun = Some(TurnId::from_trusted(queued.id.as_str()));
            assert_eq!((after.status, &after.active_turn_id, &after.error), (Status::Runnable, &begun, &None));
            assert_eq!((after.queued, after.steers, after.segment), (0, 0, 0));
            assert_eq!((&after.last_turn_id, &after.turn_manifest_hash), (&Some(turn()), &Some("v".to_owned())));
            assert_eq!(after.input_seq, Some(after.head - 1));
            assert_eq!(change.queue, [QueueChange::Remove(queued.id)]);
            assert!(matches!(change.wake, WakeChange::Put(_)));
            let Payload::CommandMessage { input: said, idempotency_key, .. } = &change.events[2].payload else {
                panic!()
            };
            assert_eq!((said, idempotency_key.as_str()), (&input("next"), "k"));
        }
    }
}

#[test]
fn the_turn_reads_what_steers_it_before_its_next_model_call_and_the_journal_says_where() {
    let (before, queued) = waiting(WhenBusy::Steer);
    let model = model_effect("2");
    let next = Next::Intents(vec![model.clone()]);
    let first = take_step(&before, &Journal::default(), &next, std::slice::from_ref(&queued));
    assert_eq!(first.answers, [IntentAnswer::Steered(vec![input("next")])]);
    assert_eq!(kinds(&first.change), ["steered"]);
    assert_eq!((first.change.session.queued, first.change.session.steers), (0, 0));
    let [EffectChange::Insert(rows)] = &first.change.effects[..] else { panic!("{:?}", first.change.effects) };
    let row = &rows[0];
    assert_eq!(
        (row.id.as_str(), row.kind, row.status),
        ("t:0:steer:inv-2-000", EffectKind::Steer, EffectStatus::Completed)
    );
    let outcome = EffectOutcome::Steer { model: model.id.clone(), inputs: vec![input("next")] };
    assert_eq!(row.outcome, Some(outcome));

    // The engine asks anew; another message that came meanwhile is read under the next number.
    let second = take_step(&before, &first.journal, &next, std::slice::from_ref(&queued));
    let [EffectChange::Insert(rows)] = &second.change.effects[..] else { panic!("{:?}", second.change.effects) };
    assert_eq!(rows[0].id.as_str(), "t:0:steer:inv-2-001");
    let third = take_step(&before, &second.journal, &next, &[]);
    assert_eq!(third.answers, [IntentAnswer::Execute]);
    // A call whose intent is recorded may have begun: it is never steered.
    let fourth = take_step(&before, &third.journal, &next, std::slice::from_ref(&queued));
    assert_eq!(fourth.answers, [IntentAnswer::Execute]);
}

#[test]
fn only_a_model_call_reads_and_only_what_steers() {
    let (before, steer) = waiting(WhenBusy::Steer);
    let tools = Next::Intents(vec![tool_effect("1", WorkspaceTool::Bash)]);
    let step = take_step(&before, &Journal::default(), &tools, std::slice::from_ref(&steer));
    assert_eq!((step.answers, step.change.queue), (vec![IntentAnswer::Execute], vec![]));
    let (before, queued) = waiting(WhenBusy::Queue);
    let model = Next::Intents(vec![model_effect("1")]);
    let step = take_step(&before, &Journal::default(), &model, std::slice::from_ref(&queued));
    assert_eq!((step.answers, step.change.queue), (vec![IntentAnswer::Execute], vec![]));
}

#[test]
fn what_an_earlier_turn_left_unread_keeps_its_place() {
    let (before, steer) = waiting(WhenBusy::Steer);
    // The turn that is active now began after the message was said: with one that waited before it.
    let before = Session { input_seq: Some(steer.seq + 1), ..before };
    let model = Next::Intents(vec![model_effect("1")]);
    let step = take_step(&before, &Journal::default(), &model, std::slice::from_ref(&steer));
    assert_eq!((step.answers, step.change.queue), (vec![IntentAnswer::Execute], vec![]));
    let journal = intended(&[model_effect("1")]);
    let done = ended(TurnEnd::Completed { output: Json::null() });
    let change = take_step(&before, &journal, &done, std::slice::from_ref(&steer)).change;
    assert_eq!(kinds(&change), ["assistant", "completed", "message"]);
    assert_eq!((change.session.queued, change.session.steers), (0, 0));
}

#[test]
fn a_message_can_be_taken_back_and_a_cancel_drops_them_all() {
    let (before, queued) = waiting(WhenBusy::Steer);
    let change = decide(|stamp| remove_queued(&before, &queued, stamp));
    assert_sound(&before, &change);
    assert_eq!((change.session.queued, change.session.steers), (0, 0));
    assert_eq!(change.queue, [QueueChange::Remove(queued.id.clone())]);
    let removed = |reason| Payload::MessageRemoved { message_id: queued.id.clone(), reason };
    assert_eq!(change.events[0].payload, removed(Removed::Request));

    let change = decide(|stamp| {
        let mut change = cancel(&before, &[], Cancel { head: head("c"), reason: None }, stamp);
        drop_queue(&mut change, std::slice::from_ref(&queued), stamp);
        change
    });
    assert_sound(&before, &change);
    assert_eq!(kinds(&change), ["cancelled", "removed"]);
    assert_eq!(change.events[1].payload, removed(Removed::Cancel));
    assert_eq!((change.session.status, change.session.queued), (Status::Cancelled, 0));
    assert_eq!(change.queue, [QueueChange::Clear]);
}
