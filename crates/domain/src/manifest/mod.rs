//! Agent manifests, versions 5 and 6 (sandbox-and-definitions d1, api Appendix A).

use crate::id::AgentId;
use crate::json::Json;
use crate::tool::WorkspaceTool;
use crate::workspace::WorkspaceSpec;

/// A checked manifest, with the document it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentManifest {
    /// The document as it was saved, or with what the runtime added to a session's copy.
    pub document: Json,
    /// Lower-case hexadecimal SHA-256 of the document's canonical form.
    pub hash: String,
    /// The agent's id.
    pub id: AgentId,
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// JSON Schema of a turn's output.
    pub output_schema: Option<Json>,
    /// Its capabilities, in order.
    pub capabilities: Vec<Capability>,
}

/// A part of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Unique in the agent.
    pub id: String,
    /// Instructions, one text each.
    pub instructions: Vec<String>,
    /// Its tools.
    pub tools: Vec<Tool>,
    /// The workspace that the runtime gave the session; only on a pinned manifest.
    pub sandbox: Option<WorkspaceSpec>,
}

/// A tool that a capability declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// 1 to 64 of letters, digits, `_`, `-`; unique in the agent.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// JSON Schema of its input.
    pub input_schema: Json,
    /// JSON Schema of its output.
    pub output_schema: Option<Json>,
    /// What carries it out.
    pub executor: ToolExecutor,
}

/// What carries a tool out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolExecutor {
    /// A workspace tool; only on a pinned manifest.
    Workspace(WorkspaceTool),
    /// An HTTP endpoint.
    Http,
    /// An embedded agent.
    Agent,
    /// Nothing: developer code that lives elsewhere.
    None,
}
