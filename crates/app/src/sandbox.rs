//! The tenant's settings for workspaces (api 3.6; sandbox-and-definitions a8).

use nylorun_domain::check::Path;
use nylorun_domain::json::{Json, Value};
use nylorun_domain::sandbox::{HARNESS, Host, PlacementRefused, SandboxConfig};
use nylorun_ports::backends::{ProbeReport, Probed};
use nylorun_wire::code::Code;
use nylorun_wire::sandbox::{ProbeState, ProbeView, SandboxView};

use crate::{App, Error};

/// The settings, a JSON object as somebody sent it.
pub(crate) const SANDBOX_CONFIG: &str = "sandbox.config";

impl App {
    /// The settings that hold, and the backends that there are. Probes these, if nothing has before.
    pub async fn sandbox_view(&self) -> Result<SandboxView, Error> {
        Ok(self.with_backends(self.sandbox_config().await?).await)
    }

    /// Replaces all settings. They hold for sessions that are opened from now on.
    pub async fn set_sandbox(&self, settings: Json) -> Result<SandboxView, Error> {
        let config = SandboxConfig::read(&settings, &Path::ROOT).map_err(Error::Invalid)?;
        self.store().setting_put(SANDBOX_CONFIG, settings.as_str()).await?;
        tracing::info!(settings = settings.as_str(), "sandbox settings set");
        Ok(self.with_backends(config).await)
    }

    /// The settings that hold.
    pub(crate) async fn sandbox_config(&self) -> Result<SandboxConfig, Error> {
        match self.store().setting_get(SANDBOX_CONFIG).await? {
            None => Ok(SandboxConfig::default()),
            Some(text) => SandboxConfig::read(&Json::from_trusted(text), &Path::ROOT)
                .map_err(|problems| Error::Internal { message: format!("stored sandbox settings: {problems}") }),
        }
    }

    async fn with_backends(&self, config: SandboxConfig) -> SandboxView {
        let report = self.parts().backends.backends().await;
        SandboxView {
            preference: report.preference,
            backend: report.backend.map(str::to_owned),
            isolation: report.isolation.map(str::to_owned),
            reason: report.reason,
            probes: report.probes.into_iter().map(probe_view).collect(),
            config,
        }
    }
}

/// Refuses a session where the tenant's placement does not let it run. There are no pods yet, so every session runs in
/// the runtime's own harness (environments 6).
pub(crate) fn check_placement(config: &SandboxConfig) -> Result<(), Error> {
    config.placement.admit(HARNESS, Host::HarnessContainer).map_err(placement_refused)
}

fn placement_refused(refused: PlacementRefused) -> Error {
    let message = refused.to_string();
    let PlacementRefused { harness, host, allowed } = refused;
    let allowed = allowed.iter().map(|host| Value::from(host.as_str())).collect();
    let details =
        [("harness", Value::from(harness)), ("host", Value::from(host.as_str())), ("allowed", Value::Array(allowed))];
    let details = Some(Value::object(details));
    Error::Conflict { code: Code::PlacementRefused, message, active_turn: None, details }
}

fn probe_view(probe: ProbeReport) -> ProbeView {
    let state = match probe.probed {
        Probed::Available { version, partial } => {
            let reason = (!partial.is_empty()).then(|| format!("not enforced here: {}", partial.join("; ")));
            ProbeState::Available { version, reason }
        }
        Probed::Unavailable { reason } => ProbeState::Unavailable { reason },
    };
    ProbeView { name: probe.name.to_owned(), isolation: probe.isolation.to_owned(), state }
}
