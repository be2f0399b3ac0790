//! A manifest for one turn, which may only narrow the session's (I45).

use std::collections::BTreeMap;

use super::AgentManifest;
use super::agent::{self, Context};
use crate::check::{Place, ProblemCode, Problems, check};
use crate::json::{Json, Value};

/// Reads the manifest that a message brings for its turn and compares it with the definition as it was saved.
///
/// It has the same id and version. It adds no capability, keeps each one's type, MCP servers and sandbox, and only
/// takes away tools and skills; those that it keeps are canonically equal. A capability without MCP servers and sandbox
/// may be left out. Names, descriptions, metadata, instructions and the output schema are free. `runtime` can only be
/// empty, so it is the same in every manifest.
pub fn variant_of(saved: &AgentManifest, variant: &Json) -> Result<AgentManifest, Problems> {
    check(&variant.value(), |place| read_variant(saved, place))
}

/// As [`variant_of`], for a manifest that is a part of a body.
pub fn read_variant(saved: &AgentManifest, place: Place<'_>) -> Option<AgentManifest> {
    let variant = agent::read(place, Context::SAVED)?;
    let saved_document = saved.document.value();
    let object = place.object()?;
    if variant.id != saved.id {
        object.refuse("id", "A turn's manifest must have the id of the session's agent");
    }
    if variant.version != saved.version {
        object.refuse("manifestSchemaVersion", "A turn's manifest must have the version of the session's agent");
    }
    let known = by_name(items(&saved_document, "capabilities"), "id");
    object.required("capabilities", |place| {
        report_dropped(&known, place);
        place.list(|item| narrowed(&known, item))
    });
    Some(variant)
}

/// Compares one capability with the saved one of its id.
fn narrowed(known: &ByName<'_>, place: Place<'_>) -> Option<()> {
    let object = place.object()?;
    let Some(saved) = place.value().get("id").and_then(Value::as_str).and_then(|id| known.get(id)) else {
        object.refuse("id", "A turn's manifest must not add a capability");
        return None;
    };
    for name in ["type", "mcpServers", "sandbox"] {
        if !agent::same(saved.get(name), place.value().get(name)) {
            let message = format!("A turn's manifest must not change `{name}` of a capability");
            place.problem_in(name, ProblemCode::Custom, message);
        }
    }
    let tools = by_name(items(saved, "tools"), "name");
    object.optional("tools", |place| {
        place.list(|tool| {
            let name = tool.value().get("name").and_then(Value::as_str)?;
            kept(tools.get(name).copied(), tool, "tool")
        })
    });
    let skills = saved.get("skills");
    object.optional("skills", |place| {
        place.map(|name, skill| kept(skills.and_then(|skills| skills.get(name)), skill, "skill"))
    });
    Some(())
}

/// A tool or skill of the variant must be one of the saved capability, unchanged.
fn kept(saved: Option<&Value>, place: Place<'_>, what: &str) -> Option<()> {
    if saved.is_none() {
        place.custom(format!("A turn's manifest must not add a {what} to a capability"));
    } else if !agent::same(saved, Some(place.value())) {
        place.custom(format!("A turn's manifest must not change a {what}, only leave it out"));
    }
    Some(())
}

/// Reports the saved capabilities that must not be left out and are.
fn report_dropped(known: &ByName<'_>, place: Place<'_>) {
    let kept = by_name(place.value().as_array().unwrap_or_default(), "id");
    for (id, saved) in known {
        let fixed = saved.get("mcpServers").or(saved.get("sandbox")).is_some();
        if fixed && !kept.contains_key(id) {
            place.custom(format!(
                "A turn's manifest must keep the capability \"{id}\", which has MCP servers or a sandbox"
            ));
        }
    }
}

/// Parts of a document by the name that each carries.
type ByName<'a> = BTreeMap<&'a str, &'a Value>;

fn by_name<'a>(parts: &'a [Value], name: &str) -> ByName<'a> {
    parts.iter().filter_map(|part| Some((part.get(name)?.as_str()?, part))).collect()
}

fn items<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).unwrap_or_default()
}
