//! The tenant's settings for workspaces, and what a session's choice comes to under them (sandbox-and-definitions a7,
//! a8).

use crate::check::{Path, Place, ProblemCode, Problems, TextRule, check};
use crate::grammar::{parse_duration_ms, parse_host_pattern, parse_memory_mib};
use crate::json::{Json, Value};
use crate::workspace::WorkspaceSpec;

/// Settings of the tenant for workspaces: `sandbox.config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxConfig {
    /// What a session gets that chooses nothing.
    pub default: SandboxDefault,
    /// Hosts that sessions may be allowed to reach, exact or `*.suffix`. Empty: none.
    pub network: Vec<String>,
    /// The most that a session may ask for.
    pub max: Resources,
    /// What a session gets that does not ask.
    pub default_resources: Resources,
    /// How long a workspace may stay unused before its compute goes, in milliseconds.
    pub idle_ms: i64,
}

/// What a session gets that chooses no workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxDefault {
    /// None.
    None,
    /// One as described.
    Inline(SandboxRequest),
}

/// Processors and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Processors.
    pub cpus: u32,
    /// Memory, in MiB.
    pub memory_mib: u32,
}

/// What a session asks of a workspace of its own; what is left out takes the tenant's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxRequest {
    /// An image.
    pub image: Option<String>,
    /// Host patterns that may be reached.
    pub network_allow: Vec<String>,
    /// Processors.
    pub cpus: Option<u32>,
    /// Memory, in MiB.
    pub memory_mib: Option<u32>,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            default: SandboxDefault::None,
            network: Vec::new(),
            max: Resources { cpus: 4, memory_mib: 8192 },
            default_resources: Resources { cpus: 2, memory_mib: 1024 },
            idle_ms: 15 * 60 * 1000,
        }
    }
}

