//! The loop, step by step.

use nylorun_domain::effect::{EffectOutcome, ToolTarget};
use nylorun_domain::id::{CallId, EffectId, InvocationId};
use nylorun_domain::json::Json;
use nylorun_domain::model::{ModelFailureCode, ModelOutcome, PromptItem, ToolResult};
use nylorun_domain::segment::{SegmentInput, TurnEnd, TurnOutput};
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::transcript::{Edit, Entry, Input};
use nylorun_engine::{MAX_STEPS, ResolveError, Run};

use crate::support::{answer, call, candidate, done, failure, items, only, prompt, start, text, tool};

fn failed(code: &str, message: &str) -> TurnOutput {
    let end = TurnEnd::Failed { code: code.to_owned(), message: message.to_owned() };
    TurnOutput { end, edits: Vec::new() }
}

#[test]
fn a_text_ends_the_turn() {
    let mut run = Run::new(start("t", Vec::new()));
    let effect = only(&mut run);
    assert_eq!(run.output(), None);
    let instructions = ["Be brief.", "Be right.", "Work in /workspace."];
    assert_eq!(prompt(&effect).instructions, instructions);
    let tools: Vec<_> = prompt(&effect).tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["remote", "bash", "read"]);
    assert_eq!(items(&effect), [PromptItem::User(vec!["Hello".into()])]);

    let outcome = answer(vec![text("Good "), text("day")]);
    assert_eq!(run.resolve(&effect.id, outcome.clone()), Ok(outcome));
    assert!(run.wants().is_empty());
    let output = Json::from_trusted(r#""Good day""#);
    let entries = vec![
        Entry::Input(Input::Content("Hello".into())),
        Entry::Candidate {
            invocation_id: effect.invocation_id,
            candidate: candidate(vec![text("Good "), text("day")]).into(),
        },
        Entry::Final { output: output.clone() },
    ];
    let expected = TurnOutput { end: TurnEnd::Completed { output }, edits: vec![Edit::append(0, entries)] };
    assert_eq!(run.output(), Some(&expected));
}

