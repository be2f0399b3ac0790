//! The tools that a manifest declares, by name.

use std::collections::HashMap;

use nylorun_domain::effect::{ToolRequest, ToolTarget};
use nylorun_domain::json::{Json, Value};
use nylorun_domain::manifest::{AgentManifest, Approval, ToolExecutor};
use nylorun_domain::model::{ToolCall, ToolInput};

/// Who declares a tool, and what carries it out.
#[derive(Debug)]
struct Declared {
    capability_id: String,
    target: ToolTarget,
}

/// An agent's tools.
#[derive(Debug)]
pub(crate) struct Toolbox(HashMap<String, Declared>);

impl Toolbox {
    /// The tools of a manifest.
    pub(crate) fn new(manifest: &AgentManifest) -> Self {
        let tools = manifest.capabilities.iter().flat_map(|capability| {
            capability.tools.iter().map(|tool| {
                let target = match &tool.executor {
                    ToolExecutor::Workspace(tool) => ToolTarget::Workspace(*tool),
                    ToolExecutor::Http(http) => http_target(http.approval),
                    ToolExecutor::Agent(_) | ToolExecutor::None => ToolTarget::Unavailable,
                };
                (tool.name.clone(), Declared { capability_id: capability.id.clone(), target })
            })
        });
        Self(tools.collect())
    }

    /// The request of a model's call. A call that cannot be carried out becomes one that is refused at its intent, so
    /// that the model reads why and clients see the call complete.
    pub(crate) fn request(&self, call: &ToolCall) -> ToolRequest {
        let declared = self.0.get(&call.name);
        let (input, target) = match (&call.input, declared) {
            (ToolInput::Json(input), Some(declared)) => (input.clone(), declared.target),
            (ToolInput::Json(input), None) => (input.clone(), ToolTarget::UnknownTool),
            (ToolInput::Malformed(text), Some(_)) => (as_string(text), ToolTarget::MalformedInput),
            (ToolInput::Malformed(text), None) => (as_string(text), ToolTarget::UnknownTool),
        };
        ToolRequest {
            call_id: call.call_id.clone(),
            tool_name: call.name.clone(),
            capability_id: declared.map(|declared| declared.capability_id.clone()).unwrap_or_default(),
            input,
            target,
        }
    }
}

/// A tool that a person must approve runs nowhere while nobody can be asked.
fn http_target(approval: Approval) -> ToolTarget {
    match approval {
        Approval::Never => ToolTarget::Http,
        Approval::Always => ToolTarget::Unavailable,
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
    fn an_http_tool_runs_at_the_gate_unless_somebody_must_approve_it() {
        let manifest = r#"{"manifestSchemaVersion":5,"id":"a","capabilities":[{"id":"c","type":"agent","tools":[
            {"name":"order","inputSchema":{},"http":{"url":"https://example.com/orders"}},
            {"name":"pay","inputSchema":{},"approval":"always","http":{"url":"https://example.com/payments"}}]}]}"#;
        let manifest = AgentManifest::check_saved(&Json::parse(manifest).unwrap()).unwrap();
        let target = |name: &str| {
            let input = ToolInput::Json(Json::from_trusted("{}"));
            let call = ToolCall { call_id: CallId::from_trusted("1"), name: name.to_owned(), input };
            Toolbox::new(&manifest).request(&call).target
        };
        assert_eq!(target("order"), ToolTarget::Http);
        assert_eq!(target("pay"), ToolTarget::Unavailable);
    }
}
