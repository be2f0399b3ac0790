//! A tool.

use super::agent::{Context, Stage, read_content};
use super::names::Names;
use super::{Approval, Tool, ToolExecutor, delegate, http};
use crate::check::{Object, Place, TextRule};
use crate::grammar::is_tool_name;
use crate::tool::{SkillTool, WorkspaceTool};

/// Names of tools, MCP servers and delegates (I42).
pub(super) const NAME: TextRule = TextRule::ANY.matching(is_tool_name, "1 to 64 letters, digits, _ or -");

/// Which built-in tools a capability may declare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serves {
    pub(super) workspace: bool,
    pub(super) skills: bool,
}

/// Reads one tool; `names` are those of the tools before it.
pub(super) fn read(place: Place<'_>, context: Context, serves: Serves, names: &mut Names) -> Option<Tool> {
    let object = place.object()?;
    let name = object.required("name", |place| {
        let name = place.string(NAME)?;
        names.tools.take(&name, "Tool name", place);
        Some(name)
    });
    let description = object.optional("description", read_content);
    let input_schema = object.required("inputSchema", Place::object_json);
    let output_schema = object.optional("outputSchema", Place::object_json);
    object.at_most_one_of(&["agent", "http"]);
    let executor = read_executor(&object, name.as_deref(), context, serves, names);
    object.refuse("fn", "`fn` is reserved: a manifest holds no code. Use `http`");
    object.refuse("command", "`command` is reserved: a manifest holds no code. Use `http`");
    object.finish();
    Some(Tool { name: name?, description, input_schema: input_schema?, output_schema, executor: executor? })
}

fn read_executor(
    object: &Object<'_>,
    name: Option<&str>,
    context: Context,
    serves: Serves,
    names: &mut Names,
) -> Option<ToolExecutor> {
    let approval = object.optional("approval", |place| {
        if !object.has("http") {
            place.custom("`approval` is only for HTTP tools");
        }
        place.one_of(Approval::ALL, Approval::as_str)
    });
    let http = object.optional("http", |place| http::read(place, approval.unwrap_or(Approval::Never)));
    let agent = object.optional("agent", |place| {
        let child = delegate::read(object, place, context)?;
        if let Some(spec) = child.sandbox() {
            names.note_sandbox(spec, place);
        }
        Some(child)
    });
    if object.has("http") {
        return http.map(ToolExecutor::Http);
    }
    if object.has("agent") {
        return agent.map(|child| ToolExecutor::Agent(Box::new(child)));
    }
    built_in(object, name?, context, serves)
}

/// What carries out a tool with neither `http` nor `agent`.
fn built_in(object: &Object<'_>, name: &str, context: Context, serves: Serves) -> Option<ToolExecutor> {
    let workspace_tool = WorkspaceTool::from_wire(name);
    if let (Stage::Pinned, true, Some(tool)) = (context.stage, serves.workspace, workspace_tool) {
        return Some(ToolExecutor::Workspace(tool));
    }
    if let (true, Some(tool)) = (serves.skills, SkillTool::from_wire(name)) {
        return Some(ToolExecutor::Skill(tool));
    }
    // The runtime wrote a pinned manifest itself; a tool of it that nothing carries out fails at turn time.
    if context.stage == Stage::Pinned {
        return Some(ToolExecutor::None);
    }
    if object.has("fn") || object.has("command") {
        // Reported there.
        return None;
    }
    object.place().custom(match workspace_tool {
        Some(_) => format!("The runtime adds the tool \"{name}\" itself: open the session with a sandbox"),
        None => format!("The tool \"{name}\" needs code, which a manifest does not hold: give it `http` or `agent`"),
    });
    None
}
