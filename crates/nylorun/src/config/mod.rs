//! The server's settings: arguments and environment, read once, here only (engine f.2; overview, Commands and files).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use nylorun_gates::outbound::PrivateTargets;
use nylorun_store::db::DatabaseUrl;
use nylorun_workspace::Preference;

use crate::cli::{Failure, ServeArgs};

/// Everything that a server is started with.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The home directory.
    pub(crate) home: PathBuf,
    /// Where it listens; port 0 picks one.
    pub(crate) listen: SocketAddr,
    /// Further values of `Host` that it answers for, with their port.
    pub(crate) allowed_hosts: Vec<String>,
    /// The database; `None` for the SQLite file in the home directory.
    pub(crate) database: Option<DatabaseUrl>,
    /// Whether model calls may go to loopback and private addresses.
    pub(crate) private_targets: PrivateTargets,
    /// The backend of workspaces.
    pub(crate) sandbox: Preference,
    /// A new tenant's id and name.
    pub(crate) tenant_id: Option<String>,
    pub(crate) tenant_name: Option<String>,
    /// A file with a management key, registered as `bootstrap` at each start.
    pub(crate) management_key_file: Option<PathBuf>,
    /// The operator's additions to the model catalogue.
    pub(crate) models_file: Option<PathBuf>,
    /// How long running commands get at a stop.
    pub(crate) stop_grace: Duration,
}

const DEFAULT_PORT: u16 = 4000;

impl Config {
    /// The settings of these arguments and of this process's environment.
    pub(crate) fn of_process(args: &ServeArgs) -> Result<Self, Failure> {
        Self::read(args, &|name| std::env::var(name).ok())
    }

    fn read(args: &ServeArgs, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        if !args.service.is_empty() {
            return Err(Failure::usage(format!("--service {} is not available yet", args.service.join(",")))
                .remedy("leave --service out: everything runs in one process"));
        }
        let listen = listen_address(args.listen, &set)?;
        let hosts = set("NYLORUN_ALLOWED_HOSTS");
        if !listen.ip().is_loopback() && hosts.is_none() {
            return Err(Failure::usage(format!("{listen} is not loopback, and NYLORUN_ALLOWED_HOSTS is not set"))
                .remedy("set it to the host:port names that clients use, or listen on 127.0.0.1"));
        }
        let hosts = hosts.unwrap_or_default();
        let allowed_hosts = hosts.split(',').map(str::trim).filter(|host| !host.is_empty()).map(str::to_lowercase);
        let private = set("NYLORUN_ENDPOINT_PRIVATE");
        Ok(Self {
            home: args.home.directory()?,
            listen,
            allowed_hosts: allowed_hosts.collect(),
            database: set("NYLORUN_DATABASE_URL").map(|url| database_url(&url)).transpose()?,
            private_targets: PrivateTargets::of_host(private.as_deref(), listen.ip()).map_err(Failure::usage)?,
            sandbox: Preference::parse(&set("NYLORUN_SANDBOX").unwrap_or_default()),
            tenant_id: set("NYLORUN_TENANT_ID").map(tenant_id).transpose()?,
            tenant_name: set("NYLORUN_TENANT_NAME"),
            management_key_file: set("NYLORUN_MANAGEMENT_KEY_FILE").map(PathBuf::from),
            models_file: set("NYLORUN_MODELS_FILE").map(PathBuf::from),
            stop_grace: stop_grace(set("NYLORUN_STOP_GRACE").as_deref())?,
        })
    }
}

fn listen_address(arg: Option<SocketAddr>, set: &dyn Fn(&str) -> Option<String>) -> Result<SocketAddr, Failure> {
    if let Some(address) = arg {
        return Ok(address);
    }
    let host = match set("NYLORUN_LISTEN_HOST") {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(text) => {
            let host: Result<IpAddr, _> = text.parse();
            host.map_err(|_| Failure::usage(format!("NYLORUN_LISTEN_HOST {text:?} is no IP address")))?
        }
    };
    let port = match set("NYLORUN_LISTEN_PORT") {
        None => DEFAULT_PORT,
        Some(text) => {
            let port: Result<u16, _> = text.parse();
            port.map_err(|_| Failure::usage(format!("NYLORUN_LISTEN_PORT {text:?} is no port")))?
        }
    };
    Ok(SocketAddr::new(host, port))
}

pub(crate) fn database_url(url: &str) -> Result<DatabaseUrl, Failure> {
    url.parse().map_err(|error| Failure::usage(format!("NYLORUN_DATABASE_URL: {error}")))
}

fn tenant_id(id: String) -> Result<String, Failure> {
    let is_crockford = |c: char| c.is_ascii_digit() || c.is_ascii_lowercase() && !"ilou".contains(c);
    let is_valid = id.strip_prefix("tn_").is_some_and(|rest| rest.len() == 26 && rest.chars().all(is_crockford));
    if is_valid {
        return Ok(id);
    }
    Err(Failure::usage(format!("NYLORUN_TENANT_ID {id:?} is no tenant id"))
        .remedy("use tn_ and 26 of 0-9 and a-z without i, l, o and u, or leave it out"))
}

fn stop_grace(text: Option<&str>) -> Result<Duration, Failure> {
    let Some(text) = text else { return Ok(Duration::from_secs(30)) };
    let ms = nylorun_domain::grammar::parse_duration_ms(text)
        .map_err(|problem| Failure::usage(format!("NYLORUN_STOP_GRACE {text:?}: {problem}")))?;
    Ok(Duration::from_millis(ms.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::Config;
    use crate::cli::{HomeArgs, ServeArgs};

    fn read(listen: Option<&str>, env: &[(&str, &str)]) -> Result<Config, String> {
        let home = HomeArgs { home: Some(PathBuf::from("/h")) };
        let args = ServeArgs { home, listen: listen.map(|text| text.parse().unwrap()), service: Vec::new() };
        let get = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Config::read(&args, &get).map_err(|failure| failure.to_string())
    }

    #[test]
    fn defaults_to_loopback_port_4000() {
        let config = read(None, &[("NYLORUN_LISTEN_PORT", "")]).unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:4000");
        assert_eq!(config.home, PathBuf::from("/h"));
        assert!(config.database.is_none());
    }

    #[test]
    fn refuses_to_listen_elsewhere_without_allowed_hosts() {
        let refused = read(Some("0.0.0.0:80"), &[]).unwrap_err();
        assert_eq!(refused, "0.0.0.0:80 is not loopback, and NYLORUN_ALLOWED_HOSTS is not set");
        let config = read(Some("0.0.0.0:80"), &[("NYLORUN_ALLOWED_HOSTS", "A.example:80, b:81")]).unwrap();
        assert_eq!(config.allowed_hosts, ["a.example:80", "b:81"]);
    }

    #[test]
    fn every_bad_value_is_named() {
        for (name, value) in [
            ("NYLORUN_LISTEN_HOST", "localhost"),
            ("NYLORUN_LISTEN_PORT", "70000"),
            ("NYLORUN_DATABASE_URL", "mysql://x"),
            ("NYLORUN_ENDPOINT_PRIVATE", "maybe"),
            ("NYLORUN_TENANT_ID", "tn_short"),
            ("NYLORUN_STOP_GRACE", "soon"),
        ] {
            let refused = read(None, &[(name, value)]).unwrap_err();
            assert!(refused.contains(name), "{name}: {refused}");
        }
    }
}
