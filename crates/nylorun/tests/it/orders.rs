//! An agent with an HTTP tool, and the endpoint that the tool stands at.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nylorun_client::{
    Client, Command, CommandKind, Content, Environment, Error, Follow, OpenSession, Seed, Settle, Settlement, Update,
};
use nylorun_testkit::provider::{ProviderStub, Reply};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::drill::Left;
use crate::server::Server;

pub(crate) const AGENT: &str = "shop";

/// An endpoint that takes orders: it counts how often each key came, and answers with the order and its number.
pub(crate) struct Orders {
    pub(crate) stub: ProviderStub,
    seen: Arc<Mutex<BTreeMap<String, Seen>>>,
    open: watch::Sender<bool>,
}

/// What came under one key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) times: u32,
    pub(crate) answer: Value,
}

impl Orders {
    /// One that answers at once.
    pub(crate) async fn open() -> Self {
        let stub = ProviderStub::start().await.expect("a port is free");
        let (open, opened) = watch::channel(true);
        let seen: Arc<Mutex<BTreeMap<String, Seen>>> = Arc::default();
        let counted = Arc::clone(&seen);
        stub.always_after(opened, move |request| {
            let answer = json!({"ordered": request.json()["n"]});
            let mut seen = lock(&counted);
            let came = seen.entry(request.header("idempotency-key").to_owned());
            came.or_insert(Seen { times: 0, answer: answer.clone() }).times += 1;
            Reply::json(200, &answer)
        });
        Self { stub, seen, open }
    }

    /// From now on answers wait, until it opens again.
    pub(crate) fn close(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn open_again(&self) {
        self.open.send_replace(true);
    }

    /// What came, by key.
    pub(crate) fn seen(&self) -> BTreeMap<String, Seen> {
        lock(&self.seen).clone()
    }

    /// Prepares the tenant: fixture model and agent. Repeating it changes nothing.
    pub(crate) async fn prepare(&self, server: &Server) -> Result<(), Error> {
        server.tenant().seed(&Seed::FixtureModel).await?;
        let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        let tools = json!([
            {"name": "order", "inputSchema": schema, "http": {"url": format!("{}/orders", self.stub.base_url())}},
            {"name": "pay", "inputSchema": {}, "approval": "always", "http": {"url": self.stub.base_url()}},
        ]);
        let capability = json!({"id": "c", "type": "agent", "tools": tools});
        let manifest = json!({"manifestSchemaVersion": 5, "id": AGENT, "capabilities": [capability]});
        server.client().save_agent(AGENT, &manifest, "1").await?;
        Ok(())
    }

    /// Follows the session's turn until it has completed. What is uncertain meanwhile is settled as the endpoint says:
    /// with its answer where the key came, else by another try.
    pub(crate) async fn see_to_its_end(&self, client: &Client, id: &str) -> Result<(), Left> {
        let mut events = client.session(id).events(Follow::default());
        loop {
            match events.next().await.expect("a stream ends with an error")? {
                Update::Interrupted { .. } => return Err(Left::Gone),
                Update::Delta(_) => {}
                Update::Event(event) => match event.kind.as_str() {
                    "turn.completed" => return Ok(()),
                    "turn.failed" | "turn.cancelled" => panic!("session {id}: {}", event.text),
                    "effect.uncertain" => self.settle(client, id).await?,
                    _ => {}
                },
            }
        }
    }

    async fn settle(&self, client: &Client, id: &str) -> Result<(), Error> {
        let session = client.session(id);
        for effect in &session.view().await?.uncertain_effects {
            let settlement = match self.seen().remove(&effect.effect_id) {
                Some(seen) => Settlement::Value(seen.answer),
                None => Settlement::Retry,
            };
            session.settle(&Settle::new(&effect.effect_id, settlement)?).await?;
        }
        Ok(())
    }
}

fn lock(seen: &Mutex<BTreeMap<String, Seen>>) -> MutexGuard<'_, BTreeMap<String, Seen>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call of the tool.
pub(crate) fn order(n: i64) -> Value {
    json!({"name": "order", "input": {"n": n}})
}

/// Opens the session and sends its script. Repeating it, after a crash say, is the same as doing it once.
pub(crate) async fn begin(client: &Client, id: &str, script: &Value) -> Result<(), Error> {
    let open = OpenSession { environment: Some(Environment::Without), ..OpenSession::new(AGENT, "u") };
    client.open_session(id, &open).await?;
    let kind = CommandKind::Message(Content::Text(script.to_string()));
    client.session(id).command(&Command { idempotency_key: format!("message-{id}"), kind }).await?;
    Ok(())
}
