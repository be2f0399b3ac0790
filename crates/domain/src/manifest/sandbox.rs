//! The workspace's spec as a pinned manifest and a session's view hold it (sandbox-and-definitions a7).

use crate::check::{Object, Place, TextRule};
use crate::grammar::{parse_duration_ms, parse_host_pattern, parse_memory_mib, print_duration};
use crate::json::Value;
use crate::workspace::WorkspaceSpec;

/// The only network preset of a session's workspace: nothing but what `allow` names.
const PRESET: &str = "none";

/// `{image?, network: {preset: "none", allow?}, resources: {cpus, memory: "<n>MiB"}, idle}`
pub fn sandbox_json(spec: &WorkspaceSpec) -> Value {
    let mut network = vec![("preset", Value::from(PRESET))];
    if !spec.network_allow.is_empty() {
        let allow = spec.network_allow.iter().map(|host| Value::from(host.as_str()));
        network.push(("allow", Value::Array(allow.collect())));
    }
    let resources =
        [("cpus", Value::from(i64::from(spec.cpus))), ("memory", Value::from(format!("{}MiB", spec.memory_mib)))];
    let image = spec.image.as_deref().map(|image| ("image", Value::from(image)));
    let rest = [
        ("network", Value::object(network)),
        ("resources", Value::object(resources)),
        ("idle", Value::from(print_duration(spec.idle_ms))),
    ];
    Value::object(image.into_iter().chain(rest))
}

/// Reads what [`sandbox_json`] prints.
pub fn read_sandbox(place: Place<'_>) -> Option<WorkspaceSpec> {
    let object = place.object()?;
    let image = object.optional_string("image", TextRule::NON_EMPTY);
    let network_allow = object.required("network", read_network);
    let resources = object.required("resources", read_resources);
    let idle_ms = object.required("idle", |place| place.parsed(parse_duration_ms));
    object.finish();
    let (cpus, memory_mib) = resources?;
    Some(WorkspaceSpec { image, cpus, memory_mib, network_allow: network_allow?, idle_ms: idle_ms? })
}

fn read_network(place: Place<'_>) -> Option<Vec<String>> {
    let object = place.object()?;
    object.required("preset", |place| place.one_of(&[()], |()| PRESET));
    let allow = object.optional("allow", |place| place.list(|host| host.parsed(parse_host_pattern)));
    object.finish();
    Some(allow.unwrap_or_default())
}

fn read_resources(place: Place<'_>) -> Option<(u32, u32)> {
    let object: Object<'_> = place.object()?;
    let cpus = object.required("cpus", |place| place.integer(1..=64_u32));
    let memory = object.required("memory", |place| place.parsed(parse_memory_mib));
    object.finish();
    Some((cpus?, memory?))
}
