//! Which backend holds new workspaces (sandbox-and-definitions a6, selection).

use std::sync::Arc;

use nylorun_ports::backends::{Backend, BackendReport, ProbeReport, Probed};
use tokio::sync::OnceCell;

/// The backends that `NYLORUN_SANDBOX` may name, strongest last.
const NAMES: [&str; 4] = ["virtual", "namespace", "container", "microvm"];

/// Which backend the operator wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preference {
    /// The first that works.
    Auto,
    /// This one or none: an explicit preference never falls back to another.
    Named(&'static str),
    /// A name that no backend has: none.
    Unknown(String),
}

impl Preference {
    /// Reads `NYLORUN_SANDBOX`: trimmed, in lower case; empty is `auto`.
    pub fn parse(text: &str) -> Self {
        let name = text.trim().to_lowercase();
        if name.is_empty() || name == "auto" {
            return Self::Auto;
        }
        match NAMES.iter().find(|known| **known == name) {
            Some(known) => Self::Named(known),
            None => Self::Unknown(name),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Auto => "auto",
            Self::Named(name) => name,
            Self::Unknown(name) => name,
        }
    }
}

/// The backends of this build, probed once, on first use; the choice holds for the life of the process.
pub(super) struct Backends {
    preference: Preference,
    all: Vec<Arc<dyn Backend>>,
    probed: OnceCell<Vec<Probed>>,
}

impl Backends {
    pub(super) fn new(preference: Preference, all: Vec<Arc<dyn Backend>>) -> Self {
        Self { preference, all, probed: OnceCell::new() }
    }

    /// Every backend of this build, usable or not.
    pub(super) fn all(&self) -> &[Arc<dyn Backend>] {
        &self.all
    }

    /// The backend for a new workspace, or why there is none.
    pub(super) async fn chosen(&self) -> Result<Arc<dyn Backend>, String> {
        match &self.preference {
            Preference::Named(name) => self.usable(name).await,
            Preference::Unknown(name) => {
                Err(format!("no backend is named {name:?}; known are auto, {}", NAMES.join(", ")))
            }
            Preference::Auto => {
                let probed = self.probed().await;
                let first = self.all.iter().zip(probed).find(|(_, probed)| matches!(probed, Probed::Available { .. }));
                first.map(|(backend, _)| Arc::clone(backend)).ok_or_else(|| "no backend works here".to_owned())
            }
        }
    }

    /// The backend of this name if it works here, or why not.
    pub(super) async fn usable(&self, name: &str) -> Result<Arc<dyn Backend>, String> {
        let Some(at) = self.all.iter().position(|backend| backend.name() == name) else {
            return Err(format!("this build has no backend {name}"));
        };
        match &self.probed().await[at] {
            Probed::Available { .. } => Ok(Arc::clone(&self.all[at])),
            Probed::Unavailable { reason } => Err(format!("the backend {name} does not work here: {reason}")),
        }
    }

    pub(super) async fn report(&self) -> BackendReport {
        let chosen = self.chosen().await;
        let probes = self.all.iter().zip(self.probed().await).map(|(backend, probed)| ProbeReport {
            name: backend.name(),
            isolation: backend.isolation(),
            probed: probed.clone(),
        });
        BackendReport {
            preference: self.preference.as_str().to_owned(),
            backend: chosen.as_ref().ok().map(|backend| backend.name()),
            isolation: chosen.as_ref().ok().map(|backend| backend.isolation()),
            probes: probes.collect(),
            reason: match chosen {
                Err(reason) => reason,
                Ok(_) if self.preference == Preference::Auto => "the first that works".to_owned(),
                Ok(_) => "asked for".to_owned(),
            },
        }
    }

    async fn probed(&self) -> &[Probed] {
        let probe_all = || async {
            let mut probed = Vec::with_capacity(self.all.len());
            for backend in &self.all {
                probed.push(backend.probe().await);
            }
            probed
        };
        self.probed.get_or_init(probe_all).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preference_is_trimmed_and_lower_cased() {
        for (text, expected) in [
            ("", Preference::Auto),
            ("  Auto ", Preference::Auto),
            (" VIRTUAL\n", Preference::Named("virtual")),
            ("microvm", Preference::Named("microvm")),
            ("docker", Preference::Unknown("docker".to_owned())),
        ] {
            assert_eq!(Preference::parse(text), expected, "{text:?}");
        }
    }
}
