//! Workspaces that a harness holds: their records, and what core asks of them (engine a.3, a.4).

use nylorun_domain::id::{SessionId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::time::Millis;
use nylorun_domain::tool::{ToolOutcome, WorkspaceTool};
use nylorun_domain::workspace::{WorkspaceKey, WorkspaceRecord, WorkspaceSpec, WorkspaceState};

use super::shape::{Fields, JsonObject, Malformed, Member as _, Nullable, Set, Shape, shapes, valued};
use crate::outcome::{tool_from_node, tool_to_value};
use crate::writer::Object;

shapes! {
    /// The durable record of a workspace.
    RecordForm {
        /// Its key.
        key: RecordKey = "key",
        /// The session that owns it.
        session_id: SessionId = "sessionId",
        /// The environment that it belongs to.
        sandbox_id: Option<String> = "sandboxId",
        /// The backend that holds it.
        backend: String = "backend",
        /// The image, or empty.
        image: String = "image",
        /// Where it is.
        state: WorkspaceState = "state",
        /// When it was made, in milliseconds since 1970.
        created_at: i64 = "createdAt",
        /// When it last changed, in milliseconds since 1970.
        updated_at: i64 = "updatedAt",
    }

    /// On whose behalf a workspace is used.
    WorkspaceSession {
        /// The session that owns it.
        owner_id: SessionId = "ownerId",
        /// The environment that it belongs to.
        sandbox_id: Option<String> = "sandboxId",
        /// The turn that uses it.
        active_turn_id: Nullable<TurnId> = "activeTurnId",
    }

    /// `workspace.write` and `workspace.exec`, and `workspace.read` by a tool: one call of a tool.
    WorkspaceCall {
        /// On whose behalf.
        session: WorkspaceSession = "session",
        /// What to make the workspace with.
        spec: WorkspaceSpec = "spec",
        /// The tool.
        tool: WorkspaceTool = "tool",
        /// Its input, not yet checked.
        input: Json = "input",
    }

    /// `workspace.read` of a file's bytes.
    BytesReading {
        /// On whose behalf.
        session: WorkspaceSession = "session",
        /// What to make the workspace with.
        spec: WorkspaceSpec = "spec",
        /// Which bytes.
        bytes: WantedBytes = "bytes",
    }

    /// Which bytes are wanted.
    WantedBytes {
        /// The file.
        path: String = "path",
        /// Most bytes, at least 1.
        max_bytes: Limit = "maxBytes",
    }

    /// `workspace.read` of a folder.
    ListReading {
        /// On whose behalf.
        session: WorkspaceSession = "session",
        /// What to make the workspace with.
        spec: WorkspaceSpec = "spec",
        /// Which folder.
        list: WantedList = "list",
    }

    /// Which folder is wanted.
    WantedList {
        /// The folder.
        dir: String = "dir",
        /// Most entries, at least 1.
        max_entries: Limit = "maxEntries",
    }

    /// `workspace.sweep`: stop what is idle.
    WorkspaceSweep {
        /// The time, in milliseconds since 1970.
        now: Option<i64> = "now",
    }

    /// `workspace.remove`: remove these, or all.
    WorkspaceRemove {
        /// By key.
        keys: Option<Vec<RecordKey>> = "keys",
        /// By environment.
        sandbox_ids: Option<Vec<String>> = "sandboxIds",
        /// All of the tenant.
        all: Option<Set> = "all",
    }

    /// The answer to `workspace.sweep`.
    WorkspaceRecords {
        /// The records as they are now.
        records: Vec<RecordForm> = "records",
    }

    /// The answer to `workspace.report`.
    WorkspaceReport {
        /// What the probes said.
        report: JsonObject = "report",
    }
}

impl RecordForm {
    /// The form of a record.
    pub fn of(record: &WorkspaceRecord) -> Self {
        Self {
            key: RecordKey(record.key.as_str().to_owned()),
            session_id: record.session_id.clone(),
            sandbox_id: record.environment_id.clone(),
            backend: record.backend.clone(),
            image: record.image.clone(),
            state: record.state,
            created_at: record.created_at.0,
            updated_at: record.updated_at.0,
        }
    }

    /// The record.
    pub fn into_record(self) -> WorkspaceRecord {
        WorkspaceRecord {
            key: WorkspaceKey::from_trusted(self.key.0),
            session_id: self.session_id,
            environment_id: self.sandbox_id,
            backend: self.backend,
            image: self.image,
            state: self.state,
            created_at: Millis(self.created_at),
            updated_at: Millis(self.updated_at),
        }
    }
}

/// A workspace's key: 1 to 512 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordKey(pub String);

impl Shape for RecordKey {
    fn write(&self, out: &mut String) {
        self.0.write(out);
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        // The same grammar as every id.
        SessionId::read(text).map(|key| Self(key.as_str().to_owned()))
    }
}

/// A number above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub std::num::NonZeroU64);

impl Shape for Limit {
    fn write(&self, out: &mut String) {
        self.0.get().write(out);
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        std::num::NonZeroU64::new(u64::read(text)?).map(Self).ok_or_else(|| Malformed::new("must be above 0"))
    }
}

/// `workspace.read`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceReading {
    /// By a tool.
    Call(WorkspaceCall),
    /// Of a file's bytes.
    Bytes(BytesReading),
    /// Of a folder.
    List(ListReading),
}

