//! The pure decisions on a session's turns.

use std::cell::Cell;

use nylorun_domain::change::{EffectChange, EffectRow, SessionChange, Stamp, WakeChange};
use nylorun_domain::effect::{EffectOutcome, EffectStatus, Intent, IntentRequest, ToolRequest, ToolTarget};
use nylorun_domain::event::Payload;
use nylorun_domain::id::{AgentId, CallId, EffectId, InvocationId, SessionId, TurnId, UserId, WorkerId};
use nylorun_domain::json::{Json, Text};
use nylorun_domain::model::{
    Candidate, FinishReason, ModelFailure, ModelFailureCode, ModelOutcome, ModelRef, OutputPart,
};
use nylorun_domain::segment::{EffectReport, EffectResult, IntentAnswer, Next, TurnEnd, TurnOutput};
use nylorun_domain::session::{Session, Status};
use nylorun_domain::time::Millis;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::transcript::Input;
use nylorun_domain::turn::{
    Beside, Cancel, CommandHead, Journal, Message, Owner, Refusal, SettleEffect, SettleOutcome, StepError, Take,
    WhenBusy, cancel, fail_alone, message, release, settle_effect, step, take,
};
use nylorun_domain::usage::{Completed, Repetition, UsageRow};

pub(crate) fn session(status: Status) -> Session {
    let is_active = !status.accepts_message();
    Session {
        id: SessionId::from_trusted("s"),
        agent_id: AgentId::from_trusted("a"),
        owner_user_id: UserId::from_trusted("u"),
        definition_hash: "d".into(),
        manifest_hash: "m".into(),
        implementation_version: "1".into(),
        identity_hash: "i".into(),
        info: None,
        vault_ids: Json::from_trusted("[]"),
        credential_selections: Json::from_trusted("[]"),
        workspace: None,
        sandbox_source: None,
        sandbox_owner: None,
        created_at: Millis(0),
        status,
        active_turn_id: is_active.then(turn),
        last_turn_id: None,
        segment: 0,
        input_seq: is_active.then_some(0),
        turn_manifest_hash: None,
        history_from: 0,
        history_snapshot: None,
        epoch: 3,
        owner: None,
        head: 7,
        rev: 11,
        last_event_at: None,
        error: None,
        queued: 0,
        steers: 0,
        sharers: 0,
    }
}

pub(crate) fn turn() -> TurnId {
    TurnId::from_trusted("t")
}

pub(crate) fn worker() -> WorkerId {
    WorkerId::from_trusted("w")
}

pub(crate) fn head(key: &str) -> CommandHead {
    CommandHead { request_id: "r".into(), idempotency_key: key.into(), body_hash: "h".into() }
}

