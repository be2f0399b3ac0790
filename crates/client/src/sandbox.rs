//! The tenant's settings for workspaces (api 3.6).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The settings for workspaces, and which backends work on the server's machine. `other` keeps the rest, so that
/// serializing gives everything back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxSettings {
    /// The backend that was asked for: `auto`, or its name.
    #[serde(default)]
    pub preference: String,
    /// The backend of new workspaces; none when none works.
    #[serde(default)]
    pub backend: Option<String>,
    /// How its workspaces are kept apart: `process` or `container`.
    #[serde(default)]
    pub isolation: Option<String>,
    /// Why it was chosen, or why there is none.
    #[serde(default)]
    pub reason: String,
    /// Every backend of the server: `{name, available, isolation, reason?, version?}`.
    #[serde(default)]
    pub probes: Vec<Map<String, Value>>,
    /// The settings with their defaults: `{default, limits, lifecycle, placement}`.
    #[serde(default)]
    pub config: Map<String, Value>,
    /// The other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl SandboxSettings {
    /// The settings in the form in which [`set_sandbox`](crate::TenantClient::set_sandbox) takes them, to change some
    /// and keep the others.
    pub fn to_put(&self) -> Map<String, Value> {
        let mut config = self.config.clone();
        if let Some(Value::Object(limits)) = config.get_mut("limits") {
            for name in ["resources", "defaultResources"] {
                if let Some(Value::Object(resources)) = limits.get_mut(name)
                    && let Some(mib) = resources.remove("memoryMiB")
                {
                    resources.insert("memory".into(), json!(format!("{mib}MiB")));
                }
            }
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_can_be_put() {
        let settings: SandboxSettings = serde_json::from_value(json!({
            "backend": "virtual", "cluster": null,
            "config": {
                "default": "none",
                "limits": {
                    "network": [], "idle": "15m",
                    "resources": {"cpus": 4, "memoryMiB": 8192}, "defaultResources": {"cpus": 2, "memoryMiB": 1024},
                },
                "placement": {"*": {"hosts": ["sandbox"]}},
            },
        }))
        .unwrap();
        assert_eq!(
            Value::Object(settings.to_put()),
            json!({
                "default": "none",
                "limits": {
                    "network": [], "idle": "15m",
                    "resources": {"cpus": 4, "memory": "8192MiB"}, "defaultResources": {"cpus": 2, "memory": "1024MiB"},
                },
                "placement": {"*": {"hosts": ["sandbox"]}},
            })
        );
        assert_eq!(settings.other, Map::from_iter([("cluster".to_owned(), Value::Null)]));
    }
}
