//! What the server says of itself, and whether this client can talk to it (api 1.2, 7.1, 7.2).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The protocol version that this client speaks.
pub const PROTOCOL: u32 = 10;

/// Features without which this client does not work.
pub const REQUIRED_FEATURES: [&str; 4] = ["studio-principal", "artifacts", "management-api", "resource-server"];

/// Answer of `/health`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// `nylorun-runtime`.
    pub service: String,
    /// The server's own version.
    #[serde(default)]
    pub version: String,
    /// Which protocol versions it accepts, and what it can do.
    pub protocol: Protocol,
    /// The host's id.
    #[serde(default)]
    pub host_id: String,
    /// The server's process.
    #[serde(default)]
    pub pid: u32,
    /// Members that this client does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Protocol versions and features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Oldest version accepted.
    pub min: u32,
    /// Newest version accepted.
    pub max: u32,
    /// Names of features.
    #[serde(default)]
    pub features: Vec<String>,
}

/// Answer of `/ready`, with 200 or 503.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// `ready` or `not_ready`.
    pub status: String,
    /// Each check with its result: `listener`, `tenant`, `database`, …
    #[serde(default)]
    pub checks: Map<String, Value>,
    /// Members that this client does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Health {
    /// Whether the server has a feature.
    pub fn has(&self, feature: &str) -> bool {
        self.protocol.features.iter().any(|known| known == feature)
    }

    /// Why this client cannot talk to the server, in words; `None` when it can.
    pub fn incompatibility(&self) -> Option<String> {
        if self.service != "nylorun-runtime" {
            return Some(format!("it calls itself `{}`, not `nylorun-runtime`", self.service));
        }
        let Protocol { min, max, .. } = &self.protocol;
        if !(*min..=*max).contains(&PROTOCOL) {
            return Some(format!("it speaks protocol {min} to {max}, this client speaks {PROTOCOL}"));
        }
        let missing: Vec<&str> = REQUIRED_FEATURES.into_iter().filter(|name| !self.has(name)).collect();
        (!missing.is_empty()).then(|| format!("it lacks {}", missing.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn health(min: u32, max: u32, features: &[&str]) -> Health {
        let body = json!({"status": "ok", "service": "nylorun-runtime", "version": "0.1.0", "hostId": "host_x",
            "pid": 1,
            "protocol": {"min": min, "max": max, "features": features}});
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn version_and_features_decide() {
        assert_eq!(health(4, 10, &REQUIRED_FEATURES).incompatibility(), None);
        assert_eq!(
            health(11, 12, &REQUIRED_FEATURES).incompatibility().as_deref(),
            Some("it speaks protocol 11 to 12, this client speaks 10")
        );
        assert_eq!(
            health(4, 10, &["artifacts", "management-api"]).incompatibility().as_deref(),
            Some("it lacks studio-principal, resource-server")
        );
    }
}