impl Shape for WorkspaceReading {
    fn write(&self, out: &mut String) {
        match self {
            Self::Call(call) => call.write(out),
            Self::Bytes(reading) => reading.write(out),
            Self::List(reading) => reading.write(out),
        }
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let mut fields = Fields::of(text)?;
        match (fields.take("bytes"), fields.take("list")) {
            (Some(_), _) => BytesReading::read(text).map(Self::Bytes),
            (None, Some(_)) => ListReading::read(text).map(Self::List),
            (None, None) => WorkspaceCall::read(text).map(Self::Call),
        }
    }
}

valued! {
    ToolOutcome: tool_to_value, tool_from_node;
}

/// The answer to `workspace.read`, `workspace.write` and `workspace.exec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceAnswer {
    /// What a tool gave, or why bytes or a folder cannot be given.
    Outcome(ToolOutcome),
    /// `{kind: "uncertain", message}`: the answer was lost.
    Uncertain(String),
    /// `{kind: "read", path, base64}`
    Read {
        /// The file.
        path: String,
        /// Its bytes.
        base64: String,
    },
    /// `{kind: "missing"}`
    Missing,
    /// `{kind: "listed", entries, truncated}`
    Listed {
        /// At most one more than were wanted.
        entries: Vec<JsonObject>,
        /// Whether there are more.
        truncated: bool,
    },
}

impl Shape for WorkspaceAnswer {
    fn write(&self, out: &mut String) {
        if let Self::Outcome(outcome) = self {
            return outcome.write(out);
        }
        let mut object = Object::open(out);
        match self {
            Self::Outcome(_) => {}
            Self::Uncertain(message) => {
                object.str("kind", "uncertain");
                object.str("message", message);
            }
            Self::Read { path, base64 } => {
                object.str("kind", "read");
                object.str("path", path);
                object.str("base64", base64);
            }
            Self::Missing => object.str("kind", "missing"),
            Self::Listed { entries, truncated } => {
                object.str("kind", "listed");
                entries.put(&mut object, "entries");
                truncated.put(&mut object, "truncated");
            }
        }
        object.close();
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let mut fields = Fields::of(text)?;
        let read = match fields.get::<String>("kind")?.as_str() {
            "uncertain" => Self::Uncertain(fields.get("message")?),
            "read" => Self::Read { path: fields.get("path")?, base64: fields.get("base64")? },
            "missing" => Self::Missing,
            "listed" => Self::Listed { entries: fields.get("entries")?, truncated: fields.get("truncated")? },
            _ => return ToolOutcome::read(text).map(Self::Outcome),
        };
        fields.end().map(|()| read)
    }
}