#[test]
fn ids_and_hashes_never_change() {
    let mut run = Run::new(start("11111111-2222-3333-4444-555555555555", Vec::new()));
    let model = only(&mut run);
    assert_eq!(model.id.as_str(), "11111111-2222-3333-4444-555555555555:0:model:98299f797db15f47d92c76f6b1c6f2fd");
    assert_eq!(model.request_hash, "90cc0adbe4148da7bc9271a664bb35371bd6c18d3a34d61a9df1d09354f0bfec");
    run.resolve(&model.id, answer(vec![call("c", "bash", r#"{"command":"ls"}"#)])).unwrap();
    let bash = only(&mut run);
    assert_eq!(bash.id.as_str(), "11111111-2222-3333-4444-555555555555:0:tool:0a204d222436a53e09ca52357a584a19");
    assert_eq!(bash.request_hash, "175c7deeb83b67fa440f4517dca94ca0e0e8ff0a3d58d6b5697a6c8c74efd9d5");
    assert_eq!(bash.id.as_str().rsplit(':').next(), Some(bash.invocation_id.as_str()));
}

#[test]
fn parallel_results_stand_in_the_models_order() {
    let mut run = Run::new(start("t", Vec::new()));
    let model = only(&mut run);
    let calls = vec![call("a", "bash", "{}"), text("and"), call("b", "read", "[1]"), call("c", "remote", "{}")];
    run.resolve(&model.id, answer(calls.clone())).unwrap();
    let tools = run.wants();
    let requests: Vec<_> = tools.iter().map(tool).map(|request| (request.tool_name.as_str(), request.target)).collect();
    let targets = [
        ("bash", ToolTarget::Workspace(WorkspaceTool::Bash)),
        ("read", ToolTarget::Workspace(WorkspaceTool::Read)),
        ("remote", ToolTarget::Unavailable),
    ];
    assert_eq!(requests, targets);
    assert_eq!(tool(&tools[1]).capability_id, "sandbox");
    for (effect, n) in tools.iter().rev().zip([3, 2, 1]) {
        assert!(run.wants().is_empty());
        run.resolve(&effect.id, EffectOutcome::Tool(done(&n.to_string()))).unwrap();
    }
    let next = only(&mut run);
    let result = |id: &str, name: &str, n: &str| ToolResult {
        call_id: CallId::from_trusted(id),
        name: name.to_owned(),
        outcome: done(n),
    };
    let shown = [
        PromptItem::User(vec!["Hello".into()]),
        PromptItem::Assistant(candidate(calls).into()),
        PromptItem::ToolResults(vec![result("a", "bash", "1"), result("b", "read", "2"), result("c", "remote", "3")]),
    ];
    assert_eq!(items(&next), shown);
}

#[test]
fn calls_that_cannot_be_carried_out_are_refused_in_words() {
    let mut run = Run::new(start("t", Vec::new()));
    let model = only(&mut run);
    let calls = vec![call("a", "remote", "{}"), call("b", "nope", "{}"), call("c", "bash", "{\"comm")];
    run.resolve(&model.id, answer(calls)).unwrap();
    let refusals: Vec<_> = run.wants().iter().map(|effect| tool(effect).refusal()).collect();
    let expected = [
        ToolOutcome::failed("tool.unavailable", "Nothing here can run the tool remote."),
        ToolOutcome::failed("tool.unknown", "There is no tool named nope."),
        ToolOutcome::failed(
            "tool.invalid-arguments",
            "The input of bash is not valid JSON. Call it again with a JSON object.",
        ),
    ];
    assert_eq!(refusals, expected.map(Some));
}

#[test]
fn call_ids_are_unique_in_the_session() {
    let history = vec![Entry::Candidate {
        invocation_id: InvocationId::from_trusted("old"),
        candidate: candidate(vec![call("used", "bash", "{}")]).into(),
    }];
    let mut run = Run::new(start("t", history));
    let model = only(&mut run);
    let ids = ["", "used", "new", "new", "a\nb"];
    let given = answer(ids.iter().map(|id| call(id, "bash", "{}")).collect());
    let recorded = run.resolve(&model.id, given).unwrap();
    let EffectOutcome::Model(ModelOutcome::Completed(named)) = &recorded else { panic!("{recorded:?}") };
    let named: Vec<_> = named.tool_calls().map(|call| call.call_id.as_str()).collect();
    let made = |n: usize| format!("call_{}_{n}", model.invocation_id);
    assert_eq!(named, [&made(0), &made(1), "new", &made(3), &made(4)]);
    let planned = run.wants();
    let planned: Vec<_> = planned.iter().map(|effect| tool(effect).call_id.as_str()).collect();
    assert_eq!(planned, named);
}

#[test]
fn a_failed_model_call_fails_the_turn_and_leaves_no_trace() {
    let mut run = Run::new(start("t", Vec::new()));
    let model = only(&mut run);
    run.resolve(&model.id, failure(ModelFailureCode::RateLimited)).unwrap();
    assert_eq!(run.output(), Some(&failed("model.rate_limited", "no")));
}

#[test]
fn an_output_schema_wants_a_document() {
    for (answered, expected) in
        [("```json\n{\"n\": 1}\n```", Ok("{\"n\": 1}")), ("one", Err("unexpected character at byte 0"))]
    {
        let mut start = start("t", Vec::new());
        let mut manifest = (*start.manifest).clone();
        manifest.output_schema = Some(Json::from_trusted(r#"{"type":"object"}"#));
        start.manifest = manifest.into();
        let mut run = Run::new(start);
        let model = only(&mut run);
        assert!(prompt(&model).output_schema.is_some());
        run.resolve(&model.id, answer(vec![text(answered)])).unwrap();
        let end = run.output().map(|output| output.end.clone());
        let expected = match expected {
            Ok(output) => TurnEnd::Completed { output: Json::from_trusted(output) },
            Err(reason) => TurnEnd::Failed {
                code: "model.invalid_output".to_owned(),
                message: format!(
                    "The model's answer is not the JSON that the agent's output schema asks for: {reason}."
                ),
            },
        };
        assert_eq!(end, Some(expected));
    }
}

#[test]
fn an_uncertain_effect_ends_the_run_once_the_others_ended() {
    let mut run = Run::new(start("t", Vec::new()));
    let model = only(&mut run);
    run.resolve(&model.id, answer(vec![call("a", "bash", "{}"), call("b", "bash", "{}")])).unwrap();
    let tools = run.wants();
    run.uncertain(&tools[0].id).unwrap();
    assert_eq!(run.output(), None);
    run.resolve(&tools[1].id, EffectOutcome::Tool(done("1"))).unwrap();
    assert_eq!(run.output(), Some(&TurnOutput { end: TurnEnd::Uncertain, edits: Vec::new() }));
    assert!(run.wants().is_empty());
}

#[test]
fn giving_up_fails_the_turn_unless_an_effect_is_uncertain() {
    let mut run = Run::new(start("t", Vec::new()));
    let model = only(&mut run);
    run.resolve(&model.id, answer(vec![call("a", "bash", "{}"), call("b", "bash", "{}")])).unwrap();
    let mut other = Run::new(start("t", Vec::new()));
    other.give_up("turn.deadline", "late");
    other.give_up("internal", "later");
    assert_eq!(other.output(), Some(&failed("turn.deadline", "late")));
    assert!(other.wants().is_empty());
    let tools = run.wants();
    run.uncertain(&tools[0].id).unwrap();
    run.give_up("turn.deadline", "late");
    assert_eq!(run.output(), Some(&TurnOutput { end: TurnEnd::Uncertain, edits: Vec::new() }));
}

#[test]
fn outcomes_that_nobody_waits_for_change_nothing() {
    let mut run = Run::new(start("t", Vec::new()));
    let model = only(&mut run);
    let stranger = EffectId::from_trusted("t:0:model:x");
    let not_open = |id: &EffectId| Err(ResolveError::NotOpen(id.clone()));
    assert_eq!(run.resolve(&stranger, answer(vec![text("x")])), not_open(&stranger));
    let other_kind = Err(ResolveError::OtherKind(model.id.clone()));
    assert_eq!(run.resolve(&model.id, EffectOutcome::Tool(done("1"))), other_kind);
    run.resolve(&model.id, answer(vec![call("a", "bash", "{}"), call("b", "bash", "{}")])).unwrap();
    assert_eq!(run.resolve(&model.id, answer(vec![text("x")])), not_open(&model.id));
    let tools = run.wants();
    run.resolve(&tools[0].id, EffectOutcome::Tool(done("1"))).unwrap();
    assert_eq!(run.resolve(&tools[0].id, EffectOutcome::Tool(done("2"))), not_open(&tools[0].id));
    let other_kind = Err(ResolveError::OtherKind(tools[1].id.clone()));
    assert_eq!(run.resolve(&tools[1].id, answer(vec![text("x")])), other_kind);
    run.resolve(&tools[1].id, EffectOutcome::Tool(done("3"))).unwrap();
    let next = only(&mut run);
    let PromptItem::ToolResults(results) = &items(&next)[2] else { panic!() };
    assert_eq!(results.iter().map(|result| result.outcome.clone()).collect::<Vec<_>>(), [done("1"), done("3")]);
}

#[test]
fn no_loop_is_endless() {
    let mut run = Run::new(start("t", Vec::new()));
    for _ in 0..MAX_STEPS {
        let model = only(&mut run);
        run.resolve(&model.id, answer(vec![call("", "read", "{}")])).unwrap();
        let read = only(&mut run);
        run.resolve(&read.id, EffectOutcome::Tool(done("1"))).unwrap();
    }
    assert!(run.wants().is_empty());
    assert_eq!(run.output(), Some(&failed("turn.step_limit", "The turn wanted more than 500 model calls.")));
}

#[test]
fn other_messages_read_as_text() {
    for (input, shown) in [
        (Input::Data(Json::parse("{\"b\": [1.0, \"x\"]}").unwrap()), vec![r#"{"b":[1.0,"x"]}"#]),
        (Input::Parts(vec!["one".into(), "two".into()]), vec!["one", "two"]),
    ] {
        let mut start = start("t", Vec::new());
        start.input = SegmentInput::Message(input);
        let shown = PromptItem::User(shown.into_iter().map(Into::into).collect());
        assert_eq!(items(&only(&mut Run::new(start))), [shown]);
    }
}
