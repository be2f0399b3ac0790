//! What the runtime adds to a session's copy of a manifest (sandbox-and-definitions a7).

use super::workspace_tools::{INSTRUCTIONS, workspace_tool_description, workspace_tool_schema};
use super::{AgentManifest, CapabilityKind, ToolExecutor, sandbox_json};
use crate::check::{Path, ProblemCode, Problems};
use crate::json::{Text, Value};
use crate::tool::WorkspaceTool;
use crate::workspace::WorkspaceSpec;

/// The id of the capability that brings the workspace.
pub const SANDBOX_CAPABILITY: &str = "nylorun.sandbox";

/// The session's copy of `manifest` with a workspace: the capability [`SANDBOX_CAPABILITY`] stands last in the agent
/// and in every agent that it uses as a tool, unless one brings its own. The saved definition does not change (I14).
///
/// A tool of the agent that has the name of a workspace tool is a problem, which says how to go on.
pub fn pin_workspace(manifest: &AgentManifest, spec: &WorkspaceSpec) -> Result<AgentManifest, Problems> {
    let mut problems = Problems::default();
    report_clashes(manifest, Path::ROOT, &mut problems);
    problems.or(())?;
    let document = with_capability(&manifest.document.value(), &workspace_capability(spec));
    AgentManifest::read_pinned(&document.to_json())
}

fn workspace_capability(spec: &WorkspaceSpec) -> Value {
    let tools = WorkspaceTool::ALL.iter().map(|tool| {
        Value::object([
            ("name", Value::from(tool.as_str())),
            ("description", Value::from(workspace_tool_description(*tool))),
            ("inputSchema", workspace_tool_schema(*tool)),
        ])
    });
    Value::object([
        ("id", Value::from(SANDBOX_CAPABILITY)),
        ("type", Value::from(CapabilityKind::AgentPlugin.as_str())),
        ("instructions", Value::Array(vec![Value::from(INSTRUCTIONS)])),
        ("tools", Value::Array(tools.collect())),
        ("sandbox", sandbox_json(spec)),
    ])
}

fn report_clashes(agent: &AgentManifest, path: Path<'_>, problems: &mut Problems) {
    if agent.sandbox().is_some() {
        return;
    }
    let capabilities = path.name("capabilities");
    for (at, capability) in agent.capabilities.iter().enumerate() {
        let path = capabilities.index(at);
        if capability.id == SANDBOX_CAPABILITY {
            let message = format!(
                "The runtime adds a capability \"{SANDBOX_CAPABILITY}\" itself: rename it, or open the session with \
                 sandbox:false"
            );
            problems.add(ProblemCode::Custom, &path.name("id"), message);
        }
        let tools = path.name("tools");
        for (at, tool) in capability.tools.iter().enumerate() {
            let path = tools.index(at);
            if WorkspaceTool::from_wire(&tool.name).is_some() {
                let message = format!(
                    "The tool \"{}\" has the name of a workspace tool: rename it, or open the session with \
                     sandbox:false",
                    tool.name
                );
                problems.add(ProblemCode::Custom, &path.name("name"), message);
            }
            if let ToolExecutor::Agent(child) = &tool.executor {
                report_clashes(child, path.name("agent"), problems);
            }
        }
    }
}

/// The agent's document with `capability` added to it and to its delegates.
fn with_capability(agent: &Value, capability: &Value) -> Value {
    with_member(agent, "capabilities", |capabilities| {
        let mut list: Vec<_> = items(capabilities).iter().map(|own| with_delegates(own, capability)).collect();
        if !list.iter().any(|own| own.get("sandbox").is_some()) {
            list.push(capability.clone());
        }
        Value::Array(list)
    })
}

/// An agent's own capability, `added` being added to the agents that are tools of it.
fn with_delegates(own: &Value, added: &Value) -> Value {
    with_member(own, "tools", |tools| {
        let tools = items(tools).iter().map(|tool| with_member(tool, "agent", |child| with_capability(child, added)));
        Value::Array(tools.collect())
    })
}

/// A copy of `object` in which the member `name`, when it is there, is what `change` makes of it.
pub(super) fn with_member(object: &Value, name: &str, change: impl Fn(&Value) -> Value) -> Value {
    let changed =
        |(key, value): &(Text, Value)| (key.clone(), if *key == name { change(value) } else { value.clone() });
    Value::Object(object.as_object().unwrap_or_default().iter().map(changed).collect())
}

fn items(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_default()
}
