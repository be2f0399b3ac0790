//! Core's end of the Harness API, against a harness that does as the test says (engine a.7, a.10).

use std::sync::Arc;

use nylorun_domain::effect::{EffectOutcome, Intent, IntentRequest, ToolRequest, ToolTarget};
use nylorun_domain::id::{CallId, EffectId, InvocationId, SessionId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::segment::{TurnEnd, TurnOutput};
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::transcript::{Entry, Line};
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceRecord, WorkspaceState};
use nylorun_harness::{Checks, HarnessServer, HarnessServerConfig};
use nylorun_ports::abort::{AbortHandle, AbortKind, abort_pair};
use nylorun_ports::frames::frame_ports;
use nylorun_ports::run::{CoreError, Harness, RunEnd};
use nylorun_wire::harness::effect::{EffectIntent, EffectScope, IntentRequested, RequestHash};
use nylorun_wire::harness::event::EventReported;
use nylorun_wire::harness::frame::{ApiError, ErrorCode};
use nylorun_wire::harness::lease::{CancelReason, Lease, Release, ReleaseReason, Renew, Renewed};
use nylorun_wire::harness::method::OutputMethod;
use nylorun_wire::harness::outcome::{Became, IntentReply, OutcomeReply, OutcomeReported, Rejoin};
use nylorun_wire::harness::output::{OutputStatus, RunOutput, RunResult, Thrown};
use nylorun_wire::harness::session::{DefinitionFile, SessionMcp};
use nylorun_wire::harness::shape::{decode, encode};
use nylorun_wire::harness::transcript::TranscriptRead;
use tokio::task::JoinHandle;

use crate::fake_core::FakeCore;
use crate::fake_gates::state_event;
use crate::peer::{Peer, hello};
use crate::support::{fresh_id, start, tenant};

struct Core {
    server: HarnessServer,
    core: Arc<FakeCore>,
}

/// A run that is offered.
struct Offered {
    run: JoinHandle<RunEnd>,
    abort: AbortHandle,
}

impl Offered {
    async fn end(self) -> RunEnd {
        self.run.await.expect("offering does not panic")
    }
}

impl Core {
    fn new() -> Self {
        let server = HarnessServer::new(HarnessServerConfig::new(tenant(), fresh_id));
        Self { server, core: Arc::default() }
    }

    fn connect(&self) -> Peer {
        let (core, port) = frame_ports();
        self.server.connect(core, Checks::On);
        Peer::new(port)
    }

    /// A peer that said hello.
    async fn welcome(&self) -> Peer {
        let mut peer = self.connect();
        peer.hello().await;
        peer
    }

    fn offer(&self, turn: &str) -> Offered {
        let (abort, told) = abort_pair();
        let (server, core) = (self.server.clone(), Arc::<FakeCore>::clone(&self.core));
        let mut start = start(Vec::new());
        start.turn_id = TurnId::from_trusted(turn);
        let output = Json::from_trusted("\"before\"");
        start.transcript = Arc::new(vec![Line::from(Entry::Final { output })]);
        Offered { run: tokio::spawn(async move { server.run(start, core, told).await }), abort }
    }

    /// A peer with a run of turn `t`.
    async fn taken(&self) -> (Peer, Offered, String) {
        let mut peer = self.welcome().await;
        let offered = self.offer("t");
        let run_id = peer.lease().await.run.run_id;
        (peer, offered, run_id)
    }
}

fn scope(turn: &str) -> EffectScope {
    let start = start(Vec::new());
    EffectScope {
        session_id: start.session_id,
        turn_id: TurnId::from_trusted(turn),
        agent_id: start.agent_id,
        manifest_hash: start.manifest.hash.clone(),
        segment: 0,
    }
}

