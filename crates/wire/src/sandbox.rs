//! The tenant's settings for workspaces on the wire: `GET` and `PUT /v1/tenant/sandbox` (api 3.6).

use nylorun_domain::grammar::print_duration;
use nylorun_domain::json::{Json, Value};
use nylorun_domain::sandbox::{
    DEFAULT_IMAGE, Host, Placement, Resources, SandboxConfig, SandboxDefault, SandboxRequest,
};

use crate::body::Body;

/// The settings of a body, as they were sent: all members but `requestId`.
pub fn settings(body: &Body) -> Json {
    let members = body.value().as_object().unwrap_or_default().iter();
    Value::object(members.filter(|(name, _)| *name != "requestId").cloned()).to_json()
}

/// The settings that hold, and the backends that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxView {
    /// The backend that was asked for: `auto`, or its name.
    pub preference: String,
    /// The backend of new workspaces.
    pub backend: Option<String>,
    /// How its workspaces are kept apart: `process` or `container`.
    pub isolation: Option<String>,
    /// Why it was chosen, or why there is none.
    pub reason: String,
    /// Every backend of this build.
    pub probes: Vec<ProbeView>,
    /// The settings.
    pub config: SandboxConfig,
}

/// What is known of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeView {
    /// Its name.
    pub name: String,
    /// How its workspaces are kept apart.
    pub isolation: String,
    /// Whether it works here.
    pub state: ProbeState,
}

/// Whether a backend works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeState {
    /// It does.
    Available {
        /// The version of what runs it.
        version: String,
        /// The limits that it cannot hold workspaces to here, if any.
        reason: Option<String>,
    },
    /// It does not.
    Unavailable {
        /// Why.
        reason: String,
    },
}

impl SandboxView {
    /// The answer's body. There is no cluster for pods in this version.
    pub fn to_value(&self) -> Value {
        let nullable = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::from);
        Value::object([
            ("preference", Value::from(self.preference.as_str())),
            ("backend", nullable(&self.backend)),
            ("isolation", nullable(&self.isolation)),
            ("reason", Value::from(self.reason.as_str())),
            ("probes", Value::Array(self.probes.iter().map(ProbeView::to_value).collect())),
            ("defaultImage", Value::from(DEFAULT_IMAGE)),
            ("config", config(&self.config)),
            ("cluster", Value::Null),
        ])
    }
}

impl ProbeView {
    fn to_value(&self) -> Value {
        let (available, reason, version) = match &self.state {
            ProbeState::Available { version, reason } => (true, reason.as_deref(), Some(version.as_str())),
            ProbeState::Unavailable { reason } => (false, Some(reason.as_str()), None),
        };
        let mut members = vec![
            ("name", Value::from(self.name.as_str())),
            ("available", Value::from(available)),
            ("isolation", Value::from(self.isolation.as_str())),
        ];
        members.extend(reason.map(|reason| ("reason", Value::from(reason))));
        members.extend(version.map(|version| ("version", Value::from(version))));
        Value::object(members)
    }
}

/// The settings with their defaults.
fn config(config: &SandboxConfig) -> Value {
    let mut limits = vec![
        ("network", texts(&config.network)),
        ("resources", resources(config.max)),
        ("defaultResources", resources(config.default_resources)),
        ("idle", Value::from(print_duration(config.idle_ms))),
        ("sandboxes", Value::from(i64::from(config.environments))),
    ];
    limits.extend(config.ttl_ms.map(|ttl| ("ttl", Value::from(print_duration(ttl)))));
    let lifecycle = [
        ("onExpiry", Value::from(config.lifecycle.on_expiry.as_str())),
        ("stopGrace", Value::from(print_duration(config.lifecycle.stop_grace_ms))),
    ];
    Value::object([
        ("default", default(&config.default)),
        ("limits", Value::object(limits)),
        ("lifecycle", Value::object(lifecycle)),
        ("placement", placement(&config.placement)),
    ])
}

