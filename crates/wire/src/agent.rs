//! Agents on the wire (api 2.1).

use nylorun_domain::check::Problems;
use nylorun_domain::id::AgentId;
use nylorun_domain::json::{Json, Value};

use crate::body::{Body, missing};

/// `PUT /v1/agents/{agentId}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveAgent {
    /// The caller's name for this request.
    pub request_id: String,
    /// The definition, as written; not yet checked.
    pub manifest: Json,
    /// The application's own version of what stands behind the agent.
    pub implementation_version: String,
}

impl SaveAgent {
    /// Reads a body that follows the route's schema.
    pub fn read(body: &Body) -> Result<Self, Problems> {
        Ok(Self {
            request_id: body.text("requestId")?,
            manifest: body.json("manifest").ok_or_else(|| missing("manifest"))?,
            implementation_version: body.text("implementationVersion")?,
        })
    }
}

/// The answer to a saved agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSaved {
    /// The agent.
    pub agent_id: AgentId,
    /// Lower-case hexadecimal SHA-256 of the definition's canonical form.
    pub manifest_hash: String,
    /// As saved.
    pub implementation_version: String,
}

impl AgentSaved {
    /// The answer's body.
    pub fn to_value(&self) -> Value {
        Value::object([
            ("agentId", Value::from(self.agent_id.as_str())),
            ("manifestHash", Value::from(self.manifest_hash.as_str())),
            ("implementationVersion", Value::from(self.implementation_version.as_str())),
        ])
    }
}

/// One agent of the list, as an application sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentListed {
    /// The agent.
    pub agent_id: AgentId,
    /// The definition, as saved.
    pub manifest: Json,
    /// Its hash.
    pub manifest_hash: String,
    /// As saved.
    pub implementation_version: String,
}

impl AgentListed {
    /// One element of the list.
    pub fn to_value(&self) -> Value {
        Value::object([
            ("agentId", Value::from(self.agent_id.as_str())),
            ("manifest", self.manifest.value()),
            ("manifestHash", Value::from(self.manifest_hash.as_str())),
            ("implementationVersion", Value::from(self.implementation_version.as_str())),
        ])
    }

    /// One element of the list for a person: how the agent is called, and nothing of how it works.
    fn to_card(&self) -> Value {
        let manifest = self.manifest.value();
        let told = ["name", "description"].into_iter();
        let told =
            told.filter_map(|name| Some((name, manifest.get(name).filter(|value| value.as_str().is_some())?.clone())));
        Value::object([("agentId", Value::from(self.agent_id.as_str()))].into_iter().chain(told))
    }
}

/// `{agents: […]}`, as an application sees them.
pub fn list(agents: &[AgentListed]) -> Value {
    list_of(agents.iter().map(AgentListed::to_value))
}

/// `{agents: […]}`, as a person with a trusted issuer's token sees them.
pub fn cards(agents: &[AgentListed]) -> Value {
    list_of(agents.iter().map(AgentListed::to_card))
}

fn list_of(agents: impl Iterator<Item = Value>) -> Value {
    Value::object([("agents", Value::Array(agents.collect()))])
}
