//! Events of workspaces, as the manager writes them (sandbox-and-definitions a4).

use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::{ExecOutcome, WorkspaceEvent, WorkspaceSpec, WorkspaceState};
use nylorun_ports::backends::Backend;

use crate::tools::clip::first_units;
use crate::tools::input::ToolCall;

/// How much of a command an event shows, in UTF-16 units.
const MAX_COMMAND: usize = 500;

/// An `environment.state` event in the making.
pub(super) struct StateEvent {
    pub(super) state: WorkspaceState,
    pub(super) backend: String,
    pub(super) isolation: Option<String>,
    pub(super) image: Option<String>,
    pub(super) network: Option<String>,
    /// A record existed.
    pub(super) reattach: bool,
    /// What had to be made anew, when the record says that it existed.
    pub(super) lost: Option<String>,
    pub(super) error: Option<String>,
}

impl StateEvent {
    /// Of a workspace with this specification.
    pub(super) fn of(state: WorkspaceState, backend: &dyn Backend, spec: &WorkspaceSpec) -> Self {
        Self {
            image: spec.image.clone(),
            network: Some(network_text(spec)),
            ..Self::named(state, backend.name(), Some(backend.isolation()))
        }
    }

    /// Of a workspace of which only the backend is known.
    pub(super) fn named(state: WorkspaceState, backend: &str, isolation: Option<&str>) -> Self {
        Self {
            state,
            backend: backend.to_owned(),
            isolation: isolation.map(str::to_owned),
            image: None,
            network: None,
            reattach: false,
            lost: None,
            error: None,
        }
    }
}

impl From<StateEvent> for WorkspaceEvent {
    fn from(event: StateEvent) -> Self {
        Self::State {
            state: event.state,
            backend: event.backend,
            isolation: event.isolation,
            image: event.image,
            network: event.network,
            reattach: event.reattach,
            lost: event.lost.is_some(),
            note: event.lost,
            error: event.error,
        }
    }
}

/// The preset, and how many hosts beyond it. A session's own workspace always has the preset `none`.
fn network_text(spec: &WorkspaceSpec) -> String {
    match spec.network_allow.len() {
        0 => "none".to_owned(),
        1 => "none +1 host".to_owned(),
        hosts => format!("none +{hosts} hosts"),
    }
}

/// How a command's process ended, as far as an event says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) code: Option<i32>,
    pub(super) killed: bool,
}

/// The `environment.exec` event of a call that ran; `None` as outcome: it was killed by an abort.
pub(super) fn exec_event(
    tool: WorkspaceTool,
    call: &ToolCall,
    exit: Exit,
    outcome: Option<&ToolOutcome>,
    duration_ms: i64,
) -> WorkspaceEvent {
    let (command, path) = match call {
        ToolCall::Bash(bash) => (Some(first_units(&bash.command, MAX_COMMAND).0.to_owned()), None),
        ToolCall::File(call) => (None, Some(call.path().to_owned())),
    };
    let (outcome, code) = match outcome {
        Some(ToolOutcome::Completed { .. }) => (ExecOutcome::Completed, None),
        Some(ToolOutcome::Failed { code, .. }) => (ExecOutcome::Failed, Some(code.clone())),
        None => (ExecOutcome::Failed, Some("cancelled".to_owned())),
    };
    WorkspaceEvent::Exec {
        tool,
        command,
        path,
        exit_code: exit.code.map(i64::from),
        killed: exit.killed,
        outcome,
        code,
        duration_ms,
    }
}
