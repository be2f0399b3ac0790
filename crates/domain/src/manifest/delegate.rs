//! Agents used as tools.

use super::AgentManifest;
use super::agent::{self, Context, Depth};
use crate::check::{Object, Place, ProblemCode};
use crate::json::{Value, parse};

/// The input schema of every agent used as a tool (decisions, Small print).
pub(super) const DELEGATE_INPUT_SCHEMA: &str = concat!(
    r#"{"type":"object","properties":{"task":{"type":"string","minLength":1}},"#,
    r#""required":["task"],"additionalProperties":false}"#
);

/// Reads the `agent` of a tool. `tool` is the tool itself, whose name, description and schemas must fit the agent.
pub(super) fn read(tool: &Object<'_>, place: Place<'_>, context: Context) -> Option<AgentManifest> {
    match context.depth {
        Depth::Root => {}
        Depth::Delegate => {
            place.custom("An agent used as a tool cannot have agents as tools itself");
            return None;
        }
    }
    check_tool(tool, place);
    agent::read(place, context.delegate())
}

fn check_tool(tool: &Object<'_>, place: Place<'_>) {
    let child = place.value();
    if let (Some(name), Some(id)) = (tool.get("name"), child.get("id"))
        && name.value() != id
    {
        name.custom("The name of the tool must equal the id of its agent");
    }
    let description = child.get("description").and_then(Value::as_text).filter(|text| !text.is_empty());
    match (description, tool.get("description")) {
        (None, _) => {
            let message = "An agent used as a tool needs a description that is not empty";
            place.problem_in("description", ProblemCode::Custom, message);
        }
        (Some(_), None) => {
            let message = "The tool must have the description of its agent";
            tool.place().problem_in("description", ProblemCode::Custom, message);
        }
        (Some(of_agent), Some(of_tool)) => {
            if of_tool.value().as_text() != Some(of_agent) {
                of_tool.custom("The description of the tool must equal that of its agent");
            }
        }
    }
    if let Some(schema) = tool.get("inputSchema") {
        let expected = parse(DELEGATE_INPUT_SCHEMA).ok();
        if !agent::same(Some(schema.value()), expected.as_ref()) {
            schema.custom(format!("The input schema of an agent used as a tool must be {DELEGATE_INPUT_SCHEMA}"));
        }
    }
    tool.refuse("outputSchema", "A tool that is an agent has no output schema");
}
