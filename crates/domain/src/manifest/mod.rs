//! Agent manifests, versions 5 and 6 (sandbox-and-definitions d1, api Appendix A).
//!
//! A definition is checked whole before it is saved ([`AgentManifest::check_saved`]). A session pins a copy, to which
//! the runtime adds its own capabilities ([`pin_workspace`]); that copy is read back with
//! [`AgentManifest::read_pinned`]. A message may bring a narrower manifest for its turn alone ([`variant_of`]).

mod agent;
mod capability;
mod delegate;
mod http;
mod mcp;
mod names;
mod pin;
mod pin_skills;
mod sandbox;
mod skill;
mod tool;
mod variant;
mod workspace_tools;

use std::collections::BTreeSet;

pub use http::{HttpMethod, HttpTarget};
pub use mcp::{McpServer, McpToolSetting, McpTransport};
pub use pin::{SANDBOX_CAPABILITY, pin_workspace};
pub use pin_skills::pin_skills;
pub use sandbox::{read_sandbox, sandbox_json};
pub use skill::Skill;
pub use variant::{read_variant, variant_of};
pub use workspace_tools::{workspace_tool_description, workspace_tool_schema};

use crate::check::{Place, Problems, check};
use crate::id::AgentId;
use crate::json::{Json, Value};
use crate::model::words;
use crate::tool::{SkillTool, WorkspaceTool};
use crate::workspace::WorkspaceSpec;

/// A checked manifest, with the document it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentManifest {
    /// The document as it was saved, or with what the runtime added to a session's copy.
    pub document: Json,
    /// Lower-case hexadecimal SHA-256 of the document's canonical form.
    pub hash: String,
    /// Its schema's version.
    pub version: ManifestVersion,
    /// The agent's id.
    pub id: AgentId,
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// An object that the runtime keeps and does not read.
    pub metadata: Option<Json>,
    /// JSON Schema of a turn's output.
    pub output_schema: Option<Json>,
    /// Its capabilities, in order.
    pub capabilities: Vec<Capability>,
}

/// Versions of the manifest's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestVersion {
    /// Without `tools` and `deferred` on MCP servers.
    V5,
    /// With them.
    V6,
}

/// A part of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Unique in the agent.
    pub id: String,
    /// Its kind.
    pub kind: CapabilityKind,
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// An object that the runtime keeps and does not read.
    pub metadata: Option<Json>,
    /// Instructions, one text each.
    pub instructions: Vec<String>,
    /// Its skills.
    pub skills: Vec<Skill>,
    /// Its tools.
    pub tools: Vec<Tool>,
    /// Remote MCP servers whose tools the agent may use.
    pub mcp_servers: Vec<McpServer>,
    /// The workspace that the runtime gave the session; only on a pinned manifest.
    pub sandbox: Option<WorkspaceSpec>,
}

words! {
    /// The `type` of a capability.
    CapabilityKind {
        /// Of the agent itself.
        Agent = "agent",
        /// Of a plugin.
        AgentPlugin = "agent-plugin",
    }
}

words! {
    /// Whether a person must approve each call.
    Approval {
        /// No.
        Never = "never",
        /// Yes.
        Always = "always",
    }
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
    Http(HttpTarget),
    /// An embedded agent.
    Agent(Box<AgentManifest>),
    /// The runtime, which reads the agent's skills.
    Skill(SkillTool),
    /// Nothing yet: a call gives `tool.unavailable`. Never on a saved manifest.
    None,
}

impl AgentManifest {
    /// Reads what a definition may be saved as. Everything that is wrong is reported, with paths from the manifest on.
    pub fn check_saved(document: &Json) -> Result<Self, Problems> {
        check(&document.value(), Self::saved)
    }

    /// As [`Self::check_saved`], for a manifest that is a part of a body:
    /// `object.required("manifest", AgentManifest::saved)`.
    pub fn saved(place: Place<'_>) -> Option<Self> {
        agent::read(place, agent::Context::SAVED)
    }

    /// Reads a session's copy back, in which a capability may carry the workspace and its tools.
    pub fn read_pinned(document: &Json) -> Result<Self, Problems> {
        check(&document.value(), |place| agent::read(place, agent::Context::PINNED))
    }

    /// The tool of this name, and the capability that declares it.
    pub fn tool(&self, name: &str) -> Option<(&Capability, &Tool)> {
        self.tools().find(|(_, tool)| tool.name == name)
    }

    /// All tools, in order, each with the capability that declares it.
    pub fn tools(&self) -> impl Iterator<Item = (&Capability, &Tool)> {
        self.capabilities.iter().flat_map(|capability| capability.tools.iter().map(move |tool| (capability, tool)))
    }

    /// The skills of all its capabilities, in order; none of its delegates.
    pub fn skills(&self) -> impl Iterator<Item = &Skill> {
        self.capabilities.iter().flat_map(|capability| &capability.skills)
    }

    /// The agents that it uses as tools.
    pub fn delegates(&self) -> impl Iterator<Item = &AgentManifest> {
        self.tools().filter_map(|(_, tool)| match &tool.executor {
            ToolExecutor::Agent(child) => Some(&**child),
            ToolExecutor::Workspace(_) | ToolExecutor::Http(_) | ToolExecutor::Skill(_) | ToolExecutor::None => None,
        })
    }

    /// The workspace that the runtime gave the session; only on a pinned manifest.
    pub fn sandbox(&self) -> Option<&WorkspaceSpec> {
        self.capabilities.iter().find_map(|capability| capability.sandbox.as_ref())
    }

    /// The definition files (`sha256:…`) that its skills and those of its delegates need.
    pub fn files(&self) -> BTreeSet<&str> {
        let delegated = self.delegates().flat_map(AgentManifest::skills);
        self.skills().chain(delegated).flat_map(|skill| skill.files.values()).map(String::as_str).collect()
    }
}

/// What `manifestHash` is: lower-case hexadecimal SHA-256 of the canonical form.
pub fn manifest_hash(document: &Value) -> String {
    crate::hash::sha256_hex(document.canonical().as_bytes())
}
