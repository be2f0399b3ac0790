//! How segments end and turns go on: yields, pauses and answers.

use nylorun_domain::change::{CheckpointChange, EffectChange, SessionChange, WakeChange, WakeReason};
use nylorun_domain::checkpoint::{Answer, Checkpoint, Interaction, InteractionKind, Said, SavedCall, State, Wait};
use nylorun_domain::id::{CallId, InteractionId, InvocationId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::segment::{Next, TurnEnd, TurnOutput};
use nylorun_domain::session::{Session, Status};
use nylorun_domain::tool::WorkspaceTool;
use nylorun_domain::transcript::{Edit, Entry};
use nylorun_domain::turn::{
    Beside, Cancel, GiveAnswer, Journal, Message, Refusal, WhenBusy, cancel, give_answer, message, step,
};

use crate::turn::{
    answer, assert_sound, decide, head, intended, kinds, model_effect, report, session, tool_effect, turn, worker,
};

fn question(id: &str, kind: InteractionKind) -> Interaction {
    Interaction {
        id: InteractionId::from_trusted(id),
        invocation_id: InvocationId::from_trusted(format!("inv-{id}")),
        call_id: CallId::from_trusted(format!("call-{id}")),
        tool_name: "deploy".into(),
        kind,
        prompt: "Allow?".into(),
    }
}

fn approval(id: &str) -> Interaction {
    question(id, InteractionKind::Approval)
}

fn state(asked: &[Interaction]) -> State {
    State { turn_start: 2, steps: 4, calls: asked.iter().cloned().map(SavedCall::Waiting).collect() }
}

fn edit(keep: usize) -> Edit {
    Edit::append(keep, vec![Entry::Final { output: Json::null() }])
}

fn settle(before: &Session, journal: &Journal, end: TurnEnd, edits: Vec<Edit>, waits: Vec<Wait>) -> SessionChange {
    let next = Next::Output(TurnOutput { end, edits });
    let beside = Beside { waits, ..Beside::default() };
    let base = SessionChange::of(before);
    let step = decide(|stamp| step(base, &turn(), journal, vec![report("1", answer("x"))], &next, &beside, stamp));
    let change = step.expect("an output").change;
    assert_sound(before, &change);
    change
}

fn checkpoint_of(change: &SessionChange) -> &Checkpoint {
    match &change.checkpoint {
        CheckpointChange::Put(checkpoint) => checkpoint,
        other => panic!("{other:?}"),
    }
}

fn running(segment: u32) -> Session {
    Session { owner: Some(worker()), segment, ..session(Status::Running) }
}

#[test]
fn a_yield_leaves_a_checkpoint_and_a_wake_of_its_own() {
    // An earlier owner left the intent of a model call that the next segment makes under another id.
    let journal = intended(&[model_effect("1"), model_effect("2")]);
    let before = running(0);
    let change = settle(&before, &journal, TurnEnd::Yielded { state: state(&[]) }, vec![edit(2)], vec![]);
    assert_eq!(kinds(&change), ["assistant", "transcript"], "a yield is no event of the turn");
    let after = &change.session;
    assert_eq!((after.status, after.segment, &after.owner), (Status::Runnable, 1, &None));
    assert_eq!(after.active_turn_id, Some(turn()));
    let WakeChange::Put(wake) = &change.wake else { panic!("{:?}", change.wake) };
    assert_eq!((wake.id.as_str(), wake.reason), ("rollover:t:0", WakeReason::Rollover));
    let expected =
        Checkpoint { turn_id: turn(), segment: 1, state: state(&[]), answers: Vec::new(), waits: Vec::new() };
    assert_eq!(checkpoint_of(&change), &expected);
    let forgotten = EffectChange::Forget { id: nylorun_domain::id::EffectId::from_trusted("2") };
    assert!(change.effects.contains(&forgotten), "{:?}", change.effects);
}

#[test]
fn a_pause_asks_and_keeps_the_turn_active() {
    let journal = intended(&[model_effect("1")]);
    let asked = vec![approval("a"), approval("b")];
    let end = TurnEnd::Paused { interactions: asked.clone(), state: state(&asked) };
    let change = settle(&running(0), &journal, end, vec![edit(2)], vec![]);
    assert_eq!(kinds(&change), ["assistant", "transcript", "paused"]);
    let after = &change.session;
    assert_eq!((after.status, after.segment, &after.owner), (Status::Paused, 0, &None));
    assert_eq!((&after.active_turn_id, &change.wake), (&Some(turn()), &WakeChange::Keep));
    let waits = asked.iter().cloned().map(|interaction| Wait { interaction, answer: None }).collect();
    let expected = Checkpoint { turn_id: turn(), segment: 1, state: state(&asked), answers: Vec::new(), waits };
    assert_eq!(checkpoint_of(&change), &expected);
}

fn paused(asked: &[Interaction]) -> (Session, Checkpoint) {
    let waits = asked.iter().cloned().map(|interaction| Wait { interaction, answer: None }).collect();
    let checkpoint = Checkpoint { turn_id: turn(), segment: 1, state: state(asked), answers: Vec::new(), waits };
    (session(Status::Paused), checkpoint)
}

fn give(session: &Session, checkpoint: Option<&Checkpoint>, id: &str, said: Said) -> Result<SessionChange, Refusal> {
    let give = GiveAnswer { head: head("k"), interaction_id: InteractionId::from_trusted(id), said };
    decide(|stamp| give_answer(session, checkpoint, give, stamp))
}

#[test]
fn an_answer_lets_the_turn_go_on_in_its_next_segment() {
    let other = question("b", InteractionKind::Other("form".into()));
    let (before, checkpoint) = paused(&[approval("a"), other.clone()]);
    for (id, said, event) in [
        ("a", Said::Approved, "approve"),
        ("a", Said::Denied, "approve"),
        ("b", Said::Value(Json::from_trusted("[1]")), "respond"),
    ] {
        let change = give(&before, Some(&checkpoint), id, said.clone()).expect("it is open");
        assert_sound(&before, &change);
        assert_eq!(kinds(&change), [event]);
        assert_eq!((change.session.status, change.session.segment), (Status::Runnable, 1));
        assert!(matches!(&change.wake, WakeChange::Put(wake) if wake.reason == WakeReason::Answer));
        let after = checkpoint_of(&change);
        assert_eq!(after.answers, [Answer { interaction_id: InteractionId::from_trusted(id), said }]);
        assert_eq!((after.segment, after.waits.len()), (1, 1));
        let record = change.command.clone().expect("it is remembered");
        assert_eq!((record.turn_id, record.seq), (Some(turn()), before.head));
    }
}

#[test]
fn wrong_answers_are_refused_with_what_is_wrong() {
    let (before, checkpoint) = paused(&[approval("a")]);
    let unknown = |id: &str| Refusal::UnknownInteraction(InteractionId::from_trusted(id));
    assert_eq!(give(&before, Some(&checkpoint), "x", Said::Approved), Err(unknown("x")));
    let value = Said::Value(Json::null());
    assert_eq!(give(&before, Some(&checkpoint), "a", value), Err(unknown("a")), "an approval wants `approve`");
    for status in Status::ALL {
        let not_awaiting = |before: &Session, checkpoint: Option<&Checkpoint>| {
            let refused = give(before, checkpoint, "a", Said::Approved);
            let active_turn_id = before.active_turn_id.clone();
            assert_eq!(refused.err(), Some(Refusal::NotAwaiting { active_turn_id }), "{status:?}");
        };
        let before = session(*status);
        not_awaiting(&before, None);
        if status.accepts_message() {
            not_awaiting(&before, Some(&checkpoint));
        }
        let of_another_turn = Checkpoint { turn_id: TurnId::from_trusted("other"), ..checkpoint.clone() };
        not_awaiting(&before, Some(&of_another_turn));
    }
}

#[test]
fn an_answer_that_comes_while_the_turn_is_busy_is_used_when_it_would_pause_again() {
    let asked = [approval("a"), approval("b")];
    let (before, checkpoint) = paused(&asked);
    let first = give(&before, Some(&checkpoint), "a", Said::Approved).expect("it is open");
    let second = give(&first.session, Some(checkpoint_of(&first)), "b", Said::Denied).expect("it is open");
    assert_eq!((second.session.status, second.session.segment), (Status::Runnable, 1));
    assert_eq!(second.wake, WakeChange::Keep, "the turn is on its way already");
    let kept = checkpoint_of(&second);
    assert_eq!(kept.answers, checkpoint_of(&first).answers, "what the segment began with does not change");
    let again = give(&second.session, Some(kept), "b", Said::Approved);
    assert!(matches!(again, Err(Refusal::NotAwaiting { .. })), "a question is answered once");

    let running = running(1);
    let rows = intended(&[tool_effect("1", WorkspaceTool::Bash)]);
    let end = TurnEnd::Paused { interactions: vec![approval("b")], state: state(&asked[1..]) };
    let change = settle(&running, &rows, end, vec![], kept.waits.clone());
    assert_eq!((change.session.status, change.session.segment), (Status::Runnable, 2));
    assert!(!kinds(&change).contains(&"paused"), "nobody is asked what was answered");
    let after = checkpoint_of(&change);
    let denied = Answer { interaction_id: InteractionId::from_trusted("b"), said: Said::Denied };
    assert_eq!((&after.answers[..], &after.waits[..], after.segment), (&[denied][..], &[][..], 2));
    assert!(matches!(change.wake, WakeChange::Put(_)));
}

#[test]
fn a_snapshot_counts_from_the_next_turn_on_unless_its_turn_came_to_nothing() {
    let completed = TurnEnd::Completed { output: Json::null() };
    let failed = TurnEnd::Failed { code: "c".into(), message: "m".into() };
    let journal = intended(&[model_effect("1")]);
    let begins = |before: &Session| {
        let said = Message {
            head: head("k"),
            input: nylorun_domain::transcript::Input::Data(Json::null()),
            variant: None,
            when_busy: WhenBusy::Reject,
        };
        decide(|stamp| message(before, said, None, stamp)).expect("the session is free").session.history_from
    };
    let change = settle(&running(2), &journal, completed, vec![edit(0), edit(1)], vec![]);
    // The answer's own event comes first.
    let snapshot = running(2).head + 1;
    assert_eq!((change.session.history_from, change.session.history_snapshot), (0, Some(snapshot)));
    assert_eq!(change.checkpoint, CheckpointChange::Clear);
    assert_eq!(begins(&change.session), snapshot);

    let before = Session { history_snapshot: Some(3), ..running(2) };
    let change = settle(&before, &journal, failed, vec![], vec![]);
    assert_eq!((change.session.history_snapshot, begins(&change.session)), (None, 0));
    let change = decide(|stamp| cancel(&before, &[], Cancel { head: head("k"), reason: None }, stamp));
    assert_eq!((change.session.history_snapshot, change.checkpoint), (None, CheckpointChange::Clear));
}
