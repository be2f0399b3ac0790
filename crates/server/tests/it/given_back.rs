//! A harness that stops gives its runs back, and they are offered anew (engine b.4, Run end).

use std::sync::Arc;

use nylorun_domain::effect::{Intent, IntentRequest};
use nylorun_domain::id::{EffectId, InvocationId, TurnId};
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::run::{Harness, Next, RunCore, RunEnd, TurnStart};
use nylorun_server::Limits;
use nylorun_turns::SchedulerConfig;
use tokio::sync::watch;

use crate::client::within;
use crate::world::{APPLICATION, World};

/// Begins a model call and stops: of its own accord twice, and then when it is told to.
struct Stops(watch::Sender<Vec<(TurnId, i64)>>);

impl Harness for Stops {
    fn run(&self, start: TurnStart, core: Arc<dyn RunCore>, mut abort: Abort) -> BoxFuture<'_, RunEnd> {
        Box::pin(async move {
            let intent = Intent {
                id: EffectId::from_trusted(format!("{}:0:model:m", start.turn_id)),
                invocation_id: InvocationId::from_trusted("m"),
                request: IntentRequest::Model,
                request_hash: "0".repeat(64),
            };
            core.commit(Vec::new(), Next::Intents(vec![intent])).await.expect("the session is taken");
            self.0.send_modify(|runs| runs.push((start.turn_id, start.epoch)));
            if self.0.borrow().len() > 2 {
                abort.aborted().await;
            }
            RunEnd::Stopped
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_given_back_is_offered_again_at_once() {
    let (runs, mut seen) = watch::channel(Vec::new());
    let world = World::running(Arc::new(Stops(runs)), SchedulerConfig::default(), Limits::default()).await;
    world.open_sessions(&["s"]).await;
    let body = r#"{"requestId":"r","idempotencyKey":"k","type":"message","content":"hello"}"#;
    let sent = world.call(APPLICATION, "POST", "/v1/sessions/s/commands", Some(body)).await;
    assert_eq!(sent.status, 200, "{}", sent.body);
    let runs = within(seen.wait_for(|runs| runs.len() == 3)).await.expect("the harness lives").clone();
    assert!(runs.windows(2).all(|pair| pair[0].0 == pair[1].0), "one turn: {runs:?}");
    assert_eq!(runs.iter().map(|(_, epoch)| *epoch).collect::<Vec<_>>(), [1, 2, 3]);
    world.stop().await;
}
