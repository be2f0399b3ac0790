//! The tenant's settings for workspaces, and what a session's choice comes to under them (sandbox-and-definitions a7,
//! a8).

mod placement;
mod read;

use crate::check::{Path, ProblemCode, Problems, check_at};
use crate::grammar::{parse_duration_ms, parse_host_pattern};
use crate::json::Json;
use crate::model::words;
use crate::workspace::WorkspaceSpec;

pub use placement::{HARNESS, Host, Placement, PlacementRefused};

/// The image of a sandbox that names none, on backends that take images.
pub const DEFAULT_IMAGE: &str = "python:3.13-slim";
/// The longest time that a pod may have to stop, in milliseconds.
const MAX_STOP_GRACE_MS: i64 = 30_000;

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
    /// How many environments there may be. The workspaces of sessions do not count.
    pub environments: u32,
    /// The longest time that a pod may live, in milliseconds; without one, for ever.
    pub ttl_ms: Option<i64>,
    /// How pods end.
    pub lifecycle: Lifecycle,
    /// Where sessions may run.
    pub placement: Placement,
}

/// How pods end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    /// What becomes of one whose time is over.
    pub on_expiry: OnExpiry,
    /// How long one may take to stop, in milliseconds; at most 30,000.
    pub stop_grace_ms: i64,
}

words! {
    /// What becomes of a pod whose time is over.
    OnExpiry {
        /// Its files stay, and a longer time revives it.
        Retain = "retain",
        /// It is deleted.
        Delete = "delete",
    }
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
            environments: 100,
            ttl_ms: None,
            lifecycle: Lifecycle { on_expiry: OnExpiry::Retain, stop_grace_ms: 10_000 },
            placement: Placement::default(),
        }
    }
}

impl SandboxConfig {
    /// Reads settings, which stand at `path` of what was sent: every problem at once. Settings that contradict
    /// themselves are found when all members are well-formed.
    pub fn read(document: &Json, path: &Path<'_>) -> Result<Self, Problems> {
        let config = check_at(&document.value(), *path, read::config)?;
        config.contradictions(path).or(config)
    }