/// Decides with numbered ids at time 1,000.
pub(crate) fn decide<T>(decision: impl FnOnce(&Stamp<'_>) -> T) -> T {
    // A Cell is not Sync, and a stamp's maker of ids must be.
    let next = std::sync::Mutex::new(Cell::new(0));
    let uuid = move || {
        let next = next.lock().expect("no test panics while it makes an id");
        next.set(next.get() + 1);
        format!("id-{}", next.get())
    };
    decision(&Stamp { now: Millis(1_000), uuid: &uuid })
}

pub(crate) fn tool_effect(id: &str, tool: WorkspaceTool) -> Intent {
    effect(id, tool.as_str(), ToolTarget::Workspace(tool))
}

fn effect(id: &str, name: &str, target: ToolTarget) -> Intent {
    Intent {
        id: EffectId::from_trusted(id),
        invocation_id: InvocationId::from_trusted(format!("inv-{id}")),
        request: IntentRequest::Tool(ToolRequest {
            call_id: CallId::from_trusted(format!("call-{id}")),
            tool_name: name.into(),
            capability_id: "c".into(),
            input: Json::from_trusted(format!(r#"{{"command":"run {id}","path":"at {id}"}}"#)),
            step: 1,
            target,
            resume: None,
        }),
        request_hash: format!("hash-{id}"),
    }
}

pub(crate) fn model_effect(id: &str) -> Intent {
    Intent { request: IntentRequest::Model, ..effect(id, "", ToolTarget::Unavailable) }
}

pub(crate) fn answer(text: &str) -> EffectOutcome {
    EffectOutcome::Model(ModelOutcome::Completed(Candidate {
        parts: vec![OutputPart::Text(Text::from(text))],
        finish: FinishReason::Stop,
        usage: None,
        model: ModelRef { provider: "p".into(), model: "m".into() },
        size: None,
        window: None,
    }))
}

pub(crate) fn tool_gave(output: &str) -> EffectOutcome {
    EffectOutcome::Tool(ToolOutcome::Completed { output: Json::string(output) })
}

pub(crate) fn report(id: &str, outcome: EffectOutcome) -> EffectReport {
    EffectReport {
        effect_id: EffectId::from_trusted(id),
        result: EffectResult::Value(outcome),
        events: vec![],
        record: None,
    }
}

/// The journal after these effects were intended.
pub(crate) fn intended(effects: &[Intent]) -> Journal {
    let base = SessionChange::of(&session(Status::Running));
    let next = Next::Intents(effects.to_vec());
    decide(|stamp| step(base, &turn(), &Journal::default(), vec![], &next, &Beside::default(), stamp))
        .expect("a first step")
        .journal
}

fn rows(journal: &Journal) -> Vec<EffectRow> {
    let mut rows: Vec<_> = journal.rows().cloned().collect();
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    rows
}

pub(crate) fn kinds(change: &SessionChange) -> Vec<&'static str> {
    let kind = |payload: &Payload| match payload {
        Payload::CommandMessage { .. } => "message",
        Payload::MessageQueued { .. } => "queued",
        Payload::MessageSteered { .. } => "steered",
        Payload::MessageRemoved { .. } => "removed",
        Payload::CommandApprove { .. } => "approve",
        Payload::CommandRespond { .. } => "respond",
        Payload::TurnPaused { .. } => "paused",
        Payload::TurnCompleted { .. } => "completed",
        Payload::TurnFailed { .. } => "failed",
        Payload::TurnCancelled { .. } => "cancelled",
        Payload::MessageAssistant { .. } => "assistant",
        Payload::ModelFailed { .. } => "model-failed",
        Payload::ContextCompacted { .. } => "compacted",
        Payload::ToolCompleted { .. } => "tool",
        Payload::EffectUncertain { .. } => "uncertain",
        Payload::EffectSettled { .. } => "settled",
        Payload::TranscriptUpdated(_) => "transcript",
        Payload::Workspace(_) => "workspace",
    };
    change.events.iter().map(|event| kind(&event.payload)).collect()
}

/// What holds for every change: one revision further, and sequence numbers that go on without a gap.
pub(crate) fn assert_sound(before: &Session, change: &SessionChange) {
    assert_eq!((change.before_rev, change.session.rev), (before.rev, before.rev + 1));
    let numbers: Vec<i64> = change.events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (before.head..change.session.head).collect::<Vec<_>>());
    assert!(change.events.iter().all(|event| event.epoch == change.session.epoch));
}

#[test]
fn a_message_waits_for_nobody_but_is_refused_while_another_session_has_the_shared_workspace() {
    let said =
        |when_busy| Message { head: head("k"), input: Input::Content(Text::from("hi")), variant: None, when_busy };
    let (owner, other) = (SessionId::from_trusted("owner"), SessionId::from_trusted("other"));
    let alone = session(Status::Completed);
    let shared = Session { sharers: 1, ..alone.clone() };
    let sharer = Session { sandbox_owner: Some(owner.clone()), ..alone.clone() };
    for (before, claimed) in [(alone, None), (shared, Some(SessionId::from_trusted("s"))), (sharer, Some(owner))] {
        let change = decide(|stamp| message(&before, said(WhenBusy::Reject), None, stamp)).expect("nobody has it");
        assert_eq!(change.claims_workspace_of, claimed);
        for when_busy in [WhenBusy::Reject, WhenBusy::Queue, WhenBusy::Steer] {
            let refused = decide(|stamp| message(&before, said(when_busy), Some(other.clone()), stamp));
            assert_eq!(refused, Err(Refusal::WorkspaceHeld { by: Some(other.clone()) }));
        }
    }
    // Its own turn comes first: whatever others do, its message waits for that one.
    let before = Session { sharers: 1, ..session(Status::Running) };
    let change = decide(|stamp| message(&before, said(WhenBusy::Queue), Some(other), stamp)).expect("it waits");
    assert_eq!((change.session.queued, change.claims_workspace_of), (1, None));
}

#[test]
fn a_message_begins_a_turn_only_where_none_is_active() {
    for status in Status::ALL {
        let before = session(*status);
        let said = Message {
            head: head("k"),
            input: Input::Content(Text::from("hi")),
            variant: None,
            when_busy: WhenBusy::Reject,
        };
        match decide(|stamp| message(&before, said, None, stamp)) {
            Ok(change) => {
                assert!(status.accepts_message(), "{status:?}");
                assert_sound(&before, &change);
                assert_eq!(kinds(&change), ["message"]);
                assert_eq!(change.session.status, Status::Runnable);
                assert_eq!(change.session.input_seq, Some(before.head));
                let record = change.command.expect("a message is remembered");
                assert_eq!((record.turn_id, record.seq), (change.session.active_turn_id, before.head));
                assert!(matches!(change.wake, WakeChange::Put(_)));
            }
            Err(refusal) => {
                assert!(!status.accepts_message(), "{status:?}");
                assert_eq!(refusal, Refusal::Busy { active_turn_id: Some(turn()) });
            }
        }
    }
}

#[test]
fn a_cancel_is_always_taken_and_leaves_nothing_running() {
    for status in Status::ALL {
        let before = Session { owner: Some(worker()), ..session(*status) };
        let change = decide(|stamp| cancel(&before, &[], Cancel { head: head("k"), reason: None }, stamp));
        assert_sound(&before, &change);
        assert_eq!(kinds(&change), ["cancelled"]);
        assert_eq!(change.events[0].turn_id, before.active_turn_id);
        let after = &change.session;
        assert_eq!((after.status, &after.active_turn_id, &after.owner), (Status::Cancelled, &None, &None));
        let slims: &[EffectChange] = match before.active_turn_id {
            Some(turn_id) => &[EffectChange::SlimTurn { turn_id }],
            None => &[],
        };
        assert_eq!(change.effects, slims, "{status:?}");
    }
}

/// One effect of each sort in flight, one completed and one uncertain.
fn in_flight() -> Journal {
    let effects = [
        model_effect("1"),
        tool_effect("2", WorkspaceTool::Read),
        tool_effect("3", WorkspaceTool::Bash),
        tool_effect("4", WorkspaceTool::Write),
        tool_effect("5", WorkspaceTool::Bash),
        tool_effect("6", WorkspaceTool::Bash),
    ];
    let lost = EffectReport { result: EffectResult::Lost { message: "gone".into() }, ..report("6", tool_gave("")) };
    let reports = vec![report("5", tool_gave("x")), lost];
    let base = SessionChange::of(&session(Status::Running));
    decide(|stamp| step(base, &turn(), &intended(&effects), reports, &Next::Nothing, &Beside::default(), stamp))
        .expect("outcomes")
        .journal
}

/// What the journal and the record say of effects without an outcome.
#[derive(Debug, PartialEq, Eq)]
struct Doubts<'a> {
    given_up: Vec<&'a str>,
    uncertain: Vec<&'a str>,
    /// Of the events: effect, tool, and what it was to do.
    named: Vec<[&'a str; 3]>,
}

fn doubts(change: &SessionChange) -> Doubts<'_> {
    let (mut given_up, mut uncertain) = (vec![], vec![]);
    for effect in &change.effects {
        match effect {
            EffectChange::Cancel { id } => given_up.push(id.as_str()),
            EffectChange::Uncertain { id, .. } => uncertain.push(id.as_str()),
            _ => {}
        }
    }
    let named = change.events.iter().filter_map(|event| match &event.payload {
        Payload::EffectUncertain { effect_id, tool: Some(tool), .. } => {
            Some([effect_id.as_str(), tool.name.as_str(), tool.subject.as_deref()?])
        }
        _ => None,
    });
    Doubts { given_up, uncertain, named: named.collect() }
}

