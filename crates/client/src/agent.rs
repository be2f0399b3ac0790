//! Saved agents (api 2.1).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Answer to saving an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedAgent {
    /// The agent's id.
    pub agent_id: String,
    /// Hash of the manifest as the server reads it: lowercase hex SHA-256 of its canonical JSON.
    pub manifest_hash: String,
    /// The caller's own version.
    pub implementation_version: String,
}

/// An agent in a list. A token caller gets its name and description instead of the manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// The agent's id.
    pub agent_id: String,
    /// The manifest as saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// Hash of the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_hash: Option<String>,
    /// The caller's own version at saving.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implementation_version: Option<String>,
    /// Members that this client does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Agent {
    /// The agent's name, from wherever the answer has it.
    pub fn name(&self) -> Option<&str> {
        self.text("name")
    }

    /// The agent's description, from wherever the answer has it.
    pub fn description(&self) -> Option<&str> {
        self.text("description")
    }

    fn text(&self, member: &str) -> Option<&str> {
        let value = self.other.get(member).or_else(|| self.manifest.as_ref()?.get(member));
        value.and_then(Value::as_str)
    }
}

#[derive(Deserialize)]
pub(crate) struct AgentList {
    pub(crate) agents: Vec<Agent>,
}
