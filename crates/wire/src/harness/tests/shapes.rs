//! The shapes of all methods.

use std::num::{NonZeroU32, NonZeroU64};

use nylorun_domain::effect::{EffectOutcome, Intent, IntentRequest, ToolRequest, ToolTarget};
use nylorun_domain::json::{Json, parse_envelope};
use nylorun_domain::segment::YieldAfter;
use nylorun_domain::time::Millis;
use nylorun_domain::tool::WorkspaceTool;
use nylorun_domain::workspace::{
    ExecOutcome, WorkspaceEvent, WorkspaceKey, WorkspaceRecord, WorkspaceSpec, WorkspaceState,
};
use proptest::option;
use proptest::prelude::*;

use super::holds;
use super::values::{
    agent, call, content, edit, effect, entry, hash, invocation, outcome, output, recorded, segment_input, session,
    turn, word,
};
use crate::harness::effect::{EffectIntent, EffectScope, IntentRequested, RequestHash};
use crate::harness::event::EventReported;
use crate::harness::hello::{Capabilities, Hello, SandboxPreference, Welcome};
use crate::harness::lease::{
    CancelReason, CancelRun, Lease, Leased, Release, ReleaseReason, Renew, Renewed, RunGrant, Slots,
};
use crate::harness::method::{CoreRequest, HarnessRequest, OutputMethod, check_message, check_request, check_result};
use crate::harness::outcome::{Became, IntentReply, OutcomeReply, OutcomeReported, Rejoin};
use crate::harness::output::{OutputReply, OutputStatus, RunOutput, RunResult, Thrown};
use crate::harness::session::{DefinitionBytes, DefinitionFile, DiscoveredTools, SessionMcp};
use crate::harness::shape::{JsonObject, Nothing, Nullable, Shape, decode, encode};
use crate::harness::start::{
    Checkpoint, Engines, RunOptions, RunRouting, RunSandbox, StartKind, TranscriptAt, TurnStart, YieldLimits,
};
use crate::harness::transcript::{Transcript, TranscriptRead};
use crate::harness::workspace::{
    BytesReading, Limit, ListReading, RecordForm, WantedBytes, WantedList, WorkspaceAnswer, WorkspaceCall,
    WorkspaceReading, WorkspaceRecords, WorkspaceRemove, WorkspaceReport, WorkspaceSession, WorkspaceSweep,
};

fn spec() -> WorkspaceSpec {
    let network_allow = vec!["*.example.com".to_owned()];
    WorkspaceSpec { image: Some("img".to_owned()), cpus: 2, memory_mib: 512, network_allow, idle_ms: 60_000 }
}