/// As it is sent; one that asks for nothing is `virtual`.
fn default(default: &SandboxDefault) -> Value {
    let SandboxDefault::Inline(request) = default else { return Value::from("none") };
    if *request == SandboxRequest::default() {
        return Value::from("virtual");
    }
    let SandboxRequest { image, network_allow, cpus, memory_mib } = request;
    let mut members = Vec::new();
    members.extend(image.as_deref().map(|image| ("image", Value::from(image))));
    if !network_allow.is_empty() {
        members.push(("network", Value::object([("allow", texts(network_allow))])));
    }
    let asked = cpus.map(|cpus| ("cpus", Value::from(i64::from(cpus)))).into_iter();
    let asked: Vec<_> = asked.chain(memory_mib.map(|mib| ("memory", Value::from(format!("{mib}MiB"))))).collect();
    if !asked.is_empty() {
        members.push(("resources", Value::object(asked)));
    }
    Value::object(members)
}

fn placement(placement: &Placement) -> Value {
    let hosts = |hosts: &[Host]| Value::Array(hosts.iter().map(|host| Value::from(host.as_str())).collect());
    let entry = |(harness, allowed): (&str, &[Host])| (harness.to_owned(), Value::object([("hosts", hosts(allowed))]));
    Value::object(placement.entries().map(entry))
}

fn resources(resources: Resources) -> Value {
    let Resources { cpus, memory_mib } = resources;
    let members = [("cpus", i64::from(cpus)), ("memoryMiB", i64::from(memory_mib))];
    Value::object(members.map(|(name, number)| (name, Value::from(number))))
}

fn texts(texts: &[String]) -> Value {
    Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use nylorun_domain::check::Path;
    use nylorun_domain::json::Json;
    use nylorun_domain::sandbox::SandboxConfig;

    use super::{ProbeState, ProbeView, SandboxView, config, settings};
    use crate::body::Body;
    use crate::schema::{sample, sandbox};

    fn shown(text: &str) -> String {
        let read = SandboxConfig::read(&Json::parse(text).unwrap(), &Path::ROOT).unwrap();
        config(&read).to_json().as_str().to_owned()
    }

    #[test]
    fn the_defaults_are_shown() {
        let expected = concat!(
            r#"{"default":"none","limits":{"network":[],"resources":{"cpus":4,"memoryMiB":8192},"#,
            r#""defaultResources":{"cpus":2,"memoryMiB":1024},"idle":"15m","sandboxes":100},"#,
            r#""lifecycle":{"onExpiry":"retain","stopGrace":"10s"},"#,
            r#""placement":{"*":{"hosts":["harness-container","sandbox"]}}}"#,
        );
        assert_eq!(shown("{}"), expected);
    }

    #[test]
    fn what_is_set_is_shown_as_it_was_sent() {
        assert!(shown(r#"{"default":{}}"#).starts_with(r#"{"default":"virtual","#));
        let default = r#"{"network":{"allow":["a.example.com"]},"resources":{"cpus":1,"memory":"512MiB"}}"#;
        let lifecycle = r#"{"onExpiry":"delete","stopGrace":"500ms"}"#;
        let placement = r#"{"nylorun":{"hosts":["sandbox"]},"*":{"hosts":["harness-container"]}}"#;
        let limits = r#"{"network":["a.example.com"],"ttl":"90m","sandboxes":0}"#;
        let shown = shown(&format!(
            r#"{{"default":{default},"limits":{limits},"lifecycle":{lifecycle},"placement":{placement}}}"#
        ));
        for part in [default, lifecycle, placement, r#""sandboxes":0,"ttl":"90m""#] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
    }

    #[test]
    fn whatever_the_schema_takes_the_reader_takes_and_the_view_has_its_own_schema() {
        let body = Body::new(sample(&sandbox::PUT_SANDBOX).to_json());
        assert!(body.optional_text("requestId").is_some());
        let settings = settings(&body);
        assert!(!settings.as_str().contains("requestId"), "{}", settings.as_str());
        let config = SandboxConfig::read(&settings, &Path::ROOT).unwrap();
        assert_ne!(config, SandboxConfig::default());
        let probe = |state| ProbeView { name: "b".to_owned(), isolation: "process".to_owned(), state };
        let view = SandboxView {
            preference: "auto".to_owned(),
            backend: None,
            isolation: None,
            reason: "none works".to_owned(),
            probes: vec![
                probe(ProbeState::Available { version: "1".to_owned(), reason: None }),
                probe(ProbeState::Unavailable { reason: "no".to_owned() }),
            ],
            config,
        };
        assert_eq!(sandbox::SANDBOX_VIEW.check(&view.to_value()), Ok(()));
    }
}
