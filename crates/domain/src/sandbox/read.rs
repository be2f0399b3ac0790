//! Reading a tenant's settings for workspaces (sandbox-and-definitions a8).

use super::placement::{Host, Placement};
use super::{Lifecycle, OnExpiry, Resources, SandboxConfig, SandboxDefault, SandboxRequest, parse_stop_grace_ms};
use crate::check::{Place, TextRule};
use crate::grammar::{parse_duration_ms, parse_host_pattern, parse_memory_mib};
use crate::json::Value;

/// Most hosts of one list.
const MAX_HOSTS: usize = 1_000;
/// The most that `limits.sandboxes` may be.
const MAX_ENVIRONMENTS: u32 = 100_000;
/// The name in a placement that stands for every harness that is not named.
const REST: &str = "*";

/// The settings; what is left out has its default.
pub(super) fn config(place: Place<'_>) -> Option<SandboxConfig> {
    let fallback = SandboxConfig::default();
    let object = place.object()?;
    let default = object.optional("default", default);
    let limits = object.optional("limits", limits);
    let lifecycle = object.optional("lifecycle", |place| lifecycle(place, fallback.lifecycle));
    let placement = object.optional("placement", placement);
    object.finish();
    Some(SandboxConfig {
        default: default.unwrap_or(fallback.default),
        lifecycle: lifecycle.unwrap_or(fallback.lifecycle),
        placement: placement.unwrap_or(fallback.placement),
        ..limits.unwrap_or_default()
    })
}

/// Settings that have these limits and are the defaults otherwise.
fn limits(place: Place<'_>) -> Option<SandboxConfig> {
    let fallback = SandboxConfig::default();
    let object = place.object()?;
    let network = object.optional("network", hosts);
    let max = object.optional("resources", |place| limit(place, fallback.max));
    let defaults = object.optional("defaultResources", |place| limit(place, fallback.default_resources));
    let idle = object.optional("idle", |place| place.parsed(parse_duration_ms));
    let environments = object.optional("sandboxes", |place| place.integer(0..=MAX_ENVIRONMENTS));
    let ttl = object.optional("ttl", |place| place.parsed(parse_duration_ms));
    object.finish();
    Some(SandboxConfig {
        network: network.unwrap_or_default(),
        max: max.unwrap_or(fallback.max),
        default_resources: defaults.unwrap_or(fallback.default_resources),
        idle_ms: idle.unwrap_or(fallback.idle_ms),
        environments: environments.unwrap_or(fallback.environments),
        ttl_ms: ttl,
        ..fallback
    })
}

fn limit(place: Place<'_>, fallback: Resources) -> Option<Resources> {
    let (cpus, memory_mib) = resources(place)?;
    Some(Resources { cpus: cpus.unwrap_or(fallback.cpus), memory_mib: memory_mib.unwrap_or(fallback.memory_mib) })
}

/// Processors and MiB of memory, as far as they are given.
fn resources(place: Place<'_>) -> Option<(Option<u32>, Option<u32>)> {
    let object = place.object()?;
    let cpus = object.optional("cpus", |place| place.integer(1..=64u32));
    let memory = object.optional("memory", |place| place.parsed(parse_memory_mib));
    object.finish();
    Some((cpus, memory))
}

fn hosts(place: Place<'_>) -> Option<Vec<String>> {
    place.list_of(0..=MAX_HOSTS, |host| host.parsed(parse_host_pattern))
}

fn default(place: Place<'_>) -> Option<SandboxDefault> {
    match place.value() {
        Value::String(word) if *word == "none" => return Some(SandboxDefault::None),
        Value::String(word) if *word == "virtual" => return Some(SandboxDefault::Inline(SandboxRequest::default())),
        Value::String(_) => {
            return place.complain("expected \"none\", \"virtual\" or an object".into());
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {}
    }
    let object = place.object()?;
    let image = object.optional_string("image", TextRule::NON_EMPTY);
    let network_allow = object.optional("network", |place| {
        let object = place.object()?;
        let allow = object.optional("allow", hosts);
        object.finish();
        allow
    });
    let (cpus, memory_mib) = object.optional("resources", resources).unwrap_or_default();
    object.finish();
    let network_allow = network_allow.unwrap_or_default();
    Some(SandboxDefault::Inline(SandboxRequest { image, network_allow, cpus, memory_mib }))
}

fn lifecycle(place: Place<'_>, fallback: Lifecycle) -> Option<Lifecycle> {
    let object = place.object()?;
    let on_expiry = object.optional("onExpiry", |place| place.one_of(OnExpiry::ALL, OnExpiry::as_str));
    let stop_grace = object.optional("stopGrace", |place| place.parsed(parse_stop_grace_ms));
    object.finish();
    Some(Lifecycle {
        on_expiry: on_expiry.unwrap_or(fallback.on_expiry),
        stop_grace_ms: stop_grace.unwrap_or(fallback.stop_grace_ms),
    })
}

fn placement(place: Place<'_>) -> Option<Placement> {
    let mut placement = Placement::default();
    let harnesses = place.map(|harness, place| {
        if harness.is_empty() {
            place.custom("the name of a harness is empty: use nylorun, or * for the rest");
        }
        allowed(place)
    });
    for (harness, hosts) in harnesses? {
        match harness.as_str() {
            REST => placement.rest = hosts,
            _ => placement.named.push((harness, hosts)),
        }
    }
    Some(placement)
}

/// The hosts that a harness may run on, each once.
fn allowed(place: Place<'_>) -> Option<Vec<Host>> {
    let object = place.object()?;
    let hosts =
        object.required("hosts", |place| place.list_of(1..=MAX_HOSTS, |host| host.one_of(Host::ALL, Host::as_str)));
    object.finish();
    let mut allowed = Vec::new();
    for host in hosts? {
        if !allowed.contains(&host) {
            allowed.push(host);
        }
    }
    Some(allowed)
}
