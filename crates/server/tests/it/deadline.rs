//! An advance that does not end in time (engine b.4, b.12 rule 24).

use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::id::TurnId;
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::run::{Harness, RunCore, RunEnd, TurnStart};
use nylorun_server::Limits;
use nylorun_turns::SchedulerConfig;
use tokio::sync::watch;

use crate::client::within;
use crate::world::{APPLICATION, World};

/// Hears nothing and never ends; it remembers what it was given to run.
struct Deaf(watch::Sender<Vec<(TurnId, i64)>>);

impl Harness for Deaf {
    fn run(&self, start: TurnStart, _: Arc<dyn RunCore>, _: Abort) -> BoxFuture<'_, RunEnd> {
        self.0.send_modify(|runs| runs.push((start.turn_id, start.epoch)));
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_advance_that_hears_nothing_is_abandoned_and_its_turn_taken_anew() {
    let (runs, mut seen) = watch::channel(Vec::new());
    let soon = Duration::from_millis(10);
    let config = SchedulerConfig { advance_deadline: soon, deadline_grace: soon, ..SchedulerConfig::default() };
    let world = World::running(Arc::new(Deaf(runs)), config, Limits::default()).await;
    world.open_sessions(&["s"]).await;
    let body = r#"{"requestId":"r","idempotencyKey":"k","type":"message","content":"hello"}"#;
    let sent = world.call(APPLICATION, "POST", "/v1/sessions/s/commands", Some(body)).await;
    assert_eq!(sent.status, 200, "{}", sent.body);
    let runs = within(seen.wait_for(|runs| runs.len() == 3)).await.expect("the harness lives").clone();
    assert!(runs.windows(2).all(|pair| pair[0].0 == pair[1].0), "one turn: {runs:?}");
    world.stop().await;
}