    fn contradictions(&self, path: &Path<'_>) -> Problems {
        let mut problems = Problems::default();
        let (max, defaults) = (self.max, self.default_resources);
        let limits = path.name("limits");
        let default_resources = limits.name("defaultResources");
        if defaults.cpus > max.cpus {
            let message = format!(
                "{} is more than limits.resources.cpus, {}: give defaultResources.cpus a number up to that, or raise \
                 the limit",
                defaults.cpus, max.cpus
            );
            problems.add(ProblemCode::TooBig, &default_resources.name("cpus"), message);
        }
        if defaults.memory_mib > max.memory_mib {
            let message = format!(
                "{}MiB is more than limits.resources.memory, {}MiB: give defaultResources.memory a size up to that, \
                 or raise the limit",
                defaults.memory_mib, max.memory_mib
            );
            problems.add(ProblemCode::TooBig, &default_resources.name("memory"), message);
        }
        if let SandboxDefault::Inline(request) = &self.default {
            // What the default leaves out is told above, once.
            let default_resources =
                Resources { cpus: defaults.cpus.min(max.cpus), memory_mib: defaults.memory_mib.min(max.memory_mib) };
            let consistent = Self { default_resources, ..self.clone() };
            if let Err(found) = consistent.resolve(request, &path.name("default")) {
                problems.append(found);
            }
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

/// The time that a pod may have to stop, in milliseconds: a duration of at most 30 seconds.
pub fn parse_stop_grace_ms(text: &str) -> Result<i64, String> {
    let ms = parse_duration_ms(text)?;
    if ms <= MAX_STOP_GRACE_MS { Ok(ms) } else { Err(format!("{} is longer than 30s", text.trim())) }
}

#[cfg(test)]
mod tests {
    use super::{
        Host, Lifecycle, OnExpiry, Placement, Resources, SandboxConfig, SandboxDefault, SandboxRequest,
        parse_stop_grace_ms,
    };
    use crate::check::Path;
    use crate::json::Json;

    fn config(text: &str) -> Result<SandboxConfig, String> {
        SandboxConfig::read(&Json::parse(text).unwrap(), &Path::ROOT).map_err(|problems| problems.to_string())
    }

    #[test]
    fn empty_settings_are_the_defaults() {
        assert_eq!(config("{}"), Ok(SandboxConfig::default()));
    }

    #[test]
    fn reads_every_member() {
        let read = config(
            r#"{"default":{"resources":{"cpus":1}},"limits":{"network":["*.Example.com"],"resources":{"cpus":8},
            "defaultResources":{"memory":"2GiB"},"idle":"1m","sandboxes":0,"ttl":"7d"},
            "lifecycle":{"onExpiry":"delete","stopGrace":"30s"},
            "placement":{"nylorun":{"hosts":["sandbox","sandbox"]},"*":{"hosts":["harness-container"]}}}"#,
        );
        let named = vec![("nylorun".to_owned(), vec![Host::Sandbox])];
        let expected = SandboxConfig {
            default: SandboxDefault::Inline(SandboxRequest { cpus: Some(1), ..SandboxRequest::default() }),
            network: vec!["*.example.com".to_owned()],
            max: Resources { cpus: 8, memory_mib: 8192 },
            default_resources: Resources { cpus: 2, memory_mib: 2048 },
            idle_ms: 60_000,
            environments: 0,
            ttl_ms: Some(604_800_000),
            lifecycle: Lifecycle { on_expiry: OnExpiry::Delete, stop_grace_ms: 30_000 },
            placement: Placement { named, rest: vec![Host::HarnessContainer] },
        };
        assert_eq!(read, Ok(expected));
        let grace = config(r#"{"lifecycle":{"stopGrace":"5s"}}"#).unwrap().lifecycle;
        assert_eq!(grace, Lifecycle { on_expiry: OnExpiry::Retain, stop_grace_ms: 5_000 });
    }

    #[test]
    fn every_wrong_member_is_named_at_once() {
        let wrong = r#"{"default":"some","extra":1,
            "limits":{"network":["https://x"],"resources":{"cpus":65},"defaultResources":{"memory":"1MB"},"idle":"0s",
                "sandboxes":100001,"ttl":"soon","disk":1},
            "lifecycle":{"onExpiry":"keep","stopGrace":"31s"},
            "placement":{"":{"hosts":["sandbox"]},"*":{"hosts":[]},"nylorun":{"hosts":["moon"],"x":1}}}"#;
        let found = SandboxConfig::read(&Json::parse(wrong).unwrap(), &Path::ROOT.name("config")).unwrap_err();
        let path = |problem: &crate::check::Problem| {
            problem.path.iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
        };
        let mut paths: Vec<_> = found.iter().map(path).collect();
        paths.sort();
        assert_eq!(
            paths,
            [
                "config",
                "config.default",
                "config.lifecycle.onExpiry",
                "config.lifecycle.stopGrace",
                "config.limits",
                "config.limits.defaultResources.memory",
                "config.limits.idle",
                "config.limits.network.0",
                "config.limits.resources.cpus",
                "config.limits.sandboxes",
                "config.limits.ttl",
                "config.placement.",
                "config.placement.*.hosts",
                "config.placement.nylorun",
                "config.placement.nylorun.hosts.0",
            ]
        );
        let told = found.to_string();
        for part in ["31s is longer than 30s", "\"extra\"", "\"disk\"", "\"none\", \"virtual\""] {
            assert!(told.contains(part), "{part} is not in {told}");
        }
    }

    #[test]
    fn a_pod_has_at_most_30_seconds_to_stop() {
        assert_eq!(parse_stop_grace_ms("30000ms"), Ok(30_000));
        for wrong in ["30001ms", "1m", "0s", "30"] {
            assert!(parse_stop_grace_ms(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn refuses_settings_that_contradict_themselves() {
        let limits = r#""limits":{"resources":{"cpus":1,"memory":"512MiB"}}"#;
        for default in ["none", "virtual"] {
            let found = config(&format!(r#"{{{limits},"default":"{default}"}}"#)).unwrap_err();
            let told: Vec<&str> = found.lines().collect();
            assert_eq!(
                told,
                [
                    "limits.defaultResources.cpus: 2 is more than limits.resources.cpus, 1: give defaultResources.cpus \
                     a number up to that, or raise the limit",
                    "limits.defaultResources.memory: 1024MiB is more than limits.resources.memory, 512MiB: give \
                     defaultResources.memory a size up to that, or raise the limit",
                ]
            );
        }
        let found = config(r#"{"default":{"image":"x","resources":{"cpus":5}}}"#).unwrap_err();
        assert!(found.contains("default.image:") && found.contains("default.resources.cpus: 5 is more"), "{found}");
        assert!(config(r#"{"limits":{"resources":{"cpus":2,"memory":"1GiB"}},"default":"virtual"}"#).is_ok());
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