#[test]
fn a_cancel_doubts_only_what_may_have_changed_something() {
    let before = session(Status::Running);
    let rows = rows(&in_flight());
    let change = decide(|stamp| cancel(&before, &rows, Cancel { head: head("k"), reason: None }, stamp));
    assert_sound(&before, &change);
    assert_eq!(kinds(&change), ["uncertain", "uncertain", "cancelled"]);
    let named = vec![["3", "bash", "run 3"], ["4", "write", "at 4"]];
    assert_eq!(doubts(&change), Doubts { given_up: vec!["1", "2"], uncertain: vec!["3", "4"], named });
    assert!(change.events.iter().all(|event| event.turn_id == Some(turn())));
    assert_eq!(change.command.expect("it is remembered").seq, before.head + 2, "the cancel's own event");
}

#[test]
fn a_model_call_that_the_turns_end_cut_off_is_in_the_ledger_without_usage() {
    let before = session(Status::Running);
    let rows = rows(&in_flight());
    let cancelled = decide(|stamp| cancel(&before, &rows, Cancel { head: head("k"), reason: None }, stamp));
    let end = TurnEnd::Failed { code: "turn.deadline".into(), message: "late".into() };
    let output = Next::Output(TurnOutput { end, edits: vec![] });
    let base = SessionChange::of(&before);
    let failed = decide(|stamp| step(base, &turn(), &in_flight(), vec![], &output, &Beside::default(), stamp));
    for change in [cancelled, failed.expect("an output").change] {
        let expected = UsageRow {
            id: change.usage[0].id.clone(),
            effect_id: EffectId::from_trusted("1"),
            session_id: before.id.clone(),
            turn_id: turn(),
            agent_id: before.agent_id.clone(),
            model: None,
            completed: Completed::Failed,
            repetition: Repetition::First,
            usage: None,
            at: Millis(1_000),
        };
        assert_eq!(change.usage, [expected]);
    }
}

