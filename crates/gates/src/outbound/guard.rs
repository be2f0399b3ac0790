//! The policy, the check of a URL, and the resolver that hands on only addresses that were checked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use nylorun_ports::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use super::address::{Reach, reach};

/// Whether loopback and private addresses may be called. Link-local and metadata addresses never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateTargets {
    /// They may.
    Allow,
    /// They may not.
    Refuse,
}

impl PrivateTargets {
    /// The policy of a host: `setting` is `NYLORUN_ENDPOINT_PRIVATE`; without it, a server that is itself bound to
    /// loopback allows private targets and any other refuses them (decisions, Network). An unknown word is an
    /// error that names the setting.
    pub fn of_host(setting: Option<&str>, listen: IpAddr) -> Result<Self, String> {
        match setting {
            Some("allow") => Ok(Self::Allow),
            Some("refuse") => Ok(Self::Refuse),
            Some(other) => Err(format!("NYLORUN_ENDPOINT_PRIVATE must be allow or refuse, not {other:?}")),
            None if listen.is_loopback() => Ok(Self::Allow),
            None => Ok(Self::Refuse),
        }
    }

    fn admits(self, address: IpAddr) -> bool {
        match (reach(address), self) {
            (Reach::Public, _) | (Reach::Private, Self::Allow) => true,
            (Reach::Private, Self::Refuse) | (Reach::Never, _) => false,
        }
    }

    /// Checks a URL as far as it can be without asking the name system: names are checked when they are resolved.
    pub(super) fn check(self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        let address = match url.host() {
            None => return Err(Refusal::NoHost),
            Some(Host::Domain(name)) if is_metadata_name(name) => return Err(Refusal::address(name)),
            Some(Host::Domain(_)) => return Ok(()),
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
        };
        if self.admits(address) { Ok(()) } else { Err(Refusal::address(&address.to_string())) }
    }
}

/// Names of clouds' metadata services, which some networks resolve to addresses of their own.
const METADATA_NAMES: &[&str] =
    &["metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"];

fn is_metadata_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    METADATA_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Why a URL is not called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Neither `http` nor `https`.
    #[error("only http and https URLs may be called")]
    Scheme,
    /// A user name or password stands in the URL, where logs and errors would show it.
    #[error("a URL must not hold a user name or password")]
    UserInfo,
    /// No host.
    #[error("the URL has no host")]
    NoHost,
    /// The host's policy forbids the address.
    #[error(
        "{host} is, or resolves to, an address that this server does not call: private ones only with \
         NYLORUN_ENDPOINT_PRIVATE=allow, link-local ones never"
    )]
    Address {
        /// The name or address.
        host: String,
    },
}

impl Refusal {
    fn address(host: &str) -> Self {
        Self::Address { host: host.to_owned() }
    }
}

/// Finds the addresses of a name; the ports of its answers do not matter.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, std::io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// The name system of the host.
pub(super) fn host_lookup() -> Lookup {
    Arc::new(|name| Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) }))
}

/// Resolves names and refuses a name when any of its addresses is refused. The connection is made to the addresses that
/// were checked: there is no second look-up that could answer otherwise.
#[derive(Clone)]
pub(super) struct GuardedResolver {
    pub(super) policy: PrivateTargets,
    pub(super) lookup: Lookup,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { policy, lookup } = self.clone();
        Box::pin(async move {
            let found = lookup(name.as_str().to_owned()).await?;
            if found.iter().any(|address| !policy.admits(address.ip())) {
                return Err(Refusal::address(name.as_str()).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: PrivateTargets, url: &str) -> Result<(), Refusal> {
        policy.check(&Url::parse(url).unwrap())
    }

    #[test]
    fn literals_are_checked_in_every_spelling() {
        let loopback = ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "017700000001", "[::1]", "[::ffff:127.0.0.1]"];
        for host in loopback {
            let url = format!("http://{host}:8080/v1");
            assert_eq!(check(PrivateTargets::Allow, &url), Ok(()), "{host}");
            assert!(matches!(check(PrivateTargets::Refuse, &url), Err(Refusal::Address { .. })), "{host}");
        }
        let never = [
            "169.254.169.254",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "metadata.google.internal",
            "METADATA.google.internal.",
        ];
        for host in never {
            let url = format!("http://{host}/");
            assert!(matches!(check(PrivateTargets::Allow, &url), Err(Refusal::Address { .. })), "{host}");
        }
        assert_eq!(check(PrivateTargets::Refuse, "https://api.example.com/v1"), Ok(()));
    }

    #[test]
    fn other_schemes_and_user_info_are_refused() {
        assert_eq!(check(PrivateTargets::Allow, "ftp://example.com/"), Err(Refusal::Scheme));
        assert_eq!(check(PrivateTargets::Allow, "file:///etc/passwd"), Err(Refusal::Scheme));
        assert_eq!(check(PrivateTargets::Allow, "http://user@example.com/"), Err(Refusal::UserInfo));
        assert_eq!(check(PrivateTargets::Allow, "http://:pw@example.com/"), Err(Refusal::UserInfo));
    }

    #[test]
    fn the_bind_decides_unless_the_setting_does() {
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        let any: IpAddr = "0.0.0.0".parse().unwrap();
        assert_eq!(PrivateTargets::of_host(None, local), Ok(PrivateTargets::Allow));
        assert_eq!(PrivateTargets::of_host(None, any), Ok(PrivateTargets::Refuse));
        assert_eq!(PrivateTargets::of_host(Some("allow"), any), Ok(PrivateTargets::Allow));
        assert_eq!(PrivateTargets::of_host(Some("refuse"), local), Ok(PrivateTargets::Refuse));
        assert!(PrivateTargets::of_host(Some("yes"), local).is_err());
    }
}
