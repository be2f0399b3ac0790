//! A model gate with a script, and workspaces whose tools do what their input says.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use nylorun_domain::json::Json;
use nylorun_domain::model::ModelOutcome;
use nylorun_domain::tool::ToolOutcome;
use nylorun_domain::workspace::{WorkspaceEvent, WorkspaceState};
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::{Abort, AbortKind};
use nylorun_ports::models::{Delta, DeltaSink, ModelCall, ModelGate};
use nylorun_ports::workspaces::{WorkspaceAnswer, WorkspaceCall, WorkspaceOutcome, Workspaces};
use tokio::sync::watch;

/// What the model does with one call.
pub(crate) enum Script {
    /// Answers.
    Gives(ModelOutcome),
    /// Streams these texts, then answers.
    Streams(Vec<&'static str>, ModelOutcome),
    /// Waits to be aborted, and then still sends a delta.
    Waits,
    /// Hears no abort.
    Hangs,
    /// Panics.
    Panics,
}

/// What was seen, for tests to wait for.
#[derive(Clone)]
pub(crate) struct Seen(Arc<watch::Sender<Vec<String>>>);

impl Seen {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }

    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.send_modify(|lines| lines.push(line.into()));
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    pub(crate) async fn wait_for(&self, line: &str) {
        self.0.subscribe().wait_for(|lines| lines.iter().any(|seen| seen == line)).await.unwrap();
    }
}

pub(crate) struct FakeModel {
    script: Mutex<VecDeque<Script>>,
    pub(crate) seen: Seen,
    pub(crate) calls: Mutex<Vec<ModelCall>>,
}

impl FakeModel {
    pub(crate) fn new(script: Vec<Script>) -> Self {
        Self { script: Mutex::new(script.into()), seen: Seen::new(), calls: Mutex::new(Vec::new()) }
    }
}

impl ModelGate for FakeModel {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        deltas: Arc<dyn DeltaSink>,
        mut abort: Abort,
    ) -> BoxFuture<'a, Option<ModelOutcome>> {
        self.calls.lock().unwrap().push(call.clone());
        self.seen.add("called");
        let script = self.script.lock().unwrap().pop_front().expect("the model's script goes on");
        let delta = |index, text: &str| Delta { attempt: 1, index, text: text.to_owned() };
        Box::pin(async move {
            match script {
                Script::Gives(outcome) => Some(outcome),
                Script::Streams(texts, outcome) => {
                    (0..).zip(texts).for_each(|(index, text)| deltas.delta(delta(index, text)));
                    Some(outcome)
                }
                Script::Waits => {
                    let kind = abort.aborted().await;
                    deltas.delta(delta(0, "late"));
                    self.seen.add(format!("{kind:?}"));
                    None
                }
                Script::Hangs => {
                    let _dropped = OnDrop(self.seen.clone());
                    std::future::pending().await
                }
                Script::Panics => panic!("the model gate panics"),
            }
        })
    }
}

struct OnDrop(Seen);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.add("dropped");
    }
}

/// Inputs: a number is the output; `"held"` waits to be released by the test, or for an abort; `"deaf"` waits for its
/// release alone; `"lost"`, `"panics"`, `"state"`.
pub(crate) struct FakeWorkspaces {
    pub(crate) seen: Seen,
    released: watch::Sender<Vec<String>>,
}

impl FakeWorkspaces {
    pub(crate) fn new() -> Self {
        Self { seen: Seen::new(), released: watch::Sender::new(Vec::new()) }
    }

    /// Lets the held call of this tool end with its own name.
    pub(crate) fn release(&self, tool: &str) {
        self.released.send_modify(|released| released.push(tool.to_owned()));
    }

    async fn held(&self, tool: &str) -> WorkspaceOutcome {
        let mut released = self.released.subscribe();
        released.wait_for(|released| released.iter().any(|one| one == tool)).await.unwrap();
        done(&format!("\"{tool} was released\""))
    }

    async fn held_or_aborted(&self, tool: &str, abort: &mut Abort) -> WorkspaceOutcome {
        tokio::select! {
            outcome = self.held(tool) => outcome,
            kind = abort.aborted() => {
                self.seen.add(format!("{tool} {kind:?}"));
                WorkspaceOutcome::Aborted
            }
        }
    }
}

fn done(output: &str) -> WorkspaceOutcome {
    WorkspaceOutcome::Done(ToolOutcome::Completed { output: Json::parse(output).unwrap() })
}

impl Workspaces for FakeWorkspaces {
    fn call(&self, call: WorkspaceCall, mut abort: Abort) -> BoxFuture<'_, WorkspaceAnswer> {
        Box::pin(async move {
            let tool = call.tool.as_str();
            self.seen.add(format!("{tool} {}", call.input));
            let outcome = match call.input.as_str() {
                "\"held\"" => self.held_or_aborted(tool, &mut abort).await,
                "\"deaf\"" => self.held(tool).await,
                "\"lost\"" => WorkspaceOutcome::Uncertain { message: "no answer".to_owned() },
                "\"panics\"" => panic!("the workspace panics"),
                number => done(number),
            };
            let is_state = call.input.as_str() == "\"state\"";
            WorkspaceAnswer { outcome, events: is_state.then(state_event).into_iter().collect() }
        })
    }
}

pub(crate) fn state_event() -> WorkspaceEvent {
    WorkspaceEvent::State {
        state: WorkspaceState::Running,
        backend: "virtual".to_owned(),
        isolation: None,
        image: None,
        network: None,
        reattach: false,
        lost: false,
        note: None,
        error: None,
    }
}

/// The line that a tool's abort leaves.
pub(crate) fn aborted(tool: &str, kind: AbortKind) -> String {
    format!("{tool} {kind:?}")
}
