//! The harness's end of the Harness API, against a core that does as the test says (engine a.9).

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::json::Json;
use nylorun_harness::{Checks, HarnessClient, HarnessClientConfig, HarnessServer, HarnessServerConfig, InProcess};
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::{Abort, AbortKind};
use nylorun_ports::frames::frame_ports;
use nylorun_ports::run::{CoreError, Harness, RunCore, RunEnd, TurnStart};
use nylorun_wire::harness::effect::IntentRequested;
use nylorun_wire::harness::frame::{ApiError, ErrorCode};
use nylorun_wire::harness::hello::{Hello, SandboxPreference, Welcome};
use nylorun_wire::harness::lease::{CancelReason, CancelRun, Lease, Leased, Release, ReleaseReason, Renew, Renewed};
use nylorun_wire::harness::outcome::IntentReply;
use nylorun_wire::harness::output::{OutputStatus, RunOutput};
use nylorun_wire::harness::shape::{Nothing, Nullable, decode, encode};
use tokio::sync::mpsc;

use crate::fake_blobs::FakeBlobs;
use crate::fake_core::FakeCore;
use crate::fake_gates::{FakeModel, FakeWorkspaces};
use crate::fake_http_tools::FakeHttpTools;
use crate::peer::Peer;
use crate::support::{client_config, fresh_id, start, tenant};

/// A harness whose runs wait to be told to end.
struct Waits {
    begun: mpsc::UnboundedSender<TurnStart>,
}

impl Harness for Waits {
    fn run(&self, start: TurnStart, _core: Arc<dyn RunCore>, mut abort: Abort) -> BoxFuture<'_, RunEnd> {
        self.begun.send(start).unwrap();
        Box::pin(async move {
            match abort.aborted().await {
                AbortKind::Cancel => RunEnd::Released(CoreError::TurnCancelled),
                AbortKind::OwnershipLost => RunEnd::Released(CoreError::OwnershipLost),
                AbortKind::Shutdown | AbortKind::Deadline => RunEnd::Stopped,
            }
        })
    }
}

/// A client, and the bare end of core.
struct World {
    core: Peer,
    client: HarnessClient,
    begun: mpsc::UnboundedReceiver<TurnStart>,
}

impl World {
    async fn welcome(config: HarnessClientConfig) -> Self {
        let (begun_sender, begun) = mpsc::unbounded_channel();
        let (core, port) = frame_ports();
        let client = HarnessClient::start(port, Arc::new(Waits { begun: begun_sender }), config);
        let mut core = Peer::new(core);
        welcome(&mut core, 2).await;
        Self { core, client, begun }
    }

    /// Answers the waiting lease with a run.
    async fn grant(&mut self, run_id: &str) {
        let (id, _) = self.core.requested::<Lease>().await;
        self.core.grant::<Lease>(id, &leased(run_id).await);
        self.begun.recv().await.expect("the run begins");
    }
}

async fn welcome(core: &mut Peer, api: i64) -> Hello {
    let (id, hello) = core.requested::<Hello>().await;
    let sandbox = SandboxPreference { backend: Nullable(None) };
    core.grant::<Hello>(id, &Welcome { api, tenant_id: tenant(), sandbox, renew_every_ms: 10_000 });
    hello
}

/// A run as a server hands it over.
async fn leased(run_id: &str) -> Leased {
    let server = HarnessServer::new(HarnessServerConfig::new(tenant(), fresh_id));
    let (core, port) = frame_ports();
    server.connect(core, Checks::On);
    let mut peer = Peer::new(port);
    peer.hello().await;
    tokio::spawn(async move { server.run(start(Vec::new()), Arc::new(FakeCore::default()), Abort::never()).await });
    let mut leased = peer.lease().await;
    run_id.clone_into(&mut leased.run.run_id);
    leased
}

/// Answers every renewal, and with `last` the one of this number.
async fn renewed(core: &mut Peer, number: u32, last: &Renewed) {
    for at in 1..=number {
        let (id, _) = core.requested::<Renew>().await;
        let held = Renewed::Held { token: None, token_expires_at: None };
        core.grant::<Renew>(id, if at == number { last } else { &held });
    }
}

