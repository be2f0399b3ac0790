//! The tools that a manifest declares, by name.

use std::collections::HashMap;

use nylorun_domain::effect::{ToolRequest, ToolTarget};
use nylorun_domain::json::{Json, Value};
use nylorun_domain::manifest::{AgentManifest, Approval, McpServer, ToolExecutor};
use nylorun_domain::model::{ToolCall, ToolInput};

/// Who declares a tool, what carries it out, and whether a person approves each call.
#[derive(Clone, Debug)]
struct Declared {
    capability_id: String,
    target: ToolTarget,
    approval: Approval,
}

/// An agent's tools.
#[derive(Debug)]
pub struct Toolbox {
    declared: HashMap<String, Declared>,
    /// The MCP servers, each with the capability that declares it: what they offer is known by name alone.
    servers: Vec<(String, McpServer)>,
}

/// What a call of the model comes to.
pub(crate) struct Requested {
    /// What to do.
    pub(crate) request: ToolRequest,
    /// Whether a person is asked first. Never for a call that is refused in words anyway.
    pub(crate) approval: Approval,
}

impl Toolbox {
    /// The tools of a manifest.
    pub fn new(manifest: &AgentManifest) -> Self {
        let tools = manifest.capabilities.iter().flat_map(|capability| {
            capability.tools.iter().map(|tool| {
                let target = match &tool.executor {
                    ToolExecutor::Workspace(tool) => ToolTarget::Workspace(*tool),
                    ToolExecutor::Http(_) => ToolTarget::Http,
                    ToolExecutor::Skill(tool) => ToolTarget::Skill(*tool),
                    ToolExecutor::Agent(_) | ToolExecutor::None => ToolTarget::Unavailable,
                };
                let approval = match &tool.executor {
                    ToolExecutor::Http(http) => http.approval,
                    ToolExecutor::Workspace(_)
                    | ToolExecutor::Agent(_)
                    | ToolExecutor::Skill(_)
                    | ToolExecutor::None => Approval::Never,
                };
                (tool.name.clone(), Declared { capability_id: capability.id.clone(), target, approval })
            })
        });
        let servers = manifest
            .capabilities
            .iter()
            .flat_map(|capability| capability.mcp_servers.iter().map(|server| (capability.id.clone(), server.clone())));
        Self { declared: tools.collect(), servers: servers.collect() }
    }

    /// Where a call of the tool of this name runs, as far as the manifest tells.
    pub fn target(&self, name: &str) -> ToolTarget {
        self.find(name).map_or(ToolTarget::UnknownTool, |declared| declared.target)
    }

    /// The tool of this name. One that an MCP server may offer, `server__tool`, counts as declared.
    fn find(&self, name: &str) -> Option<Declared> {
        let of_server = || {
            self.servers.iter().find_map(|(capability_id, server)| {
                let tool = name.strip_prefix(server.name.as_str())?.strip_prefix("__")?;
                let setting = server.setting(tool);
                let approval = setting.approval.unwrap_or(Approval::Never);
                let capability_id = capability_id.clone();
                (setting.enabled == Some(true)).then_some(Declared {
                    capability_id,
                    target: ToolTarget::Unavailable,
                    approval,
                })
            })
        };
        self.declared.get(name).cloned().or_else(of_server)
    }

    /// The request of a model's call. A call that cannot be carried out becomes one that is refused at its intent, so
    /// that the model reads why and clients see the call complete. `step` is the one that calls.
    pub(crate) fn request(&self, call: &ToolCall, step: u32) -> Requested {
        let declared = self.find(&call.name);
        let (input, target) = match (&call.input, &declared) {
            (ToolInput::Json(input), Some(declared)) => (input.clone(), declared.target),
            (ToolInput::Json(input), None) => (input.clone(), ToolTarget::UnknownTool),
            (ToolInput::Malformed(text), Some(_)) => (as_string(text), ToolTarget::MalformedInput),
            (ToolInput::Malformed(text), None) => (as_string(text), ToolTarget::UnknownTool),
        };
        let approval = match (&call.input, &declared) {
            (ToolInput::Json(_), Some(declared)) => declared.approval,
            (ToolInput::Json(_), None) | (ToolInput::Malformed(_), _) => Approval::Never,
        };
        let request = ToolRequest {
            step,
            call_id: call.call_id.clone(),
            tool_name: call.name.clone(),
            capability_id: declared.map(|declared| declared.capability_id).unwrap_or_default(),
            input,
            target,
            resume: None,
        };
        Requested { request, approval }
    }
}

fn as_string(text: &nylorun_domain::json::Text) -> Json {
    Value::from(text.clone()).to_json()
}

#[cfg(test)]
mod tests {
    use nylorun_domain::id::CallId;

    use super::*;

    #[test]
    fn an_http_tool_runs_at_the_gate_and_asks_for_approval_when_its_manifest_says_so() {
        let manifest = r#"{"manifestSchemaVersion":5,"id":"a","capabilities":[{"id":"c","type":"agent","tools":[
            {"name":"order","inputSchema":{},"http":{"url":"https://example.com/orders"}},
            {"name":"pay","inputSchema":{},"approval":"always","http":{"url":"https://example.com/payments"}}]}]}"#;
        let manifest = AgentManifest::check_saved(&Json::parse(manifest).unwrap()).unwrap();
        let requested = |name: &str| {
            let input = ToolInput::Json(Json::from_trusted("{}"));
            let call = ToolCall { call_id: CallId::from_trusted("1"), name: name.to_owned(), input };
            let Requested { request, approval } = Toolbox::new(&manifest).request(&call, 1);
            (request.target, approval)
        };
        assert_eq!(requested("order"), (ToolTarget::Http, Approval::Never));
        assert_eq!(requested("pay"), (ToolTarget::Http, Approval::Always));
    }
}
