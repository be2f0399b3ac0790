//! The server's settings: arguments and environment, read once, here only (engine f.2; overview, Commands and files).

mod values;
mod variables;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use nylorun_domain::segment::YieldAfter;
use nylorun_gates::outbound::PrivateTargets;
use nylorun_store::db::DatabaseUrl;
use nylorun_workspace::{Preference, Quota};

use crate::cli::{Failure, ServeArgs};
pub(crate) use values::LogFormat;
pub(crate) use variables::{Idle, idle_of_process, unusable};
use variables::{OF_PROCESS, Variables};

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
    /// Whether calls of models and tools may go to loopback and private addresses.
    pub(crate) private_targets: PrivateTargets,
    /// The backend of workspaces.
    pub(crate) sandbox: Preference,
    /// What each workspace may hold on disk.
    pub(crate) workspace_quota: Quota,
    /// How many workspaces run at once.
    pub(crate) workspaces_live: NonZeroU32,
    /// A new tenant's id and name.
    pub(crate) tenant_id: Option<String>,
    pub(crate) tenant_name: Option<String>,
    /// A file with a management key, registered as `bootstrap` at each start.
    pub(crate) management_key_file: Option<PathBuf>,
    /// The operator's additions to the model catalogue.
    pub(crate) models_file: Option<PathBuf>,
    /// The issuers whose tokens are taken.
    pub(crate) identity_file: Option<PathBuf>,
    /// What clients call the server that stands before this one, without a slash at its end.
    pub(crate) public_url: Option<String>,
    /// How the harness of this process is reached.
    pub(crate) harness: HarnessReached,
    /// How long running commands get at a stop.
    pub(crate) stop_grace: Duration,
    /// After how much a segment of a turn yields.
    pub(crate) yield_after: YieldAfter,
    /// How long a client may take nothing of what it is sent.
    pub(crate) stall_limit: Duration,
    /// Which lines the log shows.
    pub(crate) log_filter: String,
    /// How its lines look.
    pub(crate) log_format: LogFormat,
}

/// How the harness of this process is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HarnessReached {
    /// Directly.
    ByReference,
    /// By the Harness API, each frame printed, checked and read: for tests.
    ThroughJson,
}

impl Config {
    /// The settings of these arguments and of this process's environment.
    ///
    /// # Errors
    /// An argument or a variable cannot be used; exit code 2.
    pub(crate) fn of_process(args: &ServeArgs) -> Result<Self, Failure> {
        Self::read(args, &OF_PROCESS)
    }

    fn read(args: &ServeArgs, env: &Variables<'_>) -> Result<Self, Failure> {
        if !args.service.is_empty() {
            return Err(Failure::usage(format!("--service {} is not available yet", args.service.join(",")))
                .remedy("leave --service out: everything runs in one process"));
        }
        let listen = listen_address(args.listen, env)?;
        let private = env.text("NYLORUN_ENDPOINT_PRIVATE")?;
        values::endpoint_http(env.text("NYLORUN_ENDPOINT_HTTP")?)?;
        Ok(Self {
            home: args.home.directory()?,
            listen,
            allowed_hosts: allowed_hosts(listen, env)?,
            database: database(env)?,
            private_targets: PrivateTargets::of_host(private.as_deref(), listen.ip()).map_err(Failure::usage)?,
            sandbox: values::sandbox(env.text("NYLORUN_SANDBOX")?)?,
            workspace_quota: values::workspace_quota(
                env.text("NYLORUN_WORKSPACE_QUOTA")?,
                env.text("NYLORUN_WORKSPACE_FILES")?,
            )?,
            workspaces_live: values::workspaces_live(env.text("NYLORUN_WORKSPACES_LIVE")?)?,
            tenant_id: env.text("NYLORUN_TENANT_ID")?.map(values::tenant_id).transpose()?,
            tenant_name: env.text("NYLORUN_TENANT_NAME")?.map(values::tenant_name).transpose()?,
            management_key_file: env.text("NYLORUN_MANAGEMENT_KEY_FILE")?.map(PathBuf::from),
            models_file: env.text("NYLORUN_MODELS_FILE")?.map(PathBuf::from),
            identity_file: env.text("NYLORUN_IDENTITY_FILE")?.map(PathBuf::from),
            public_url: env.text("NYLORUN_PUBLIC_URL")?.map(|url| values::public_url(&url)).transpose()?,
            harness: values::harness(env.text("NYLORUN_HARNESS")?)?,
            stop_grace: values::stop_grace(env.text("NYLORUN_STOP_GRACE")?)?,
            yield_after: values::yield_after(env.text("NYLORUN_YIELD_STEPS")?, env.text("NYLORUN_YIELD_AFTER")?)?,
            stall_limit: values::stall_limit(env.text("NYLORUN_STALL_LIMIT")?)?,
            log_filter: values::log_filter(env.text("NYLORUN_LOG")?)?,
            log_format: values::log_format(env.text("NYLORUN_LOG_FORMAT")?)?,
        })
    }
}