#[tokio::test]
async fn it_says_who_it_is_and_leaves_a_core_of_another_version() {
    let (core, port) = frame_ports();
    let mut client =
        HarnessClient::start(port, Arc::new(Waits { begun: mpsc::unbounded_channel().0 }), client_config());
    let mut core = Peer::new(core);
    let hello = welcome(&mut core, 3).await;
    assert_eq!(encode(&hello).as_str(), r#"{"api":2,"name":"test","version":"0","capabilities":{}}"#);
    assert_eq!(core.closed().await, "another version of the Harness API");
    client.ended().await;
}

#[tokio::test]
async fn it_asks_for_one_run_at_a_time_while_it_has_room() {
    let config = HarnessClientConfig { max_runs: NonZeroU32::new(2), ..client_config() };
    let mut world = World::welcome(config).await;
    let (first, lease) = world.core.requested::<Lease>().await;
    assert_eq!(lease.slots.map(|slots| slots.0.get()), Some(2));
    world.core.grant::<Lease>(first, &leased("a").await);
    let (second, lease) = world.core.requested::<Lease>().await;
    assert_eq!(lease.slots.map(|slots| slots.0.get()), Some(1));
    world.core.grant::<Lease>(second, &leased("b").await);
    // It is full now: the next request is of a run that ends.
    world.core.tell(&CancelRun { run_id: "a".into(), reason: CancelReason::Shutdown, message: None });
    let (id, release) = world.core.requested::<Release>().await;
    assert_eq!(release, Release { run_id: "a".into(), reason: ReleaseReason::Shutdown });
    world.core.grant::<Release>(id, &Nothing);
    world.core.requested::<Lease>().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_lease_is_asked_for_again_after_100_ms() {
    let mut world = World::welcome(client_config()).await;
    let begun = tokio::time::Instant::now();
    for _ in 0..3 {
        let (id, _) = world.core.requested::<Lease>().await;
        world.core.respond(id, Err(ApiError::new(ErrorCode::Unavailable, "not now")));
    }
    assert_eq!(begun.elapsed(), Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn it_renews_its_runs_and_ends_one_whose_lease_is_lost() {
    let mut world = World::welcome(client_config()).await;
    world.grant("a").await;
    world.core.requested::<Lease>().await;
    let begun = tokio::time::Instant::now();
    renewed(&mut world.core, 3, &Renewed::Lost).await;
    assert_eq!(begun.elapsed().as_secs(), 30);
    let (_, release) = world.core.requested::<Release>().await;
    assert_eq!(release, Release { run_id: "a".into(), reason: ReleaseReason::OwnershipLost });
}

#[tokio::test]
async fn a_run_is_told_why_it_is_to_end() {
    for (reason, expected) in [
        (CancelReason::Shutdown, ReleaseReason::Shutdown),
        (CancelReason::Deadline, ReleaseReason::Shutdown),
        (CancelReason::OwnershipLost, ReleaseReason::OwnershipLost),
    ] {
        let mut world = World::welcome(client_config()).await;
        world.grant("a").await;
        world.core.requested::<Lease>().await;
        world.core.tell(&CancelRun { run_id: "other".into(), reason: CancelReason::Cancel, message: None });
        world.core.tell(&CancelRun { run_id: "a".into(), reason, message: None });
        let (_, release) = world.core.requested::<Release>().await;
        assert_eq!(release.reason, expected, "{reason:?}");
    }
}

#[tokio::test]
async fn a_cancelled_run_ends_with_an_output_that_says_so() {
    let mut world = World::welcome(client_config()).await;
    world.grant("a").await;
    world.core.requested::<Lease>().await;
    world.core.tell(&CancelRun { run_id: "a".into(), reason: CancelReason::Cancel, message: None });
    let (_, method, params) = world.core.request().await;
    let output: RunOutput = decode(&params).unwrap();
    assert_eq!((method.as_str(), output.status), ("turn.failed", Some(OutputStatus::Cancelled)));
}

#[tokio::test]
async fn a_cancel_that_follows_its_lease_at_once_is_heard() {
    let mut world = World::welcome(client_config()).await;
    let (id, _) = world.core.requested::<Lease>().await;
    let lease = leased("a").await;
    world.core.grant::<Lease>(id, &lease);
    world.core.tell(&CancelRun { run_id: "a".into(), reason: CancelReason::OwnershipLost, message: None });
    world.core.requested::<Lease>().await;
    let (_, release) = world.core.requested::<Release>().await;
    assert_eq!(release.reason, ReleaseReason::OwnershipLost);
}

#[tokio::test]
async fn a_close_ends_all_runs() {
    let mut world = World::welcome(client_config()).await;
    world.grant("a").await;
    world.grant("b").await;
    world.core.close();
    world.client.ended().await;
}

#[tokio::test]
async fn a_stop_gives_up_the_lease_and_gives_the_runs_back() {
    let mut world = World::welcome(client_config()).await;
    world.grant("a").await;
    let (lease, _) = world.core.requested::<Lease>().await;
    let stopped = tokio::spawn(world.client.stop(Duration::from_secs(60)));
    assert_eq!(world.core.given_up().await, lease);
    let (id, release) = world.core.requested::<Release>().await;
    assert_eq!(release, Release { run_id: "a".into(), reason: ReleaseReason::Shutdown });
    world.core.grant::<Release>(id, &Nothing);
    assert_eq!(world.core.closed().await, "the harness stops");
    stopped.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_no_longer_than_it_may() {
    let mut world = World::welcome(client_config()).await;
    world.grant("a").await;
    let begun = tokio::time::Instant::now();
    // Core never answers the release.
    world.client.stop(Duration::from_secs(10)).await;
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn a_checkpoint_of_another_engine_fails_its_turn() {
    let mut world = World::welcome(client_config()).await;
    let (id, _) = world.core.requested::<Lease>().await;
    let mut lease = leased("a").await;
    lease.input.checkpoint.engine_version = "hosted-4".to_owned();
    world.core.grant::<Lease>(id, &lease);
    world.core.requested::<Lease>().await;
    let (_, method, params) = world.core.request().await;
    let output: RunOutput = decode(&params).unwrap();
    let code = output.error.map(|error| error.code);
    assert_eq!((method.as_str(), code.as_deref()), ("turn.failed", Some("execution.incompatible")));
}

#[tokio::test]
async fn it_serves_no_workspaces() {
    let mut world = World::welcome(client_config()).await;
    for (method, params, code) in [
        ("workspace.report", "{}", ErrorCode::Unavailable),
        ("workspace.sweep", "{\"now\":1}", ErrorCode::Unavailable),
        ("workspace.sweep", "{\"then\":1}", ErrorCode::Invalid),
        ("workspace.exec", "{}", ErrorCode::Invalid),
        ("hello", "{}", ErrorCode::Invalid),
    ] {
        let id = world.core.send(method, &Json::from_trusted(params));
        assert_eq!(world.core.answer(id).await.unwrap_err().code, code, "{method} {params}");
    }
}

#[tokio::test]
async fn a_prompt_never_reaches_core() {
    let harness = InProcess::new(
        Arc::new(FakeModel::new(Vec::new())),
        Arc::new(FakeWorkspaces::new()),
        Arc::new(FakeHttpTools::new()),
        Arc::new(FakeBlobs::default()),
    );
    let (core, port) = frame_ports();
    let _client = HarnessClient::start(port, Arc::new(harness), client_config());
    let mut core = Peer::new(core);
    welcome(&mut core, 2).await;
    let (id, _) = core.requested::<Lease>().await;
    core.grant::<Lease>(id, &leased("a").await);
    core.requested::<Lease>().await;
    let (id, wanted) = core.requested::<IntentRequested>().await;
    assert_eq!((wanted.effect.kind.as_str(), &wanted.effect.input), ("model", &None));
    let text = encode(&wanted);
    assert!(!text.as_str().contains("Hello"), "{text}");
    core.grant::<IntentRequested>(id, &IntentReply::Uncertain);
    let (_, method, params) = core.request().await;
    let output: RunOutput = decode(&params).unwrap();
    assert_eq!((method.as_str(), output.status), ("turn.waiting", Some(OutputStatus::Uncertain)));
}