impl SandboxConfig {
    /// Reads settings: every problem at once, under `prefix`. Members that belong to features to come are accepted as
    /// they are.
    pub fn read(document: &Json) -> Result<Self, Problems> {
        let config = check(&document.value(), read_config)?;
        let problems = config.contradictions();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn contradictions(&self) -> Problems {
        let mut problems = Problems::default();
        let limits = Path::ROOT.name("limits");
        let defaults = limits.name("defaultResources");
        if self.default_resources.cpus > self.max.cpus {
            problems.add(ProblemCode::TooBig, &defaults.name("cpus"), "more than limits.resources.cpus");
        }
        if self.default_resources.memory_mib > self.max.memory_mib {
            problems.add(ProblemCode::TooBig, &defaults.name("memory"), "more than limits.resources.memory");
        }
        if let SandboxDefault::Inline(request) = &self.default
            && let Err(found) = self.resolve(request, &Path::ROOT.name("default"))
        {
            problems.append(found);
        }
        problems
    }

    /// What `request` comes to under the tenant's limits, on a virtual workspace: every problem at once, with paths
    /// under `path`.
    pub fn resolve(&self, request: &SandboxRequest, path: &Path<'_>) -> Result<WorkspaceSpec, Problems> {
        let mut problems = Problems::default();
        if request.image.is_some() {
            let message = "a virtual workspace takes no image; leave it out";
            problems.add(ProblemCode::Custom, &path.name("image"), message);
        }
        let network = path.name("network");
        let allow = network.name("allow");
        let mut hosts = Vec::new();
        for (at, host) in request.network_allow.iter().enumerate() {
            match self.host(host) {
                Ok(host) => hosts.push(host),
                Err(message) => problems.add(ProblemCode::Custom, &allow.index(at), message),
            }
        }
        hosts.sort();
        hosts.dedup();
        let resources = path.name("resources");
        let cpus = request.cpus.unwrap_or(self.default_resources.cpus);
        if cpus > self.max.cpus {
            let message = format!("{cpus} is more than the tenant's limit of {}", self.max.cpus);
            problems.add(ProblemCode::TooBig, &resources.name("cpus"), message);
        }
        let memory_mib = request.memory_mib.unwrap_or(self.default_resources.memory_mib);
        if memory_mib > self.max.memory_mib {
            let message = format!("{memory_mib}MiB is more than the tenant's limit of {}MiB", self.max.memory_mib);
            problems.add(ProblemCode::TooBig, &resources.name("memory"), message);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(WorkspaceSpec { image: None, cpus, memory_mib, network_allow: hosts, idle_ms: self.idle_ms })
    }

    fn host(&self, host: &str) -> Result<String, String> {
        let host = parse_host_pattern(host).map_err(str::to_owned)?;
        if host.starts_with("*.") {
            return Err(format!("a virtual workspace takes exact host names only, not {host}"));
        }
        if self.network.is_empty() {
            return Err(format!(
                "{host} may not be allowed: the tenant's limits.network is empty; \
                 the operator adds hosts to it in the sandbox settings"
            ));
        }
        let is_covered = self.network.iter().any(|limit| match limit.strip_prefix("*.") {
            Some(suffix) => host.strip_suffix(suffix).is_some_and(|head| head.ends_with('.')),
            None => *limit == host,
        });
        if is_covered { Ok(host) } else { Err(format!("{host} is not within the tenant's limits.network")) }
    }
}

fn read_config(place: Place<'_>) -> Option<SandboxConfig> {
    let fallback = SandboxConfig::default();
    let object = place.object()?;
    object.optional("requestId", |place| place.string(TextRule::NON_EMPTY));
    let default = object.optional("default", read_default);
    let limits = object.optional("limits", |place| read_limits(place, &fallback));
    object.optional("lifecycle", |place| place.object().map(|_| ()));
    object.optional("placement", |place| place.object().map(|_| ()));
    object.finish();
    let (network, max, default_resources, idle_ms) =
        limits.unwrap_or((fallback.network, fallback.max, fallback.default_resources, fallback.idle_ms));
    Some(SandboxConfig { default: default.unwrap_or(fallback.default), network, max, default_resources, idle_ms })
}

type Limits = (Vec<String>, Resources, Resources, i64);

fn read_limits(place: Place<'_>, fallback: &SandboxConfig) -> Option<Limits> {
    let object = place.object()?;
    let network = object.optional("network", |place| place.list_of(0..=1000, |host| host.parsed(parse_host_pattern)));
    let max = object.optional("resources", |place| read_resources(place, fallback.max));
    let defaults = object.optional("defaultResources", |place| read_resources(place, fallback.default_resources));
    let idle = object.optional("idle", |place| place.parsed(parse_duration_ms));
    object.optional("sandboxes", |place| place.integer(0..=100_000));
    object.optional("ttl", |place| place.parsed(parse_duration_ms));
    object.finish();
    Some((
        network.unwrap_or_default(),
        max.unwrap_or(fallback.max),
        defaults.unwrap_or(fallback.default_resources),
        idle.unwrap_or(fallback.idle_ms),
    ))
}

fn read_resources(place: Place<'_>, fallback: Resources) -> Option<Resources> {
    let object = place.object()?;
    let cpus = object.optional("cpus", |place| place.integer(1..=64));
    let memory = object.optional("memory", |place| place.parsed(parse_memory_mib));
    object.finish();
    Some(Resources {
        cpus: cpus.and_then(|cpus| u32::try_from(cpus).ok()).unwrap_or(fallback.cpus),
        memory_mib: memory.unwrap_or(fallback.memory_mib),
    })
}

fn read_default(place: Place<'_>) -> Option<SandboxDefault> {
    match place.value() {
        Value::String(word) if *word == "none" => return Some(SandboxDefault::None),
        Value::String(word) if *word == "virtual" => return Some(SandboxDefault::Inline(SandboxRequest::default())),
        Value::String(_) => {
            return place.complain("expected \"none\", \"virtual\" or an object".into());
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {}
    }
    let object = place.object()?;
    let image = object.optional("image", |place| place.string(TextRule::NON_EMPTY));
    let network = object.optional("network", |place| {
        let object = place.object()?;
        let allow = object.optional("allow", |place| place.list_of(0..=1000, |host| host.parsed(parse_host_pattern)));
        object.finish();
        Some(allow.unwrap_or_default())
    });
    let resources = object.optional("resources", |place| {
        let object = place.object()?;
        let cpus = object.optional("cpus", |place| place.integer(1..=64));
        let memory = object.optional("memory", |place| place.parsed(parse_memory_mib));
        object.finish();
        Some((cpus.and_then(|cpus| u32::try_from(cpus).ok()), memory))
    });
    object.finish();
    let (cpus, memory_mib) = resources.unwrap_or_default();
    let network_allow = network.unwrap_or_default();
    Some(SandboxDefault::Inline(SandboxRequest { image, network_allow, cpus, memory_mib }))
}

#[cfg(test)]
mod tests {
    use super::{Resources, SandboxConfig, SandboxDefault, SandboxRequest};
    use crate::check::Path;
    use crate::json::Json;

    fn config(text: &str) -> Result<SandboxConfig, String> {
        SandboxConfig::read(&Json::parse(text).unwrap()).map_err(|problems| problems.to_string())
    }

    #[test]
    fn empty_settings_are_the_defaults() {
        assert_eq!(config("{}"), Ok(SandboxConfig::default()));
    }

    #[test]
    fn reads_limits_and_the_default() {
        let read = config(
            r#"{"default":{"resources":{"cpus":1}},"limits":{"network":["*.Example.com"],"resources":{"cpus":8},
            "defaultResources":{"memory":"2GiB"},"idle":"1m"}}"#,
        );
        let expected = SandboxConfig {
            default: SandboxDefault::Inline(SandboxRequest { cpus: Some(1), ..SandboxRequest::default() }),
            network: vec!["*.example.com".to_owned()],
            max: Resources { cpus: 8, memory_mib: 8192 },
            default_resources: Resources { cpus: 2, memory_mib: 2048 },
            idle_ms: 60_000,
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn refuses_settings_that_contradict_themselves() {
        let found = config(r#"{"limits":{"resources":{"cpus":1}},"default":{"image":"x"}}"#).unwrap_err();
        assert!(found.contains("limits.defaultResources.cpus: more than limits.resources.cpus"), "{found}");
        assert!(found.contains("default.image:"), "{found}");
    }

    #[test]
    fn a_request_is_held_to_every_limit_at_once() {
        let config = config(r#"{"limits":{"network":["a.example.com","*.b.com"]}}"#).unwrap();
        let request = SandboxRequest {
            image: Some("python".to_owned()),
            network_allow: ["A.example.com", "x.b.com", "b.com", "*.b.com", "c.com"].map(str::to_owned).to_vec(),
            cpus: Some(5),
            memory_mib: Some(8193),
        };
        let found = config.resolve(&request, &Path::ROOT.name("sandbox")).unwrap_err().to_string();
        let paths: Vec<&str> = found.lines().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(
            paths,
            [
                "sandbox.image",
                "sandbox.network.allow.2",
                "sandbox.network.allow.3",
                "sandbox.network.allow.4",
                "sandbox.resources.cpus",
                "sandbox.resources.memory"
            ],
            "{found}"
        );
    }

    #[test]
    fn a_request_within_the_limits_is_completed_sorted_and_lower_cased() {
        let config = config(r#"{"limits":{"network":["b.example.com","a.example.com"]}}"#).unwrap();
        let network_allow = ["B.example.com", "a.example.com", "b.example.com"].map(str::to_owned).to_vec();
        let request = SandboxRequest { network_allow, ..SandboxRequest::default() };
        let spec = config.resolve(&request, &Path::ROOT).unwrap();
        assert_eq!(spec.network_allow, ["a.example.com", "b.example.com"]);
        assert_eq!((spec.cpus, spec.memory_mib, spec.idle_ms), (2, 1024, 900_000));
    }
}
