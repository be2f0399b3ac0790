//! Where sessions may run (environments 6).

use std::fmt;

use crate::model::words;

/// The harness that runs turns; a placement names it so.
pub const HARNESS: &str = "nylorun";

words! {
    /// Where a session's turns run.
    Host {
        /// In the runtime, or in a harness service.
        HarnessContainer = "harness-container",
        /// In the pod that the session is attached to.
        Sandbox = "sandbox",
    }
}

/// The hosts that each harness may run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Harnesses with hosts of their own; the last of a name counts. No list is empty.
    pub(super) named: Vec<(String, Vec<Host>)>,
    /// The hosts of all others; never empty.
    pub(super) rest: Vec<Host>,
}

impl Default for Placement {
    fn default() -> Self {
        Self { named: Vec::new(), rest: Host::ALL.to_vec() }
    }
}

/// The tenant's placement does not allow what a session needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementRefused {
    /// The harness.
    pub harness: String,
    /// The host that is needed.
    pub host: Host,
    /// The hosts that are allowed.
    pub allowed: Vec<Host>,
}

impl Placement {
    /// Whether `harness` may run on `host`.
    ///
    /// # Errors
    /// It may not; the hosts on which it may.
    pub fn admit(&self, harness: &str, host: Host) -> Result<(), PlacementRefused> {
        let named = self.named.iter().rfind(|(name, _)| name == harness);
        let allowed = named.map_or(&self.rest, |(_, hosts)| hosts);
        if allowed.contains(&host) {
            return Ok(());
        }
        Err(PlacementRefused { harness: harness.to_owned(), host, allowed: allowed.clone() })
    }

    /// The harnesses that are named and then the rest, `*`, with their hosts.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &[Host])> {
        let named = self.named.iter().map(|(name, hosts)| (name.as_str(), hosts.as_slice()));
        named.chain([("*", self.rest.as_slice())])
    }
}

impl fmt::Display for PlacementRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allowed: Vec<_> = self.allowed.iter().map(|host| host.as_str()).collect();
        write!(
            f,
            "this session would run on {}, and the tenant's placement allows {} {} only: add {} to placement in the \
             sandbox settings",
            self.host.as_str(),
            self.harness,
            allowed.join(", "),
            self.host.as_str()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{HARNESS, Host, Placement};

    #[test]
    fn a_name_wins_over_the_rest_and_everything_is_allowed_by_default() {
        let everywhere = Placement::default();
        assert_eq!(everywhere.entries().collect::<Vec<_>>(), [("*", Host::ALL)]);
        let named = |hosts: &[Host]| vec![(HARNESS.to_owned(), hosts.to_vec())];
        let pods_only = Placement { named: named(&[Host::Sandbox]), ..Placement::default() };
        let no_pods = Placement { named: named(&[Host::HarnessContainer]), rest: vec![Host::Sandbox] };
        for (placement, harness, host, admitted) in [
            (&everywhere, HARNESS, Host::HarnessContainer, true),
            (&everywhere, "other", Host::Sandbox, true),
            (&pods_only, HARNESS, Host::HarnessContainer, false),
            (&pods_only, HARNESS, Host::Sandbox, true),
            (&pods_only, "other", Host::HarnessContainer, true),
            (&no_pods, HARNESS, Host::HarnessContainer, true),
            (&no_pods, "other", Host::HarnessContainer, false),
        ] {
            assert_eq!(placement.admit(harness, host).is_ok(), admitted, "{placement:?} {harness} {host:?}");
        }
        let refused = pods_only.admit(HARNESS, Host::HarnessContainer).unwrap_err();
        assert_eq!(refused.allowed, [Host::Sandbox]);
        assert_eq!(
            refused.to_string(),
            "this session would run on harness-container, and the tenant's placement allows nylorun sandbox only: add \
             harness-container to placement in the sandbox settings"
        );
    }
}
