//! Events of workspaces that a harness reports (engine a.4). Their names here are the older ones, `sandbox.*`.

use nylorun_domain::event::Payload;
use nylorun_domain::id::{SessionId, TurnId};
use nylorun_domain::tool::WorkspaceTool;
use nylorun_domain::workspace::{ExecOutcome, WorkspaceEvent, WorkspaceRecord, WorkspaceState};

use super::shape::{Fields, JsonObject, Malformed, Member as _, Nullable, Set, Shape, read_word, shapes};
use super::workspace::RecordForm;
use crate::event::{event_type, write_workspace};
use crate::names::{newer_event_type, older_event_type};
use crate::writer::Object;

/// `event`: `{runId?, sessionId, turnId, type, payload, record?}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventReported {
    /// The run on whose behalf it happened.
    pub run_id: Option<String>,
    /// The session that owns the workspace.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: Option<TurnId>,
    /// What happened.
    pub event: WorkspaceEvent,
    /// The workspace's record as it is now. Only with `sandbox.state`.
    pub record: Option<WorkspaceRecord>,
}

impl Shape for EventReported {
    fn write(&self, out: &mut String) {
        let mut object = Object::open(out);
        self.run_id.put(&mut object, "runId");
        self.session_id.put(&mut object, "sessionId");
        Nullable(self.turn_id.clone()).put(&mut object, "turnId");
        object.str("type", older_event_type(event_type(&Payload::Workspace(self.event.clone()))));
        object.object("payload", |payload| write_workspace(payload, &self.event));
        self.record.as_ref().map(RecordForm::of).put(&mut object, "record");
        object.close();
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let mut fields = Fields::of(text)?;
        let kind: String = fields.get("type")?;
        let JsonObject(payload) = fields.get("payload")?;
        let event = match newer_event_type(&kind) {
            "environment.state" => read_state(payload.as_str()),
            "environment.exec" => read_exec(payload.as_str()),
            _ => return Err(Malformed::new("must be sandbox.state or sandbox.exec").within("type")),
        };
        let event = event.map_err(|error| error.within("payload"))?;
        let record: Option<RecordForm> = fields.get("record")?;
        if let (Some(_), WorkspaceEvent::Exec { .. }) = (&record, &event) {
            return Err(Malformed::new("goes with sandbox.state only").within("record"));
        }
        let Nullable(turn_id) = fields.get("turnId")?;
        let (run_id, session_id) = (fields.get("runId")?, fields.get("sessionId")?);
        fields.end().map(|()| Self { run_id, session_id, turn_id, event, record: record.map(RecordForm::into_record) })
    }
}

fn read_state(payload: &str) -> Result<WorkspaceEvent, Malformed> {
    let form = StateForm::read(payload)?;
    Ok(WorkspaceEvent::State {
        state: form.state,
        backend: form.backend,
        isolation: form.isolation,
        image: form.image,
        network: form.network,
        reattach: form.reattach.is_some(),
        lost: form.lost.is_some(),
        note: form.note,
        error: form.error,
    })
}

fn read_exec(payload: &str) -> Result<WorkspaceEvent, Malformed> {
    let form = ExecForm::read(payload)?;
    Ok(WorkspaceEvent::Exec {
        tool: form.tool,
        command: form.command,
        path: form.path,
        exit_code: form.exit_code,
        killed: form.killed.is_some(),
        outcome: form.outcome,
        code: form.code,
        duration_ms: form.duration_ms,
    })
}

shapes! {
    /// The payload of `sandbox.state` (api 4.2).
    StateForm {
        /// The new state.
        state: WorkspaceState = "state",
        /// The backend.
        backend: String = "backend",
        /// How it is isolated.
        isolation: Option<String> = "isolation",
        /// The image.
        image: Option<String> = "image",
        /// The network, in words.
        network: Option<String> = "network",
        /// A record existed.
        reattach: Option<Set> = "reattach",
        /// Something had to be made anew.
        lost: Option<Set> = "lost",
        /// What was lost.
        note: Option<String> = "note",
        /// Why a start failed.
        error: Option<String> = "error",
    }

    /// The payload of `sandbox.exec` (api 4.2).
    ExecForm {
        /// The tool.
        tool: WorkspaceTool = "tool",
        /// The command.
        command: Option<String> = "command",
        /// The path.
        path: Option<String> = "path",
        /// The exit code.
        exit_code: Option<i64> = "exitCode",
        /// Whether it was killed.
        killed: Option<Set> = "killed",
        /// How it ended.
        outcome: ExecOutcome = "outcome",
        /// A failure's code.
        code: Option<String> = "code",
        /// How long it took, in milliseconds.
        duration_ms: i64 = "durationMs",
    }
}

macro_rules! known_words {
    ($($type:ident),+) => {$(
        impl Shape for $type {
            fn write(&self, out: &mut String) {
                self.as_str().to_owned().write(out);
            }

            fn read(text: &str) -> Result<Self, Malformed> {
                read_word(text, Self::from_wire)
            }
        }
    )+};
}

known_words!(WorkspaceState, WorkspaceTool, ExecOutcome);