fn tool(name: &str, target: ToolTarget) -> Intent {
    Intent {
        id: EffectId::from_trusted(format!("t:0:tool:{name}")),
        invocation_id: InvocationId::from_trusted(name),
        request: IntentRequest::Tool(ToolRequest {
            step: 1,
            call_id: CallId::from_trusted("call"),
            tool_name: name.to_owned(),
            capability_id: "nylorun.sandbox".to_owned(),
            input: Json::from_trusted(r#"{"command":"\ud800"}"#),
            target,
            resume: None,
        }),
        request_hash: String::new(),
    }
}

fn bash() -> Intent {
    tool("bash", ToolTarget::Workspace(WorkspaceTool::Bash))
}

fn model() -> Intent {
    let (id, invocation_id) = (EffectId::from_trusted("t:0:model:m"), InvocationId::from_trusted("m"));
    Intent { id, invocation_id, request: IntentRequest::Model, request_hash: "0".repeat(64) }
}

fn wanted(run_id: &str, intent: &Intent, scope: &EffectScope) -> IntentRequested {
    let effect = EffectIntent::of(intent, scope);
    let hash = match intent.request {
        IntentRequest::Model | IntentRequest::Summary => intent.request_hash.clone(),
        IntentRequest::Tool(_) => effect.hash(),
    };
    IntentRequested { run_id: run_id.to_owned(), effect, request_hash: RequestHash::from_trusted(hash) }
}

fn reported(run_id: &str, intent: &Intent, became: Became) -> OutcomeReported {
    OutcomeReported { run_id: run_id.to_owned(), effect_id: intent.id.clone(), became }
}

fn gave(output: &str) -> EffectOutcome {
    EffectOutcome::Tool(ToolOutcome::Completed { output: Json::from_trusted(output) })
}

fn completed(run_id: &str) -> (OutputMethod, RunOutput) {
    let end = TurnEnd::Completed { output: Json::from_trusted("\"Done\"") };
    RunOutput::of(run_id, RunResult::Output(TurnOutput { end, edits: Vec::new() }))
}

fn refused<T: std::fmt::Debug>(result: Result<T, ApiError>) -> ErrorCode {
    result.expect_err("it is refused").code
}

#[tokio::test]
async fn a_harness_says_hello_in_the_version_of_core_before_it_leases() {
    let core = Core::new();
    let mut peer = core.connect();
    assert_eq!(refused(peer.call(&Lease { slots: None }).await), ErrorCode::Invalid);
    assert_eq!(refused(peer.call(&hello(1)).await), ErrorCode::Invalid);
    let welcome = peer.call(&hello(2)).await.expect("the same version");
    assert_eq!(
        encode(&welcome).as_str(),
        r#"{"api":2,"tenantId":"tn_1","sandbox":{"backend":null},"renewEveryMs":10000}"#
    );
    let unknown = peer.send("effect.resolved", &Json::from_trusted("{}"));
    assert_eq!(refused(peer.answer(unknown).await), ErrorCode::Invalid);
}

#[tokio::test]
async fn leases_and_offers_meet_in_their_order() {
    let core = Core::new();
    let (mut one, mut two) = (core.welcome().await, core.welcome().await);
    let _first = core.offer("a");
    let _second = core.offer("b");
    assert_eq!(one.lease().await.run.turn_id.as_str(), "a");
    assert_eq!(two.lease().await.run.turn_id.as_str(), "b");

    let third = two.send_call(&Lease { slots: None });
    core.server.ready().await;
    let fourth = one.send_call(&Lease { slots: None });
    // Each connection's requests are in order: an answer to a later one says that the lease was heard.
    assert_eq!(refused(one.call(&Renew { run_id: "none".into() }).await), ErrorCode::RunNotHeld);
    let _offers = [core.offer("c"), core.offer("d")];
    let taken = |result: Result<nylorun_wire::harness::lease::Leased, ApiError>| result.unwrap().run.turn_id;
    assert_eq!(taken(two.answer_of(third).await).as_str(), "c");
    assert_eq!(taken(one.answer_of(fourth).await).as_str(), "d");
}

#[tokio::test]
async fn a_lease_that_was_given_up_gets_no_run() {
    let core = Core::new();
    let (mut one, mut two) = (core.welcome().await, core.welcome().await);
    let first = one.send_call(&Lease { slots: None });
    core.server.ready().await;
    one.give_up(first);
    assert_eq!(refused(one.answer(first).await), ErrorCode::Unavailable);
    let _offered = core.offer("a");
    assert_eq!(two.lease().await.run.turn_id.as_str(), "a");
}

#[tokio::test(start_paused = true)]
async fn an_offer_waits_ten_seconds() {
    let core = Core::new();
    let begun = tokio::time::Instant::now();
    let end = core.offer("a").end().await;
    assert!(matches!(end, RunEnd::Released(CoreError::Unavailable(_))), "{end:?}");
    assert_eq!(begun.elapsed().as_secs(), 10);
    // It is not offered any more.
    let mut peer = core.welcome().await;
    let _offered = core.offer("b");
    assert_eq!(peer.lease().await.run.turn_id.as_str(), "b");
}

#[tokio::test]
async fn an_abort_ends_an_offer_that_nobody_took() {
    for (kind, end) in [
        (AbortKind::Shutdown, RunEnd::Stopped),
        (AbortKind::Cancel, RunEnd::Released(CoreError::TurnCancelled)),
        (AbortKind::OwnershipLost, RunEnd::Released(CoreError::OwnershipLost)),
    ] {
        let core = Core::new();
        let offered = core.offer("a");
        offered.abort.abort(kind);
        assert_eq!(offered.end().await, end);
        let _next = core.offer("b");
        assert_eq!(core.welcome().await.lease().await.run.turn_id.as_str(), "b");
    }
}

#[tokio::test]
async fn a_taken_run_is_told_to_end_and_why() {
    let core = Core::new();
    let (mut peer, offered, run_id) = core.taken().await;
    offered.abort.abort(AbortKind::Shutdown);
    assert_eq!(peer.cancelled().await, (run_id.clone(), CancelReason::Shutdown));
    offered.abort.abort(AbortKind::Deadline);
    assert_eq!(peer.cancelled().await, (run_id.clone(), CancelReason::Deadline));
    peer.call(&Release { run_id, reason: ReleaseReason::Shutdown }).await.unwrap();
    assert_eq!(offered.end().await, RunEnd::Stopped);

    for (kind, reason, error) in [
        (AbortKind::Cancel, CancelReason::Cancel, CoreError::TurnCancelled),
        (AbortKind::OwnershipLost, CancelReason::OwnershipLost, CoreError::OwnershipLost),
    ] {
        let (mut peer, offered, run_id) = core.taken().await;
        offered.abort.abort(kind);
        assert_eq!(peer.cancelled().await, (run_id.clone(), reason));
        assert_eq!(offered.end().await, RunEnd::Released(error));
        assert_eq!(refused(peer.call(&Renew { run_id }).await), ErrorCode::RunNotHeld);
    }
}

#[tokio::test]
async fn a_deadline_after_a_shutdown_is_told_as_one() {
    let core = Core::new();
    let (mut peer, offered, run_id) = core.taken().await;
    offered.abort.abort(AbortKind::Shutdown);
    offered.abort.abort(AbortKind::Deadline);
    assert_eq!(peer.cancelled().await, (run_id.clone(), CancelReason::Shutdown));
    assert_eq!(peer.cancelled().await, (run_id, CancelReason::Deadline));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_end_after_its_deadline_is_abandoned() {
    let core = Core::new();
    let (_peer, offered, _) = core.taken().await;
    let begun = tokio::time::Instant::now();
    offered.abort.abort(AbortKind::Deadline);
    assert_eq!(offered.end().await, RunEnd::ConnectionLost);
    assert_eq!(begun.elapsed().as_secs(), 30);
}

#[tokio::test]
async fn a_connection_that_closes_loses_its_runs_and_its_leases() {
    let core = Core::new();
    let (mut peer, offered, run_id) = core.taken().await;
    peer.call(&wanted(&run_id, &bash(), &scope("t"))).await.unwrap();
    peer.send_call(&Lease { slots: None });
    core.server.ready().await;
    peer.close();
    assert_eq!(offered.end().await, RunEnd::ConnectionLost);
    let _next = core.offer("b");
    let mut other = core.welcome().await;
    assert_eq!(other.lease().await.run.turn_id.as_str(), "b");
    assert_eq!(refused(other.call(&wanted(&run_id, &bash(), &scope("t"))).await), ErrorCode::RunNotHeld);
}

#[tokio::test]
async fn an_advance_that_is_dropped_ends_its_run() {
    let core = Core::new();
    let (mut peer, offered, run_id) = core.taken().await;
    offered.run.abort();
    assert_eq!(peer.cancelled().await, (run_id.clone(), CancelReason::OwnershipLost));
    assert_eq!(refused(peer.output(completed(&run_id)).await), ErrorCode::RunNotHeld);
    assert!(core.core.lines().is_empty());
}

#[tokio::test]
async fn only_the_connection_that_holds_a_run_may_act_on_it() {
    let core = Core::new();
    let (_peer, _offered, run_id) = core.taken().await;
    let mut other = core.welcome().await;
    let id = || run_id.clone();
    let event = event(&run_id, "t", None);
    let refusals = [
        refused(other.call(&Renew { run_id: id() }).await),
        refused(other.call(&Release { run_id: id(), reason: ReleaseReason::Shutdown }).await),
        refused(other.call(&wanted(&run_id, &bash(), &scope("t"))).await),
        refused(other.call(&reported(&run_id, &bash(), Became::Error("x".into()))).await),
        refused(other.call(&TranscriptRead { run_id: id() }).await),
        refused(other.call(&event).await),
        refused(other.call(&SessionMcp { run_id: id(), snapshot: None, diagnostics: vec![] }).await),
        refused(other.output(completed(&run_id)).await),
    ];
    assert_eq!(refusals, [ErrorCode::RunNotHeld; 8]);
    assert!(core.core.lines().is_empty());
}

#[tokio::test]
async fn an_output_is_settled_once_however_often_it_is_sent() {
    let core = Core::new();
    let (mut peer, offered, run_id) = core.taken().await;
    let (method, output) = completed(&run_id);
    let params = encode(&output);
    let ids: Vec<u64> = (0..5).map(|_| peer.send(method.as_str(), &params)).collect();
    let (other, failed) = RunOutput::of(&run_id, RunResult::Output(failed()));
    let other = peer.send(other.as_str(), &encode(&failed));
    let mut settled = 0;
    for id in ids {
        match peer.answer(id).await {
            Ok(reply) => settled += usize::from(reply.as_str() == "{}"),
            // It came after the first was answered, when the run was forgotten.
            Err(error) => assert_eq!(error.code, ErrorCode::RunNotHeld),
        }
    }
    assert!(settled >= 2, "{settled}");
    assert_eq!(refused(peer.answer(other).await), ErrorCode::RunNotHeld);
    assert_eq!(offered.end().await, RunEnd::Settled);
    assert_eq!(core.core.lines(), ["-> completed \"Done\""]);
    assert_eq!(refused(peer.output(completed(&run_id)).await), ErrorCode::RunNotHeld);
}

fn failed() -> TurnOutput {
    TurnOutput { end: TurnEnd::Failed { code: "x".into(), message: "y".into() }, edits: Vec::new() }
}

#[tokio::test]
async fn an_output_that_the_runtime_refuses_ends_the_run_with_its_refusal() {
    let core = Core::new();
    let (mut peer, offered, run_id) = core.taken().await;
    core.core.fail("-> completed \"Done\"", CoreError::OwnershipLost);
    assert_eq!(refused(peer.output(completed(&run_id)).await), ErrorCode::OwnershipLost);
    assert_eq!(offered.end().await, RunEnd::Released(CoreError::OwnershipLost));
}

#[tokio::test]
async fn a_run_may_end_without_an_output() {
    let core = Core::new();
    let lost = RunEnd::Released(CoreError::OwnershipLost);
    for (reason, end) in [
        (ReleaseReason::Shutdown, RunEnd::Stopped),
        (ReleaseReason::OwnershipLost, lost.clone()),
        (ReleaseReason::ConnectionLost, RunEnd::ConnectionLost),
    ] {
        let (mut peer, offered, run_id) = core.taken().await;
        peer.call(&Release { run_id: run_id.clone(), reason }).await.unwrap();
        assert_eq!(offered.end().await, end);
        assert_eq!(refused(peer.call(&Renew { run_id }).await), ErrorCode::RunNotHeld);
    }
    for (result, end) in
        [(RunResult::Cancelled, RunEnd::Released(CoreError::TurnCancelled)), (RunResult::OwnershipLost, lost)]
    {
        let (mut peer, offered, run_id) = core.taken().await;
        peer.output(RunOutput::of(&run_id, result)).await.unwrap();
        assert_eq!(offered.end().await, end);
    }
    assert!(core.core.lines().is_empty());
}

#[tokio::test]
async fn what_an_engine_throws_fails_its_turn() {
    let core = Core::new();
    let (mut peer, offered, run_id) = core.taken().await;
    let (method, output) = RunOutput::of(&run_id, RunResult::Cancelled);
    let thrown = Some(Thrown { code: None, message: "oh".into() });
    let output = RunOutput { status: None, thrown, ..output };
    peer.output((method, output)).await.unwrap();
    assert_eq!(offered.end().await, RunEnd::Settled);
    assert_eq!(core.core.lines(), ["-> failed internal"]);
}

#[tokio::test]
async fn an_output_that_contradicts_itself_is_invalid_and_the_run_goes_on() {
    let core = Core::new();
    let (mut peer, _offered, run_id) = core.taken().await;
    let (_, output) = completed(&run_id);
    assert_eq!(refused(peer.output((OutputMethod::Failed, output.clone())).await), ErrorCode::Invalid);
    let empty = RunOutput { output: None, ..output.clone() };
    assert_eq!(refused(peer.output((OutputMethod::Completed, empty)).await), ErrorCode::Invalid);
    let waiting = RunOutput { status: Some(OutputStatus::Waiting), ..output.clone() };
    assert_eq!(refused(peer.output((OutputMethod::Waiting, waiting)).await), ErrorCode::Invalid);
    peer.output((OutputMethod::Completed, output)).await.unwrap();
}

#[tokio::test]
async fn an_effect_of_another_turn_or_with_another_hash_is_invalid() {
    let core = Core::new();
    let (mut peer, _offered, run_id) = core.taken().await;
    let good = scope("t");
    for other in [
        scope("other"),
        EffectScope { session_id: SessionId::from_trusted("other"), ..good.clone() },
        EffectScope { manifest_hash: "0".repeat(64), ..good.clone() },
    ] {
        assert_eq!(refused(peer.call(&wanted(&run_id, &bash(), &other)).await), ErrorCode::Invalid);
    }
    let mut forged = wanted(&run_id, &bash(), &good);
    forged.effect.input = Some(Json::from_trusted(r#"{"command":"else"}"#));
    assert_eq!(refused(peer.call(&forged).await), ErrorCode::Invalid);
    assert!(core.core.lines().is_empty());
    // A model's hash covers its prompt, which core never has.
    assert_eq!(peer.call(&wanted(&run_id, &model(), &good)).await, Ok(IntentReply::Execute(Rejoin::No)));
}

#[tokio::test]
async fn the_manifest_says_where_a_tool_runs_and_not_the_harness() {
    let core = Core::new();
    let (mut peer, _offered, run_id) = core.taken().await;
    let mut code_of = async |intent: Intent| match peer.call(&wanted(&run_id, &intent, &scope("t"))).await {
        Ok(IntentReply::Completed(outcome)) => match *outcome {
            EffectOutcome::Tool(ToolOutcome::Failed { code, .. }) => code,
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    };
    let anywhere = ToolTarget::Workspace(WorkspaceTool::Bash);
    assert_eq!(code_of(tool("remote", anywhere)).await, "tool.unavailable");
    assert_eq!(code_of(tool("nope", anywhere)).await, "tool.unknown");
    // What a person or the model said is not in the manifest.
    assert_eq!(code_of(tool("order", ToolTarget::Denied)).await, "denied");
    assert_eq!(code_of(tool("read", ToolTarget::MalformedInput)).await, "tool.invalid-arguments");
}

#[tokio::test]
async fn an_outcome_is_recorded_once_and_of_effects_that_were_begun() {
    let core = Core::new();
    let (mut peer, _offered, run_id) = core.taken().await;
    let value = || Became::Value(gave("\"\\ud800\""));
    assert_eq!(refused(peer.call(&reported(&run_id, &bash(), value())).await), ErrorCode::Invalid);
    peer.call(&wanted(&run_id, &bash(), &scope("t"))).await.unwrap();
    peer.call(&wanted(&run_id, &model(), &scope("t"))).await.unwrap();
    assert_eq!(refused(peer.call(&reported(&run_id, &model(), value())).await), ErrorCode::Invalid);
    for _ in 0..2 {
        let reply = peer.call(&reported(&run_id, &bash(), value())).await;
        assert_eq!(reply, Ok(OutcomeReply::Completed(Box::new(gave("\"\\ud800\"")))));
    }
    let reply = peer.call(&reported(&run_id, &model(), Became::Error("cut".into()))).await;
    assert_eq!(reply, Ok(OutcomeReply::Uncertain));
    let expected = ["-> bash", "-> model", "bash \"\\ud800\" -> nothing", "model lost (cut) -> nothing"];
    assert_eq!(core.core.lines(), expected);
}

fn event(run_id: &str, turn: &str, record: Option<WorkspaceRecord>) -> EventReported {
    EventReported {
        run_id: Some(run_id.to_owned()),
        session_id: SessionId::from_trusted("session"),
        turn_id: Some(TurnId::from_trusted(turn)),
        event: state_event(),
        record,
    }
}

fn record(owner: &str) -> WorkspaceRecord {
    let session_id = SessionId::from_trusted(owner);
    WorkspaceRecord {
        key: WorkspaceKey::of_session(&tenant(), &session_id),
        session_id,
        environment_id: None,
        backend: "virtual".into(),
        image: String::new(),
        state: WorkspaceState::Running,
        created_at: nylorun_domain::time::Millis(1),
        updated_at: nylorun_domain::time::Millis(2),
    }
}

#[tokio::test]
async fn events_of_a_run_are_committed_with_the_outcome_that_they_belong_to() {
    let core = Core::new();
    let (mut peer, _offered, run_id) = core.taken().await;
    peer.call(&wanted(&run_id, &bash(), &scope("t"))).await.unwrap();
    peer.call(&event(&run_id, "t", Some(record("session")))).await.unwrap();
    assert_eq!(core.core.lines(), ["-> bash"]);
    peer.call(&reported(&run_id, &bash(), Became::Value(gave("1")))).await.unwrap();
    let (reports, _) = core.core.commits().pop().unwrap();
    assert_eq!((&reports[0].events[..], &reports[0].record), (&[state_event()][..], &Some(record("session"))));
}

#[tokio::test]
async fn a_harness_cannot_fill_the_memory_of_core_with_events() {
    let core = Core::new();
    let (mut peer, _offered, run_id) = core.taken().await;
    for _ in 0..256 {
        peer.call(&event(&run_id, "t", None)).await.unwrap();
    }
    assert_eq!(refused(peer.call(&event(&run_id, "t", None)).await), ErrorCode::Invalid);
}

#[tokio::test]
async fn a_harness_cannot_forge_the_events_of_others() {
    let core = Core::new();
    let (mut peer, _offered, run_id) = core.taken().await;
    let mine = event(&run_id, "t", None);
    let of_session = EventReported { session_id: SessionId::from_trusted("other"), ..mine.clone() };
    let of_no_run = EventReported { run_id: None, ..mine.clone() };
    let codes = [
        refused(peer.call(&of_session).await),
        refused(peer.call(&event(&run_id, "other", None)).await),
        refused(peer.call(&event(&run_id, "t", Some(record("other")))).await),
        refused(peer.call(&of_no_run).await),
    ];
    assert_eq!(codes, [ErrorCode::Invalid, ErrorCode::Invalid, ErrorCode::Invalid, ErrorCode::RunNotHeld]);
}

#[tokio::test]
async fn a_refusal_of_the_runtime_ends_the_run() {
    for (error, code) in [
        (CoreError::OwnershipLost, ErrorCode::OwnershipLost),
        (CoreError::TurnCancelled, ErrorCode::TurnCancelled),
        (CoreError::Unavailable("down".into()), ErrorCode::Unavailable),
    ] {
        let core = Core::new();
        let (mut peer, offered, run_id) = core.taken().await;
        core.core.fail("-> bash", error.clone());
        assert_eq!(refused(peer.call(&wanted(&run_id, &bash(), &scope("t"))).await), code);
        assert_eq!(offered.end().await, RunEnd::Released(error));
        assert_eq!(refused(peer.call(&Renew { run_id }).await), ErrorCode::RunNotHeld);
    }
    // A drift does not: the engine fails the turn.
    let core = Core::new();
    let (mut peer, _offered, run_id) = core.taken().await;
    core.core.fail("-> bash", CoreError::EffectDrift(bash().id));
    assert_eq!(refused(peer.call(&wanted(&run_id, &bash(), &scope("t"))).await), ErrorCode::EffectDrift);
    let held = Renewed::Held { token: None, token_expires_at: None };
    assert_eq!(peer.call(&Renew { run_id }).await, Ok(held));
}

#[tokio::test]
async fn the_transcript_is_read_and_what_is_not_built_is_unavailable() {
    let core = Core::new();
    let mut peer = core.welcome().await;
    let _offered = core.offer("t");
    let leased = peer.lease().await;
    let run_id = leased.run.run_id;
    let transcript = peer.call(&TranscriptRead { run_id: run_id.clone() }).await.unwrap();
    assert_eq!((transcript.cursor, transcript.entries.len()), (leased.input.transcript.cursor, 1));
    let mcp = SessionMcp { run_id: run_id.clone(), snapshot: None, diagnostics: vec![] };
    assert_eq!(refused(peer.call(&mcp).await), ErrorCode::Unavailable);
    let params = Json::from_trusted(format!(r#"{{"runId":"{run_id}","sha256":"sha256:{}"}}"#, "a".repeat(64)));
    let file: DefinitionFile = decode(&params).unwrap();
    assert_eq!(refused(peer.call(&file).await), ErrorCode::Unavailable);
}

#[tokio::test]
async fn a_server_that_closes_offers_nothing_and_keeps_nobody() {
    let core = Core::new();
    let mut peer = core.welcome().await;
    let offered = core.offer("a");
    tokio::task::yield_now().await;
    core.server.close();
    for end in [offered.end().await, core.offer("b").end().await] {
        assert!(matches!(end, RunEnd::Released(CoreError::Unavailable(_))), "{end:?}");
    }
    assert_eq!(peer.closed().await, "core stops");
    assert_eq!(core.connect().closed().await, "core stops");
}
