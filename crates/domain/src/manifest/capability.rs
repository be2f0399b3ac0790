//! A capability.

use super::agent::{Context, Stage, read_content};
use super::names::Names;
use super::{Capability, CapabilityKind, McpServer, Skill, mcp, sandbox, skill, tool};
use crate::check::{Object, Place, TextRule};
use crate::tool::WorkspaceTool;
use crate::workspace::WorkspaceSpec;

/// Reads one capability; `names` are those of the capabilities before it.
pub(super) fn read(place: Place<'_>, context: Context, names: &mut Names) -> Option<Capability> {
    let object = place.object()?;
    let id = object.required("id", |place| {
        let id = place.string(TextRule::ID)?;
        names.capabilities.take(&id, "Capability id", place);
        Some(id)
    });
    let kind = object.required("type", |place| place.one_of(CapabilityKind::ALL, CapabilityKind::as_str));
    let name = object.optional_string("name", TextRule::NON_EMPTY);
    let description = object.optional("description", read_content);
    let metadata = object.optional("metadata", Place::object_json);
    let instructions = object.optional("instructions", |place| place.list(read_content));
    let skills = object.optional("skills", |place| read_skills(place, names));
    let sandbox = object.optional("sandbox", |place| read_sandbox(place, context, names));
    let serves = tool::Serves { workspace: object.has("sandbox"), skills: object.has("skills") };
    let tools = object.optional("tools", |place| place.list(|item| tool::read(item, context, serves, names)));
    let mcp_servers = object.optional("mcpServers", |place| read_mcp_servers(place, context, names));
    let tools = tools.unwrap_or_default();
    if sandbox.is_some() {
        let declares = |built_in: &WorkspaceTool| tools.iter().any(|tool| tool.name == built_in.as_str());
        if !WorkspaceTool::ALL.iter().all(declares) {
            place.custom("A capability with a sandbox must declare all six workspace tools");
        }
    }
    refuse_removed(&object);
    object.finish();
    Some(Capability {
        id: id?,
        kind: kind?,
        name,
        description,
        metadata,
        instructions: instructions.unwrap_or_default(),
        skills: skills.unwrap_or_default(),
        tools,
        mcp_servers: mcp_servers.unwrap_or_default(),
        sandbox,
    })
}

fn read_skills(place: Place<'_>, names: &mut Names) -> Option<Vec<Skill>> {
    let skills = place.map_of(1..=usize::MAX, |key, item| {
        let skill = skill::read(key, item)?;
        names.skills.take(&skill.name, "Skill name", item);
        Some(skill)
    })?;
    Some(skills.into_iter().map(|(_, skill)| skill).collect())
}

fn read_mcp_servers(place: Place<'_>, context: Context, names: &mut Names) -> Option<Vec<McpServer>> {
    let servers = place.map_of(1..=usize::MAX, |key, item| {
        let server = mcp::read(key, item, context.version)?;
        names.mcp_servers.take(&server.name, "MCP server name", item);
        Some(server)
    })?;
    Some(servers.into_iter().map(|(_, server)| server).collect())
}

fn read_sandbox(place: Place<'_>, context: Context, names: &mut Names) -> Option<WorkspaceSpec> {
    match context.stage {
        Stage::Saved => {
            place.custom("A definition declares no sandbox: it is chosen when a session is opened");
            None
        }
        Stage::Pinned => {
            if std::mem::replace(&mut names.has_sandbox, true) {
                place.custom("At most one capability may have a sandbox");
            }
            let spec = sandbox::read_sandbox(place)?;
            names.note_sandbox(&spec, place);
            Some(spec)
        }
    }
}

/// Members of older versions, each with what to do instead.
fn refuse_removed(object: &Object<'_>) {
    object.refuse("hooks", "`hooks` were removed in version 5: a manifest holds no code");
    object
        .refuse("beforeModelCall", "`beforeModelCall` was removed in version 5: put what it added into `instructions`");
    object.refuse("afterModelCall", "`afterModelCall` was removed in version 5: read the session's events instead");
    object.refuse("model", "`model` was removed in version 5: the tenant's settings choose the model");
}