#[test]
fn a_call_that_a_budget_refused_is_not_in_the_ledger() {
    let usage = |code| {
        let failure = ModelFailure { code, message: "no".into(), retryable: false, usage: None, model: None };
        let reports = vec![report("1", EffectOutcome::Model(ModelOutcome::Failed(failure)))];
        let (base, journal) = (SessionChange::of(&session(Status::Running)), intended(&[model_effect("1")]));
        let step = decide(|stamp| step(base, &turn(), &journal, reports, &Next::Nothing, &Beside::default(), stamp));
        let change = step.expect("an outcome").change;
        (kinds(&change).len(), change.usage.len())
    };
    assert_eq!(usage(ModelFailureCode::BudgetExhausted), (1, 0));
    assert_eq!(usage(ModelFailureCode::Auth), (1, 1));
}

#[test]
fn a_call_that_a_gate_holds_is_in_doubt_once_nobody_asks_for_it_again() {
    let before = session(Status::Running);
    let rows = rows(&intended(&[effect("1", "read", ToolTarget::Http)]));
    let change = decide(|stamp| cancel(&before, &rows, Cancel { head: head("k"), reason: None }, stamp));
    assert_eq!(kinds(&change), ["uncertain", "cancelled"]);
    assert_eq!(doubts(&change).uncertain, ["1"]);
}

#[test]
fn a_turn_that_fails_while_effects_are_in_flight_leaves_none_open() {
    let end = TurnEnd::Failed { code: "turn.deadline".into(), message: "late".into() };
    let output = Next::Output(TurnOutput { end, edits: vec![] });
    let base = SessionChange::of(&session(Status::Running));
    let step = decide(|stamp| step(base, &turn(), &in_flight(), vec![], &output, &Beside::default(), stamp))
        .expect("an output");
    assert_eq!(kinds(&step.change), ["uncertain", "uncertain", "failed"]);
    let Doubts { given_up, uncertain, .. } = doubts(&step.change);
    assert_eq!((given_up, uncertain), (vec!["1", "2"], vec!["3", "4"]));
}

#[test]
fn only_a_session_to_advance_that_nobody_holds_is_taken() {
    for status in Status::ALL {
        for owner in [Owner::Gone, Owner::Alive] {
            let before = session(*status);
            let taken = decide(|stamp| take(&before, owner, &[], &worker(), stamp));
            let wanted = matches!(status, Status::Runnable | Status::Running);
            match (wanted, owner) {
                (false, _) => assert_eq!(taken, Take::Nothing, "{status:?}"),
                (true, Owner::Alive) => assert_eq!(taken, Take::Busy),
                (true, Owner::Gone) => {
                    let Take::Taken(change) = taken else { panic!("{taken:?}") };
                    assert_sound(&before, &change);
                    assert_eq!(change.session.epoch, before.epoch + 1);
                    assert_eq!((change.session.owner, change.wake), (Some(worker()), WakeChange::Clear));
                }
            }
        }
    }
}