fn listen_address(arg: Option<SocketAddr>, env: &Variables<'_>) -> Result<SocketAddr, Failure> {
    // A variable that cannot be used is said even where the argument wins.
    let host = values::listen_host(env.text("NYLORUN_LISTEN_HOST")?)?;
    let port = values::listen_port(env.text("NYLORUN_LISTEN_PORT")?)?;
    Ok(arg.unwrap_or(SocketAddr::new(host, port)))
}

fn allowed_hosts(listen: SocketAddr, env: &Variables<'_>) -> Result<Vec<String>, Failure> {
    match env.text("NYLORUN_ALLOWED_HOSTS")? {
        Some(text) => values::allowed_hosts(&text),
        None if listen.ip().is_loopback() => Ok(Vec::new()),
        None => Err(Failure::usage(format!("{listen} is not loopback, and NYLORUN_ALLOWED_HOSTS is not set"))
            .remedy("set it to the host:port names that clients use, or listen on 127.0.0.1")),
    }
}

/// The database that `NYLORUN_DATABASE_URL` names in this process's environment; `None` for the home's SQLite file.
///
/// # Errors
/// The URL cannot be used; exit code 2.
pub(crate) fn database_of_process() -> Result<Option<DatabaseUrl>, Failure> {
    database(&OF_PROCESS)
}

fn database(env: &Variables<'_>) -> Result<Option<DatabaseUrl>, Failure> {
    env.text("NYLORUN_DATABASE_URL")?.map(|url| values::database_url(&url)).transpose()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Config, Variables};
    use crate::cli::{Failure, HomeArgs, ServeArgs};

    fn read(listen: Option<&str>, env: &[(&str, &str)]) -> Result<Config, Failure> {
        let home = HomeArgs { home: Some(PathBuf::from("/h")) };
        let listen = listen.map(|text| text.parse().unwrap());
        let args = ServeArgs { home, listen, ..ServeArgs::default() };
        let get = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into());
        Config::read(&args, &Variables::of(&get))
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
        assert_eq!(refused.to_string(), "0.0.0.0:80 is not loopback, and NYLORUN_ALLOWED_HOSTS is not set");
        let config = read(Some("0.0.0.0:80"), &[("NYLORUN_ALLOWED_HOSTS", "A.example:80, b:81")]).unwrap();
        assert_eq!(config.allowed_hosts, ["a.example:80", "b:81"]);
    }

    #[test]
    fn limits_of_workspaces_have_defaults_and_can_be_set() {
        let limits = |env: &[(&str, &str)]| {
            let config = read(None, env).unwrap();
            (config.workspace_quota.bytes, config.workspace_quota.files, config.workspaces_live.get())
        };
        assert_eq!(limits(&[]), (1 << 30, 100_000, 64));
        let set =
            [("NYLORUN_WORKSPACE_QUOTA", "20MiB"), ("NYLORUN_WORKSPACE_FILES", "50"), ("NYLORUN_WORKSPACES_LIVE", "4")];
        assert_eq!(limits(&set), (20 << 20, 50, 4));
    }

    #[test]
    fn a_value_that_cannot_be_used_is_wrong_usage_and_named() {
        for (name, value) in [
            ("NYLORUN_LISTEN_HOST", "localhost"),
            ("NYLORUN_LISTEN_PORT", "70000"),
            ("NYLORUN_ALLOWED_HOSTS", "http://x"),
            ("NYLORUN_ENDPOINT_PRIVATE", "maybe"),
            ("NYLORUN_ENDPOINT_HTTP", "refuse"),
            ("NYLORUN_SANDBOX", "docker"),
            ("NYLORUN_TENANT_ID", "tn_short"),
            ("NYLORUN_TENANT_NAME", "a\u{7}b"),
            ("NYLORUN_HARNESS", "remote"),
            ("NYLORUN_PUBLIC_URL", "agents.example.com"),
            ("NYLORUN_PUBLIC_URL", "https://a.example/?x"),
            ("NYLORUN_STOP_GRACE", "soon"),
            ("NYLORUN_YIELD_STEPS", "0"),
            ("NYLORUN_YIELD_STEPS", "501"),
            ("NYLORUN_YIELD_AFTER", "20"),
            ("NYLORUN_STALL_LIMIT", "never"),
            ("NYLORUN_LOG", "loud"),
            ("NYLORUN_LOG_FORMAT", "xml"),
            ("NYLORUN_WORKSPACE_QUOTA", "1GB"),
            ("NYLORUN_WORKSPACE_FILES", "0"),
            ("NYLORUN_WORKSPACES_LIVE", "-1"),
        ] {
            // With the argument that wins, too: nobody should believe in a value that is not read.
            for listen in [None, Some("127.0.0.1:0")] {
                let refused = read(listen, &[(name, value)]).unwrap_err();
                let said = refused.to_string();
                assert!(said.contains(name) && said.contains(&format!("{value:?}")), "{said}");
                assert_eq!(refused.exit.number(), 2, "{said}");
            }
        }
    }

    #[test]
    fn the_password_of_a_database_is_not_repeated() {
        let refused = read(None, &[("NYLORUN_DATABASE_URL", "mysql://user:hunter2@host/x")]).unwrap_err();
        assert!(refused.to_string().starts_with("NYLORUN_DATABASE_URL cannot be used"), "{refused}");
        assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
    }
}
