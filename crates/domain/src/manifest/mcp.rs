//! Remote MCP servers.

use super::tool::NAME;
use super::{Approval, ManifestVersion};
use crate::check::{Object, Place, TextRule};
use crate::model::words;

/// A remote MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// Its name; unique in the agent.
    pub name: String,
    /// How it is spoken to.
    pub transport: McpTransport,
    /// Its URL.
    pub url: String,
    /// Headers sent with each request; no secrets.
    pub headers: Vec<(String, String)>,
    /// Whether a person approves each call of its tools.
    pub approval: Option<Approval>,
    /// Whether its tools are found by search instead of shown to the model (version 6).
    pub deferred: Option<bool>,
    /// Settings by the server's tool name, or `*` for all others (version 6).
    pub tools: Vec<(String, McpToolSetting)>,
}

words! {
    /// The `type` of an MCP server.
    McpTransport {
        /// Streamable HTTP.
        StreamableHttp = "streamable-http",
        /// HTTP with server-sent events.
        Sse = "sse",
    }
}

/// What is set for one tool of a server, or for `*`. What is not set comes from `*`, then the server, then the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct McpToolSetting {
    /// Whether the agent has the tool; it does by default.
    pub enabled: Option<bool>,
    /// Whether a person approves each call; never by default.
    pub approval: Option<Approval>,
    /// Whether it is found by search; by default the runtime decides.
    pub deferred: Option<bool>,
}

impl McpServer {
    /// What holds for one tool of the server: its own entry, then `*`, then the server. `enabled` and `approval` are
    /// always given.
    pub fn setting(&self, tool: &str) -> McpToolSetting {
        let entry = |name: &str| {
            self.tools.iter().find(|(key, _)| key == name).map_or_else(McpToolSetting::default, |(_, setting)| *setting)
        };
        let (own, all) = (entry(tool), entry("*"));
        McpToolSetting {
            enabled: own.enabled.or(all.enabled).or(Some(true)),
            approval: own.approval.or(all.approval).or(self.approval).or(Some(Approval::Never)),
            deferred: own.deferred.or(all.deferred).or(self.deferred),
        }
    }
}

/// Reads the server that stands under `key`.
pub(super) fn read(key: &str, place: Place<'_>, version: ManifestVersion) -> Option<McpServer> {
    let object = place.object()?;
    if let Some(kind) = object.get("type").filter(|kind| kind.value().as_str() == Some("stdio")) {
        // Its other members are those of a server that cannot be declared at all.
        kind.custom("`stdio` MCP servers cannot be used: a server must be remote, `streamable-http` or `sse`");
        return None;
    }
    let name = object.required("name", |place| {
        let name = place.string(NAME)?;
        if name != key {
            place.custom("The name must equal its key in the map");
        }
        Some(name)
    });
    let transport = object.required("type", |place| place.one_of(McpTransport::ALL, McpTransport::as_str));
    let url = object.required_string("url", TextRule::NON_EMPTY);
    let headers = object.optional("headers", |place| place.map(|_, value| value.string(TextRule::ANY)));
    let approval = object.optional("approval", read_approval);
    refuse_before_version_6(&object, version);
    let deferred = object.optional("deferred", Place::boolean);
    let tools = object.optional("tools", |place| place.map(|_, item| read_setting(item)));
    object.finish();
    Some(McpServer {
        name: name?,
        transport: transport?,
        url: url?,
        headers: headers.unwrap_or_default(),
        approval,
        deferred,
        tools: tools.unwrap_or_default(),
    })
}

fn refuse_before_version_6(object: &Object<'_>, version: ManifestVersion) {
    match version {
        ManifestVersion::V5 => {
            for name in ["tools", "deferred"] {
                object.refuse(name, "needs `manifestSchemaVersion` 6");
            }
        }
        ManifestVersion::V6 => {}
    }
}

fn read_setting(place: Place<'_>) -> Option<McpToolSetting> {
    let object = place.object()?;
    let enabled = object.optional("enabled", Place::boolean);
    let approval = object.optional("approval", read_approval);
    let deferred = object.optional("deferred", Place::boolean);
    object.finish();
    Some(McpToolSetting { enabled, approval, deferred })
}

fn read_approval(place: Place<'_>) -> Option<Approval> {
    place.one_of(Approval::ALL, Approval::as_str)
}
