//! A tool gate whose tools do what their input says.

use std::sync::Mutex;

use nylorun_domain::json::Json;
use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::{Abort, AbortKind};
use nylorun_ports::http_tools::{HttpToolAnswer, HttpToolCall, HttpTools};
use tokio::sync::watch;

use crate::fake_gates::Seen;

/// Inputs: `"held"` waits to be released by the test, or for an abort that is no shutdown; `"lost"`; `{"size": N}`
/// gives a text of that many bytes; anything else is the output.
pub(crate) struct FakeHttpTools {
    pub(crate) seen: Seen,
    pub(crate) calls: Mutex<Vec<HttpToolCall>>,
    released: watch::Sender<bool>,
}

impl FakeHttpTools {
    pub(crate) fn new() -> Self {
        Self { seen: Seen::new(), calls: Mutex::default(), released: watch::Sender::new(false) }
    }

    /// Lets held calls end.
    pub(crate) fn release(&self) {
        self.released.send_replace(true);
    }

    async fn held(&self, mut abort: Abort) -> HttpToolAnswer {
        let mut released = self.released.subscribe();
        tokio::select! {
            _ = released.wait_for(|released| *released) => done("\"released\""),
            kind = abort.aborted_beyond(AbortKind::Shutdown) => {
                self.seen.add(format!("{kind:?}"));
                HttpToolAnswer::Aborted
            }
        }
    }
}

fn done(output: &str) -> HttpToolAnswer {
    HttpToolAnswer::Done(ToolOutcome::Completed { output: Json::parse(output).unwrap() })
}

impl HttpTools for FakeHttpTools {
    fn call(&self, call: HttpToolCall, abort: Abort) -> BoxFuture<'_, HttpToolAnswer> {
        self.calls.lock().unwrap().push(call.clone());
        self.seen.add(format!("{} {}", call.tool_name, call.input));
        Box::pin(async move {
            let size = call.input.value().get("size").and_then(nylorun_domain::json::Value::as_i64);
            match (call.input.as_str(), size) {
                (_, Some(size)) => done(&format!("\"{}\"", "x".repeat(usize::try_from(size).unwrap() - 2))),
                ("\"held\"", None) => self.held(abort).await,
                ("\"lost\"", None) => HttpToolAnswer::Lost { message: "http.lost: cut".to_owned() },
                (output, None) => done(output),
            }
        })
    }
}