#[test]
fn what_was_running_at_a_takeover_is_uncertain_unless_it_may_run_again() {
    let effects = [
        model_effect("1"),
        tool_effect("2", WorkspaceTool::Read),
        tool_effect("3", WorkspaceTool::Bash),
        tool_effect("4", WorkspaceTool::Write),
        tool_effect("5", WorkspaceTool::Grep),
        effect("6", "bash", ToolTarget::Http),
    ];
    let journal = intended(&effects);
    let before = Session { owner: Some(WorkerId::from_trusted("dead")), ..session(Status::Running) };
    let taken = decide(|stamp| take(&before, Owner::Gone, &rows(&journal), &worker(), stamp));
    let Take::Uncertain(change) = taken else { panic!("{taken:?}") };
    assert_sound(&before, &change);
    assert_eq!(kinds(&change), ["uncertain", "uncertain"]);
    let marked: Vec<&str> = change
        .effects
        .iter()
        .map(|effect| match effect {
            EffectChange::Uncertain { id, .. } => id.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(marked, ["3", "4"]);
    assert_eq!(doubts(&change).named, [["3", "bash", "run 3"], ["4", "write", "at 4"]]);
    assert_eq!((change.session.status, change.session.owner), (Status::Uncertain, None));
}

#[test]
fn a_takeover_of_repeatable_and_of_held_work_goes_on() {
    // The gate is asked again, whatever the tool is called.
    let held = effect("3", "order", ToolTarget::Http);
    let journal = intended(&[model_effect("1"), tool_effect("2", WorkspaceTool::Glob), held.clone()]);
    let before = session(Status::Running);
    assert!(matches!(decide(|stamp| take(&before, Owner::Gone, &rows(&journal), &worker(), stamp)), Take::Taken(_)));
    let released = decide(|stamp| release(&before, &rows(&journal), stamp));
    assert_eq!((released.session.status, kinds(&released).len()), (Status::Runnable, 0));
    let base = SessionChange::of(&before);
    let again =
        decide(|stamp| step(base, &turn(), &journal, vec![], &Next::Intents(vec![held]), &Beside::default(), stamp));
    assert_eq!(again.expect("the same request").answers, [IntentAnswer::Execute]);
}

#[test]
fn intents_are_answered_from_the_journal() {
    let (model, bash) = (model_effect("1"), tool_effect("2", WorkspaceTool::Bash));
    let journal = intended(&[model.clone(), bash.clone()]);
    let base = || SessionChange::of(&session(Status::Running));
    let again = |journal: &Journal, effects: Vec<Intent>| {
        decide(|stamp| step(base(), &turn(), journal, vec![], &Next::Intents(effects), &Beside::default(), stamp))
    };
    // Running: a model call may run again, a command may not.
    let answered = again(&journal, vec![model.clone(), bash.clone()]).expect("the same requests");
    assert_eq!(answered.answers, [IntentAnswer::Execute, IntentAnswer::Uncertain]);
    assert_eq!(answered.change.effects, []);
    // Recorded: the outcome is given, nothing runs.
    let recorded = decide(|stamp| {
        step(base(), &turn(), &journal, vec![report("2", tool_gave("x"))], &Next::Nothing, &Beside::default(), stamp)
    });
    let answered = again(&recorded.expect("an outcome").journal, vec![bash.clone()]).expect("the same request");
    assert_eq!(answered.answers, [IntentAnswer::Completed(tool_gave("x"))]);
    // Another request under the same id.
    let drifted = Intent { request_hash: "other".into(), ..bash.clone() };
    assert_eq!(again(&journal, vec![drifted]).err(), Some(StepError::EffectDrift(bash.id)));
}

#[test]
fn a_model_call_that_runs_again_is_counted_as_a_repetition() {
    let model = model_effect("1");
    let base = || SessionChange::of(&session(Status::Running));
    let count = |journal: &Journal| {
        let intents = Next::Intents(vec![model.clone()]);
        let step_1 = decide(|stamp| step(base(), &turn(), journal, vec![], &intents, &Beside::default(), stamp))
            .expect("an intent");
        let reports = vec![report("1", answer("hi"))];
        let step_2 =
            decide(|stamp| step(base(), &turn(), &step_1.journal, reports, &Next::Nothing, &Beside::default(), stamp));
        step_2.expect("an outcome").change.usage[0].repetition
    };
    assert_eq!(count(&Journal::default()), Repetition::First);
    assert_eq!(count(&intended(std::slice::from_ref(&model))), Repetition::Duplicate);
}

#[test]
fn a_tool_that_nothing_runs_completes_with_its_intent() {
    let unknown = effect("1", "nope", ToolTarget::UnknownTool);
    let base = SessionChange::of(&session(Status::Running));
    let next = Next::Intents(vec![unknown]);
    let step = decide(|stamp| step(base, &turn(), &Journal::default(), vec![], &next, &Beside::default(), stamp))
        .expect("an intent");
    let [IntentAnswer::Completed(EffectOutcome::Tool(ToolOutcome::Failed { code, .. }))] = &step.answers[..] else {
        panic!("{:?}", step.answers)
    };
    assert_eq!(code, "tool.unknown");
    assert_eq!(kinds(&step.change), ["tool"]);
    assert!(matches!(step.change.effects[..], [EffectChange::Insert(_), EffectChange::Complete { .. }]));
}

#[test]
fn the_last_step_of_a_turn_records_settles_and_keeps_nothing_to_replay() {
    let journal = intended(&[model_effect("1")]);
    let before = Session { owner: Some(worker()), ..session(Status::Running) };
    let output = TurnOutput { end: TurnEnd::Completed { output: Json::string("hi") }, edits: vec![] };
    let reports = vec![report("1", answer("hi"))];
    let base = SessionChange::of(&before);
    let step = decide(|stamp| step(base, &turn(), &journal, reports, &Next::Output(output), &Beside::default(), stamp))
        .expect("an output");
    let change = step.change;
    assert_sound(&before, &change);
    assert_eq!(kinds(&change), ["assistant", "completed"]);
    assert_eq!(change.effects, [EffectChange::Complete { id: EffectId::from_trusted("1"), outcome: None }]);
    let after = &change.session;
    assert_eq!((after.status, &after.active_turn_id, &after.owner), (Status::Completed, &None, &None));
    assert_eq!(after.last_turn_id, Some(turn()));
}

#[test]
fn a_lost_answer_is_uncertain_and_an_uncertain_turn_stays_active() {
    let journal = intended(&[tool_effect("1", WorkspaceTool::Bash)]);
    let lost = EffectReport { result: EffectResult::Lost { message: "gone".into() }, ..report("1", tool_gave("")) };
    let output = TurnOutput { end: TurnEnd::Uncertain, edits: vec![] };
    let base = SessionChange::of(&session(Status::Running));
    let step =
        decide(|stamp| step(base, &turn(), &journal, vec![lost], &Next::Output(output), &Beside::default(), stamp))
            .expect("an output");
    assert_eq!(kinds(&step.change), ["uncertain"]);
    assert_eq!(step.change.session.status, Status::Uncertain);
    assert_eq!(step.change.session.active_turn_id, Some(turn()));
    assert_eq!(rows(&step.journal)[0].status, EffectStatus::Uncertain);
}

#[test]
fn a_turn_whose_effects_were_settled_while_others_ran_goes_on() {
    let settled = intended(&[tool_effect("1", WorkspaceTool::Bash)]);
    let rows = rows(&settled).into_iter().map(|row| EffectRow { status: EffectStatus::Completed, ..row });
    let journal = settled.clone().refreshed(rows.collect());
    let output = TurnOutput { end: TurnEnd::Uncertain, edits: vec![] };
    let base = SessionChange::of(&session(Status::Running));
    let step = decide(|stamp| step(base, &turn(), &journal, vec![], &Next::Output(output), &Beside::default(), stamp))
        .expect("an output");
    assert_eq!((step.change.session.status, step.change.session.owner), (Status::Runnable, None));
    assert!(matches!(step.change.wake, WakeChange::Put(_)));
}

#[test]
fn a_cancelled_turn_takes_no_step() {
    let base = SessionChange::of(&session(Status::Cancelled));
    let refused =
        decide(|stamp| step(base, &turn(), &Journal::default(), vec![], &Next::Nothing, &Beside::default(), stamp));
    assert_eq!(refused.err(), Some(StepError::TurnCancelled));
}

fn uncertain_row(id: &str, effect: &Intent) -> EffectRow {
    let row = rows(&intended(std::slice::from_ref(effect))).remove(0);
    EffectRow { id: EffectId::from_trusted(id), status: EffectStatus::Uncertain, ..row }
}

#[test]
fn settling_the_last_uncertain_effect_lets_the_turn_go_on() {
    let before = session(Status::Uncertain);
    let row = uncertain_row("1", &tool_effect("1", WorkspaceTool::Bash));
    for (said, others, events, goes_on) in [
        (SettleOutcome::Value(Json::from_trusted("1")), 0, vec!["settled", "tool"], true),
        (SettleOutcome::Error("no".into()), 0, vec!["settled", "tool"], true),
        (SettleOutcome::Retry, 0, vec!["settled"], true),
        (SettleOutcome::Retry, 1, vec!["settled"], false),
    ] {
        let settle = SettleEffect { head: head("k"), outcome: said.clone() };
        let change = decide(|stamp| settle_effect(&before, &row, others, settle, stamp)).expect("it is uncertain");
        assert_sound(&before, &change);
        assert_eq!(kinds(&change), events, "{said:?}");
        assert_eq!(matches!(change.wake, WakeChange::Put(_)), goes_on);
        assert_eq!(change.session.status == Status::Runnable, goes_on);
        let forgets = change.effects == [EffectChange::Forget { id: row.id.clone() }];
        assert_eq!(forgets, said == SettleOutcome::Retry);
    }
}

#[test]
fn settling_refuses_what_is_not_uncertain_and_answers_of_models() {
    let before = session(Status::Uncertain);
    let model = uncertain_row("1", &model_effect("1"));
    let value = || SettleEffect { head: head("k"), outcome: SettleOutcome::Value(Json::null()) };
    let refused = decide(|stamp| settle_effect(&before, &model, 0, value(), stamp));
    assert_eq!(refused.err(), Some(Refusal::OnlyRetry(model.id.clone())));
    let running = EffectRow { status: EffectStatus::Invoking, ..model };
    let refused = decide(|stamp| settle_effect(&before, &running, 0, value(), stamp));
    assert_eq!(refused.err(), Some(Refusal::NotUncertain { id: running.id, status: "invoking" }));
}

#[test]
fn settling_an_effect_of_a_cancelled_turn_wakes_nothing() {
    let before = session(Status::Cancelled);
    let row = uncertain_row("1", &tool_effect("1", WorkspaceTool::Bash));
    let settle = SettleEffect { head: head("k"), outcome: SettleOutcome::Value(Json::null()) };
    let change = decide(|stamp| settle_effect(&before, &row, 0, settle, stamp)).expect("it is uncertain");
    // No result of a tool follows: the turn's end was the last that the turn said.
    assert_eq!(kinds(&change), ["settled"]);
    assert_eq!(change.effects, [EffectChange::Complete { id: row.id.clone(), outcome: None }]);
    assert_eq!((change.session.status, change.wake), (Status::Cancelled, WakeChange::Keep));
    assert_eq!(change.command.expect("it is remembered").turn_id, None);
    // Nothing goes on with it, so whatever it was can be put away.
    let model = uncertain_row("2", &model_effect("2"));
    let settle = SettleEffect { head: head("k"), outcome: SettleOutcome::Error("never mind".into()) };
    assert!(decide(|stamp| settle_effect(&before, &model, 0, settle, stamp)).is_ok());
    // Nobody is told that something will run again which will not.
    let retry = SettleEffect { head: head("k"), outcome: SettleOutcome::Retry };
    let refused = decide(|stamp| settle_effect(&before, &row, 0, retry, stamp));
    assert_eq!(refused.err(), Some(Refusal::TurnEnded(row.id)));
}

#[test]
fn a_turn_is_failed_by_the_least_that_says_so() {
    let mut effects = rows(&intended(&[tool_effect("1", WorkspaceTool::Bash), tool_effect("2", WorkspaceTool::Read)]));
    effects.sort_by(|one, other| one.id.cmp(&other.id));
    let before = Session { owner: Some(worker()), segment: 2, queued: 1, ..session(Status::Running) };
    let change = decide(|stamp| fail_alone(&before, &turn(), &effects, "internal", "refused", stamp));
    assert_sound(&before, &change);
    assert_eq!(kinds(&change), ["failed"]);
    let after = &change.session;
    assert_eq!((after.status, &after.active_turn_id, &after.owner), (Status::Failed, &None, &None));
    assert_eq!((&after.last_turn_id, after.error.as_deref()), (&Some(turn()), Some("refused")));
    assert_eq!((after.queued, &change.wake, change.usage.len()), (1, &WakeChange::Clear, 0));
    let error = "the turn ended before its outcome was recorded".to_owned();
    let id = |at: usize| effects[at].id.clone();
    assert_eq!(change.effects, [EffectChange::Uncertain { id: id(0), error }, EffectChange::Cancel { id: id(1) }]);
}
