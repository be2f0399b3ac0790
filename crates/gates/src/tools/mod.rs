//! The tool gate: calls the HTTP endpoints that manifests name, each call at most once (engine e.4, trust 5).
//!
//! Read `call` first: what a call is made of, and why one is refused before anything is sent. Then `held`, which keeps
//! a call running when its caller goes away, and `answer`, what an endpoint's answer comes to.

mod answer;
mod call;
mod held;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::json::Json;
use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::{Abort, AbortKind};
use nylorun_ports::crossings::{Crossed, Crossing, Crossings};
use nylorun_ports::http_tools::{HttpToolAnswer, HttpToolCall, HttpTools};

use crate::outbound::{Connections, Outbound};
use answer::Exchanged;
use call::Prepared;
use held::{Held, HeldCalls};

/// Calls HTTP tools. Cheap to clone.
#[derive(Clone)]
pub struct HttpToolGate {
    crossing: CrossingGate,
    held: HeldCalls,
}

/// What a held call needs.
#[derive(Clone)]
struct CrossingGate {
    outbound: Arc<Outbound>,
    crossings: Arc<dyn Crossings>,
}

/// What the body of an answer comes to: the outcome, or the code of what is wrong with it. `None` when the schema
/// cannot be used.
pub(crate) fn read_body(
    content_type: Option<&str>,
    body: &[u8],
    schema: Option<&Json>,
) -> Option<Result<ToolOutcome, &'static str>> {
    let checker = schema.map(schema::Checker::new).transpose().ok()?;
    Some(answer::output(answer::Form::of(content_type), body, checker.as_ref()).map_err(|(code, _)| code))
}

impl HttpToolGate {
    /// A gate that calls out through `outbound`, and remembers in `crossings` what was sent.
    ///
    /// Each call gets a connection of its own: one that is used again may be closed by the other side just when a
    /// request is on its way, and then nobody knows whether the endpoint saw the call.
    pub fn new(outbound: Outbound, crossings: Arc<dyn Crossings>) -> Self {
        let outbound = Arc::new(outbound.with_connections(Connections::OneEach));
        Self { crossing: CrossingGate { outbound, crossings }, held: HeldCalls::default() }
    }

    /// Waits until the calls that still run are recorded, at most for `limit`, and ends the others.
    pub async fn close(&self, limit: Duration) {
        self.held.close(limit).await;
    }

    async fn answer(&self, call: HttpToolCall, abort: Abort) -> HttpToolAnswer {
        let prepared = match Prepared::new(&call) {
            Ok(prepared) => prepared,
            Err(refusal) => return HttpToolAnswer::Done(refusal),
        };
        match abort.kind() {
            Some(AbortKind::Deadline | AbortKind::Cancel | AbortKind::OwnershipLost) => return HttpToolAnswer::Aborted,
            Some(AbortKind::Shutdown) | None => {}
        }
        let crossing = Crossing {
            effect_id: call.effect_id,
            request_hash: call.request_hash,
            session_id: call.session_id,
            turn_id: call.turn_id,
            epoch: call.epoch,
        };
        let gate = self.crossing.clone();
        let (key, hash) = (crossing.effect_id.clone(), crossing.request_hash.clone());
        let held = self.held.join_or_begin(key, hash, async move { gate.cross(crossing, prepared).await });
        match held {
            Ok(held) => wait(held, abort).await,
            Err(held::OtherRequest) => HttpToolAnswer::Done(other_request()),
        }
    }
}

impl HttpTools for HttpToolGate {
    fn call(&self, call: HttpToolCall, abort: Abort) -> BoxFuture<'_, HttpToolAnswer> {
        Box::pin(self.answer(call, abort))
    }
}

/// Waits for a held call. Who loses the session only goes away: the next owner joins the call, or finds its answer.
async fn wait(mut held: Held, mut abort: Abort) -> HttpToolAnswer {
    tokio::select! {
        biased;
        answer = held.answer() => answer,
        kind = abort.aborted_beyond(AbortKind::Shutdown) => {
            match kind {
                AbortKind::Deadline | AbortKind::Cancel => held.end(),
                AbortKind::OwnershipLost | AbortKind::Shutdown => {}
            }
            HttpToolAnswer::Aborted
        }
    }
}

impl CrossingGate {
    /// Sends the call if it was never sent before, and records what came of it.
    async fn cross(&self, crossing: Crossing, call: Prepared) -> HttpToolAnswer {
        match self.crossings.begin(&crossing).await {
            Ok(Crossed::Begun) => self.send(&crossing, call).await,
            Ok(Crossed::Answered(outcome)) => HttpToolAnswer::Done(outcome),
            Ok(Crossed::Open) => HttpToolAnswer::Lost {
                message: "the process that made this call ended before its answer was recorded".to_owned(),
            },
            Ok(Crossed::OtherRequest) => HttpToolAnswer::Done(other_request()),
            // What this run reports is refused, since it does not hold the turn.
            Ok(Crossed::NotHeld) => failed("The turn has another owner. Nothing was sent."),
            Err(error) => {
                tracing::warn!(effect = %crossing.effect_id, %error, "an HTTP tool was not called");
                failed("The runtime could not record the call. Nothing was sent.")
            }
        }
    }

    async fn send(&self, crossing: &Crossing, call: Prepared) -> HttpToolAnswer {
        let outcome = match answer::exchange(&self.outbound, call).await {
            Exchanged::Known(outcome) => outcome,
            Exchanged::Lost(message) => return HttpToolAnswer::Lost { message },
        };
        if let Err(error) = self.crossings.settle(&crossing.effect_id, &outcome).await {
            // The caller has the answer and records it; only a crash before that leaves the call uncertain.
            tracing::warn!(effect = %crossing.effect_id, %error, "the answer of an HTTP tool was not kept at the gate");
        }
        HttpToolAnswer::Done(outcome)
    }
}

fn failed(message: &str) -> HttpToolAnswer {
    HttpToolAnswer::Done(ToolOutcome::failed("http.failed", message))
}

fn other_request() -> ToolOutcome {
    ToolOutcome::failed("http.failed", "Another request was made under this call's key. Nothing was sent.")
}
