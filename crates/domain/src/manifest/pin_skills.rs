//! The skill tools of a session's copy, where the definition brings skills and no tool to load them
//! (sandbox-and-definitions d1).

use super::pin::with_member;
use super::{AgentManifest, Skill};
use crate::check::Problems;
use crate::json::{Text, Value};
use crate::tool::SkillTool;

/// The session's copy of `manifest` with the skill tools that it needs and does not declare: `load_skill`, and
/// `read_skill_resource` where a skill has more files than `SKILL.md`. They stand in the first capability with skills,
/// in the agent and in those that it uses as tools. A name that another tool has is left to that tool.
///
/// # Errors
/// What was made is no manifest: never, for one that was read.
pub fn pin_skills(manifest: AgentManifest) -> Result<AgentManifest, Problems> {
    let added = with_skill_tools(&manifest, &manifest.document.value());
    match added {
        None => Ok(manifest),
        Some(document) => AgentManifest::read_pinned(&document.to_json()),
    }
}

/// The agent's document with what it lacks; `None` when it lacks nothing.
fn with_skill_tools(agent: &AgentManifest, document: &Value) -> Option<Value> {
    let own = missing_tools(agent);
    let delegates: Vec<_> = agent
        .delegates()
        .filter_map(|child| Some((child.id.as_str(), with_skill_tools(child, &child.document.value())?)))
        .collect();
    if own.is_empty() && delegates.is_empty() {
        return None;
    }
    let first = agent.capabilities.iter().position(|capability| !capability.skills.is_empty());
    let changed = with_member(document, "capabilities", |capabilities| {
        let capabilities = capabilities.as_array().unwrap_or_default().iter().enumerate();
        Value::Array(
            capabilities
                .map(|(at, capability)| {
                    let capability = with_delegates(capability, &delegates);
                    if first == Some(at) { with_tools(&capability, &own) } else { capability }
                })
                .collect(),
        )
    });
    Some(changed)
}

/// A capability whose embedded agents are replaced by these, by their ids.
fn with_delegates(capability: &Value, delegates: &[(&str, Value)]) -> Value {
    with_member(capability, "tools", |tools| {
        let tools = tools.as_array().unwrap_or_default().iter().map(|tool| {
            with_member(tool, "agent", |child| {
                let id = child.get("id").and_then(Value::as_str);
                let changed = delegates.iter().find(|(name, _)| Some(*name) == id);
                changed.map_or_else(|| child.clone(), |(_, changed)| changed.clone())
            })
        });
        Value::Array(tools.collect())
    })
}

fn with_tools(capability: &Value, added: &[Value]) -> Value {
    if capability.get("tools").is_some() {
        return with_member(capability, "tools", |tools| {
            Value::Array(tools.as_array().unwrap_or_default().iter().chain(added).cloned().collect())
        });
    }
    let members = capability.as_object().unwrap_or_default().iter().cloned();
    Value::Object(members.chain([(Text::from("tools"), Value::Array(added.to_vec()))]).collect())
}

/// The skill tools that the agent itself needs, as its document would declare them.
fn missing_tools(agent: &AgentManifest) -> Vec<Value> {
    let skills: Vec<&Skill> = agent.skills().collect();
    let wanted = SkillTool::ALL.iter().copied().filter(|tool| match tool {
        SkillTool::Load => !skills.is_empty(),
        SkillTool::ReadResource => skills.iter().any(|skill| skill.files.len() > 1),
    });
    wanted.filter(|tool| agent.tool(tool.as_str()).is_none()).map(|tool| declaration(tool, &skills)).collect()
}

fn declaration(tool: SkillTool, skills: &[&Skill]) -> Value {
    let (description, path) = match tool {
        SkillTool::Load => (load_description(skills), None),
        SkillTool::ReadResource => (READ_RESOURCE.to_owned(), Some(PATH)),
    };
    let mut names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    names.sort_unstable();
    let name = Value::object([
        ("type", Value::from("string")),
        ("enum", Value::Array(names.into_iter().map(Value::from).collect())),
    ]);
    let path = path.map(|description| {
        let members =
            [("type", Value::from("string")), ("description", Value::from(description)), ("minLength", Value::from(1))];
        ("path", Value::object(members))
    });
    let properties: Vec<_> = [("name", name)].into_iter().chain(path).collect();
    let required = properties.iter().map(|(name, _)| Value::from(*name)).collect();
    let schema = Value::object([
        ("type", Value::from("object")),
        ("properties", Value::object(properties)),
        ("required", Value::Array(required)),
        ("additionalProperties", Value::from(false)),
    ]);
    Value::object([
        ("name", Value::from(tool.as_str())),
        ("description", Value::from(description)),
        ("inputSchema", schema),
    ])
}

const READ_RESOURCE: &str = "Gives a file of a skill, as text. load_skill lists the files.";
const PATH: &str = "The file, below the skill's folder";

/// Names each skill with what it is for, so that the model knows when to load it.
fn load_description(skills: &[&Skill]) -> String {
    let mut text = "Gives the instructions of a skill and the list of its other files. Load a skill before you do \
                    what it is for. Skills:"
        .to_owned();
    for skill in skills {
        text.push_str("\n- ");
        text.push_str(&skill.name);
        text.push_str(": ");
        text.push_str(&skill.description);
    }
    text
}