fn object() -> JsonObject {
    JsonObject(Json::from_trusted(r#"{"a":"\ud800"}"#))
}

fn scope() -> impl Strategy<Value = EffectScope> {
    (session(), turn(), agent(), hash(), any::<u32>()).prop_map(
        |(session_id, turn_id, agent_id, manifest_hash, segment)| EffectScope {
            session_id,
            turn_id,
            agent_id,
            manifest_hash,
            segment,
        },
    )
}

fn target() -> impl Strategy<Value = ToolTarget> {
    prop::sample::select(vec![
        ToolTarget::Workspace(WorkspaceTool::Bash),
        ToolTarget::Http,
        ToolTarget::Unavailable,
        ToolTarget::UnknownTool,
        ToolTarget::MalformedInput,
        ToolTarget::Denied,
    ])
}

fn intent() -> impl Strategy<Value = Intent> {
    let tool = (any::<u32>(), call(), word(), word(), content(), target(), option::of(content()));
    let tool = tool.prop_map(|(step, call_id, tool_name, capability_id, input, target, resume)| {
        // An answer is read back as its value.
        let resume = resume.map(|answer| answer.value().to_json());
        IntentRequest::Tool(ToolRequest { step, call_id, tool_name, capability_id, input, target, resume })
    });
    let request = prop_oneof![Just(IntentRequest::Model), Just(IntentRequest::Summary), tool];
    (effect(), invocation(), request, hash()).prop_map(|(id, invocation_id, request, request_hash)| Intent {
        id,
        invocation_id,
        request,
        request_hash,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_intent_crosses_whole_but_for_its_prompt(intent in intent(), scope in scope()) {
        let form = EffectIntent::of(&intent, &scope);
        let hash = RequestHash::from_trusted(intent.request_hash.as_str());
        holds(&IntentRequested { run_id: "r".into(), effect: form.clone(), request_hash: hash.clone() });
        prop_assert!(form.is_of(&scope));
        let target = match &intent.request {
            IntentRequest::Tool(tool) => tool.target,
            IntentRequest::Model | IntentRequest::Summary => ToolTarget::UnknownTool,
        };
        prop_assert_eq!(form.intent(&hash, |_| target), Ok(intent));
        let canonical = parse_envelope(encode(&form).as_str()).unwrap().canonical();
        prop_assert_eq!(form.hash(), nylorun_domain::hash::sha256_hex(canonical.as_bytes()));
    }

    #[test]
    fn outcomes_and_answers_are_read_back(outcome in outcome(), effect_id in effect(), message in word()) {
        holds(&IntentReply::Completed(Box::new(outcome.clone())));
        holds(&OutcomeReply::Completed(Box::new(outcome.clone())));
        for became in [Became::Value(outcome), Became::Error(message)] {
            holds(&OutcomeReported { run_id: "r".into(), effect_id: effect_id.clone(), became });
        }
    }

    #[test]
    fn a_start_is_read_back(
        input in segment_input(), recorded in recorded(), session_id in session(), turn_id in turn(),
        agent_id in agent(), hash in hash(), segment in any::<u32>(), epoch in any::<i64>(),
    ) {
        let engine = Engines::ours();
        let checkpoint = Checkpoint {
            engine_version: engine.agent.clone(), manifest_hash: hash, session_id: session_id.clone(), agent_id,
            turn_id: turn_id.clone(), segment, input,
        };
        let sandbox = RunSandbox {
            owner_id: session_id.clone(), sandbox_id: Some("e".into()), spec: Some(spec()),
            environment: Some([("A".to_owned(), "nylorun-managed".to_owned())].into()),
        };
        let input = TurnStart {
            kind: StartKind::Answer, engine, manifest: object(), checkpoint, session_tools: Some(vec![object()]),
            outcomes: vec![recorded], transcript: TranscriptAt { cursor: -1 },
            options: RunOptions {
                yield_after: Some(YieldLimits { steps: Some(1), ms: None }),
                flow_limits: Some(object()),
                fixture_model: true,
            },
            routing: RunRouting { root_manifest: object(), mcp_snapshot: Some(object()), sandbox: Some(sandbox) },
        };
        let run = RunGrant {
            run_id: "r".into(), session_id, turn_id, epoch, token: Some("t".into()), token_expires_at: Some(1),
        };
        holds(&Leased { run, input });
    }

    #[test]
    fn an_output_is_read_back_and_comes_to_the_same(output in output()) {
        let (method, form) = RunOutput::of("r", RunResult::Output(output.clone()));
        holds(&form);
        prop_assert_eq!(form.clone().result(method), Ok(RunResult::Output(output)));
        for other in OutputMethod::ALL.iter().filter(|other| **other != method) {
            prop_assert!(form.clone().result(*other).is_err());
        }
    }

    #[test]
    fn a_transcript_is_read_back(entries in prop::collection::vec(entry(), 0..4), edit in edit()) {
        holds(&Transcript { cursor: 7, entries });
        holds(&edit);
    }

    #[test]
    fn events_are_read_back(
        session_id in session(), turn_id in option::of(turn()), words in (word(), word()), flag in any::<bool>(),
    ) {
        let some = |word: &String| flag.then(|| word.clone());
        let state = WorkspaceEvent::State {
            state: WorkspaceState::Running, backend: words.0.clone(), isolation: some(&words.0), image: some(&words.1),
            network: some(&words.0), reattach: flag, lost: !flag, note: some(&words.1), error: some(&words.0),
        };
        let exec = WorkspaceEvent::Exec {
            tool: WorkspaceTool::Bash, command: some(&words.0), path: some(&words.1), exit_code: flag.then_some(-1),
            killed: flag, outcome: ExecOutcome::Uncertain, code: some(&words.0), duration_ms: 7,
        };
        for (event, record) in [(state.clone(), Some(record())), (state, None), (exec, None)] {
            let (session_id, turn_id) = (session_id.clone(), turn_id.clone());
            holds(&EventReported { run_id: some(&words.0), session_id, turn_id, event, record });
        }
    }
}

fn record() -> WorkspaceRecord {
    WorkspaceRecord {
        key: WorkspaceKey::from_trusted("nylorun-tn_1-0"),
        session_id: nylorun_domain::id::SessionId::from_trusted("s"),
        environment_id: Some("e".into()),
        backend: "virtual".into(),
        image: String::new(),
        state: WorkspaceState::Stopped,
        created_at: Millis(1),
        updated_at: Millis(2),
    }
}

#[test]
fn the_other_shapes_are_read_back() {
    holds(&Hello {
        api: 2,
        name: "n".into(),
        version: "v".into(),
        capabilities: Capabilities { workspace: Some(true) },
    });
    let tenant_id = nylorun_domain::id::TenantId::from_trusted("tn_1");
    for backend in [None, Some("virtual".to_owned())] {
        let sandbox = SandboxPreference { backend: Nullable(backend) };
        holds(&Welcome { api: 2, tenant_id: tenant_id.clone(), sandbox, renew_every_ms: 10_000 });
    }
    holds(&Lease { slots: None });
    holds(&Lease { slots: NonZeroU32::new(3).map(Slots) });
    holds(&Renew { run_id: "r".into() });
    holds(&Renewed::Lost);
    holds(&Renewed::Held { token: Some("t".into()), token_expires_at: None });
    for reason in ReleaseReason::ALL {
        holds(&Release { run_id: "r".into(), reason: *reason });
    }
    for reason in CancelReason::ALL {
        holds(&CancelRun { run_id: "r".into(), reason: *reason, message: Some("m".into()) });
    }
    for reply in [
        IntentReply::Pending,
        IntentReply::Uncertain,
        IntentReply::Execute(Rejoin::No),
        IntentReply::Execute(Rejoin::Yes),
    ] {
        holds(&reply);
    }
    holds(&OutcomeReply::Uncertain);
    holds(&TranscriptRead { run_id: "r".into() });
    holds(&OutputReply { cursor: Some(3) });
    holds(&Nothing);
    holds(&SessionMcp { run_id: "r".into(), snapshot: Some(object()), diagnostics: vec![object()] });
    holds(&DiscoveredTools { snapshot: object(), session_tools: vec![] });
    holds(&DefinitionBytes { base64: "AA==".into() });
    for result in [RunResult::Cancelled, RunResult::OwnershipLost] {
        let (method, form) = RunOutput::of("r", result.clone());
        holds(&form);
        assert_eq!(form.result(method), Ok(result));
    }
}

#[test]
fn the_shapes_of_workspaces_are_read_back() {
    let session = || WorkspaceSession {
        owner_id: nylorun_domain::id::SessionId::from_trusted("s"),
        sandbox_id: None,
        active_turn_id: Nullable(None),
    };
    let input = Json::from_trusted(r#"{"command":"\u0000"}"#);
    let call = WorkspaceCall { session: session(), spec: spec(), tool: WorkspaceTool::Read, input };
    let limit = Limit(NonZeroU64::MIN);
    let bytes = WantedBytes { path: "a".into(), max_bytes: limit };
    let list = WantedList { dir: "d".into(), max_entries: limit };
    holds(&WorkspaceReading::Call(call.clone()));
    holds(&WorkspaceReading::Bytes(BytesReading { session: session(), spec: spec(), bytes }));
    holds(&WorkspaceReading::List(ListReading { session: session(), spec: spec(), list }));
    holds(&call);
    holds(&WorkspaceSweep { now: Some(1) });
    holds(&WorkspaceRemove { keys: Some(vec![]), sandbox_ids: Some(vec!["e".into()]), all: None });
    holds(&WorkspaceRecords { records: vec![RecordForm::of(&record())] });
    assert_eq!(RecordForm::of(&record()).into_record(), record());
    holds(&WorkspaceReport { report: object() });
    let outcome = nylorun_domain::tool::ToolOutcome::Completed { output: Json::from_trusted("\"\\udfff\"") };
    let listed = WorkspaceAnswer::Listed { entries: vec![object()], truncated: true };
    for answer in [
        WorkspaceAnswer::Uncertain("m".into()),
        WorkspaceAnswer::Read { path: "a".into(), base64: "AA==".into() },
        WorkspaceAnswer::Missing,
        listed,
    ] {
        holds(&answer);
    }
    let answer = WorkspaceAnswer::Outcome(outcome);
    assert_eq!(decode(&encode(&answer)), Ok(answer));
}

#[test]
fn requests_are_known_by_their_methods() {
    for (method, params) in [
        ("hello", r#"{"api":2,"name":"n","version":"v","capabilities":{}}"#),
        ("lease", "{}"),
        ("lease.renew", r#"{"runId":"r"}"#),
        ("lease.release", r#"{"runId":"r","reason":"shutdown"}"#),
        ("transcript.read", r#"{"runId":"r"}"#),
        ("turn.failed", r#"{"runId":"r","status":"cancelled"}"#),
        ("session.mcp", r#"{"runId":"r","diagnostics":[]}"#),
    ] {
        assert!(CoreRequest::read(method, params).is_ok(), "{method}");
        assert!(HarnessRequest::read(method, params).is_err(), "{method}");
        assert!(check_request(method, params).is_ok(), "{method}");
    }
    for (method, params) in
        [("workspace.report", "{}"), ("workspace.sweep", "{}"), ("workspace.remove", r#"{"all":true}"#)]
    {
        assert!(HarnessRequest::read(method, params).is_ok(), "{method}");
        assert!(CoreRequest::read(method, params).is_err(), "{method}");
        assert!(check_request(method, params).is_ok(), "{method}");
    }
    assert!(check_result("lease.release", "{}").is_ok() && check_result("checkpoint", r#"{"cursor":1}"#).is_ok());
    assert!(check_result("lease.release", r#"{"ok":true}"#).is_err() && check_result("effect.resolved", "{}").is_err());
    assert!(check_message("cancel", r#"{"runId":"r","reason":"deadline"}"#).is_ok());
    assert!(check_message("cancel", r#"{"runId":"r","reason":"other"}"#).is_err() && check_message("x", "{}").is_err());
}

fn problem<S: Shape + std::fmt::Debug>(text: &str) -> String {
    decode::<S>(&Json::from_trusted(text)).expect_err(text).to_string()
}

#[test]
fn a_refusal_names_the_member_and_what_is_wrong() {
    for (said, expected) in [
        (problem::<Renew>("{}"), "runId is missing"),
        (problem::<Renew>(r#"{"runId":1}"#), "runId must be a text without lone surrogates"),
        (problem::<Renew>(r#"{"runId":"\ud800"}"#), "runId must be a text without lone surrogates"),
        (problem::<Renew>("[]"), "must be an object"),
        (problem::<Lease>(r#"{"slots":0}"#), "slots must be above 0"),
        (problem::<Lease>(r#"{"slots":1.5}"#), "slots must be a whole number in its range"),
        (problem::<Lease>(r#"{"slots":null}"#), "slots must be a whole number in its range"),
        (problem::<Release>(r#"{"runId":"r","reason":"tired"}"#), r#"reason may not be "tired""#),
        (problem::<OutcomeReported>(r#"{"runId":"r","effectId":"e"}"#), "must have either value or error"),
        (problem::<OutcomeReported>(r#"{"runId":"r","effectId":""}"#), "effectId must not be empty"),
        (
            problem::<OutcomeReported>(
                r#"{"runId":"r","effectId":"e","value":{"effect":"tool","outcome":{"kind":"x"}}}"#,
            ),
            "value.outcome a stored document cannot be read: the kind of an outcome",
        ),
        (
            problem::<DefinitionFile>(r#"{"runId":"r","sha256":"sha256:AB"}"#),
            "sha256 must be sha256: and 64 lowercase hexadecimal digits",
        ),
        (
            problem::<EffectOutcome>(concat!(
                r#"{"value":{"effect":"tool","outcome":{"kind":"failed","code":"c","message":"m"}},"#,
                r#""statePatch":{"a":1}}"#
            )),
            "statePatch.a is not a member",
        ),
        (problem::<IntentReply>(r#"{"status":"execute","rejoin":false}"#), "rejoin must be true, or absent"),
        (problem::<Renewed>(r#"{"ok":false,"token":"t"}"#), "token is not a member"),
        (problem::<JsonObject>("[]"), "must be an object"),
    ] {
        assert_eq!(said, expected);
    }
    // The last of equal names counts, as everywhere.
    assert_eq!(decode(&Json::from_trusted(r#"{"runId":1,"runId":"r"}"#)), Ok(Renew { run_id: "r".into() }));
    let record = EventReported {
        run_id: None,
        session_id: nylorun_domain::id::SessionId::from_trusted("s"),
        turn_id: None,
        event: WorkspaceEvent::Exec {
            tool: WorkspaceTool::Read,
            command: None,
            path: None,
            exit_code: None,
            killed: false,
            outcome: ExecOutcome::Completed,
            code: None,
            duration_ms: 1,
        },
        record: Some(record()),
    };
    assert_eq!(problem::<EventReported>(encode(&record).as_str()), "record goes with sandbox.state only");
}

#[test]
fn what_an_engine_threw_fails_the_turn_by_one_method_only() {
    let (_, bare) = RunOutput::of("r", RunResult::Cancelled);
    let thrown = |code: Option<&str>| RunOutput {
        status: None,
        thrown: Some(Thrown { code: code.map(str::to_owned), message: "m".into() }),
        ..bare.clone()
    };
    assert!(thrown(None).result(OutputMethod::Completed).is_err());
    assert_eq!(thrown(Some("ownership_lost")).result(OutputMethod::Failed), Ok(RunResult::OwnershipLost));
    let Ok(RunResult::Output(output)) = thrown(Some("x.y")).result(OutputMethod::Failed) else { panic!() };
    assert_eq!(output.end, nylorun_domain::segment::TurnEnd::Failed { code: "x.y".into(), message: "m".into() });
    let waiting = RunOutput { status: Some(OutputStatus::Waiting), ..bare };
    assert!(waiting.result(OutputMethod::Waiting).is_err());
}

#[test]
fn a_budget_that_is_not_named_is_the_usual_one() {
    let usual = YieldAfter::default();
    assert_eq!(YieldLimits::or_default(None), usual);
    let only_steps = Some(YieldLimits { steps: Some(3), ms: None });
    assert_eq!(YieldLimits::or_default(only_steps), YieldAfter { steps: 3, ..usual });
}
