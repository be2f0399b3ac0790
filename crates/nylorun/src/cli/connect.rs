//! Which server a command talks to, and with which keys.

use std::path::PathBuf;

use clap::Args;
use nylorun_client::{Client, Error, Key, TenantClient};

use super::failure::Failure;
use super::home::{self, CredentialsFile, HomeArgs, HostFile};
use super::key_file;
use super::project::{Project, current_directory};

/// Where the server is. Without any of these: `NYLORUN_RUNTIME_URL`, else the project's `.nylorun/link.json`, else the
/// home directory.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which server")]
pub(crate) struct ConnectArgs {
    /// URL of the server [default: NYLORUN_RUNTIME_URL, else the project's .nylorun/link.json, else the server of the
    /// home directory]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// File with an application key, for agents and sessions [default: the value of NYLORUN_SERVER_KEY, or the home
    /// directory's key]
    #[arg(long, value_name = "FILE")]
    application_key_file: Option<PathBuf>,
    /// File with a management key, for the tenant's settings [default: the value of NYLORUN_MANAGEMENT_KEY, or the home
    /// directory's key]
    #[arg(long, value_name = "FILE")]
    management_key_file: Option<PathBuf>,
    #[command(flatten)]
    home: HomeArgs,
}

/// How an application key is given.
pub(super) const APPLICATION_KEY: &str = "set NYLORUN_SERVER_KEY, or pass --application-key-file FILE";
/// How a management key is given.
pub(super) const MANAGEMENT_KEY: &str = "set NYLORUN_MANAGEMENT_KEY, or pass --management-key-file FILE";

/// A server and the keys for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Connection {
    /// Its base URL.
    pub(crate) url: String,
    application_key: Option<String>,
    management_key: Option<String>,
    /// What told us of it, in words.
    pub(crate) origin: String,
}

/// What surrounds the process.
pub(crate) struct Surroundings<'a> {
    /// Reads an environment variable.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    /// The current directory.
    pub(crate) directory: PathBuf,
}

impl ConnectArgs {
    /// Finds the server.
    ///
    /// # Errors
    /// Nothing says where a server runs (exit code 3), or a file or argument is wrong.
    pub(crate) fn connection(&self) -> Result<Connection, Failure> {
        let directory = current_directory()?;
        self.connection_in(&Surroundings { env: &|name| std::env::var(name).ok(), directory })
    }

    /// The home directory that is meant, whether or not a server of it runs.
    ///
    /// # Errors
    /// As [`HomeArgs::directory`].
    pub(crate) fn home_directory(&self) -> Result<PathBuf, Failure> {
        self.home.directory()
    }

    fn connection_in(&self, around: &Surroundings<'_>) -> Result<Connection, Failure> {
        let set = |name: &str| (around.env)(name).filter(|value| !value.is_empty());
        let own = self.own_keys()?;
        let keys = Keys {
            application: own.application.clone().or_else(|| set("NYLORUN_SERVER_KEY")),
            management: own.management.clone().or_else(|| set("NYLORUN_MANAGEMENT_KEY")),
        };
        if let Some(url) = &self.url {
            return keys.with(url.clone(), "--url".to_owned());
        }
        if self.home.home.is_some() {
            return self.of_home(around, &own);
        }
        match (set("NYLORUN_RUNTIME_URL"), set("NYLORUN_SERVER_KEY")) {
            (Some(url), _) => return keys.with(url, "NYLORUN_RUNTIME_URL".to_owned()),
            // Whoever sets a key believes that it is used.
            (None, Some(_)) => {
                return Err(Failure::usage("NYLORUN_SERVER_KEY is set, and NYLORUN_RUNTIME_URL is not")
                    .remedy("set both or neither, or say where the server runs with --url or --home"));
            }
            (None, None) => {}
        }
        match Project::find(&around.directory)? {
            Some(project) => {
                let keys = own.or_of(project.credentials()?);
                Ok(keys.at(project.url().to_owned(), project.file().display().to_string()))
            }
            None => self.of_home(around, &own),
        }
    }

    /// Keys that the command line names: they win over those of the home directory or link, which keys of the
    /// environment do not, since those belong to `NYLORUN_RUNTIME_URL`.
    fn own_keys(&self) -> Result<Keys, Failure> {
        let read = |file: &Option<PathBuf>| file.as_deref().map(key_file::read).transpose();
        Ok(Keys { application: read(&self.application_key_file)?, management: read(&self.management_key_file)? })
    }

    fn of_home(&self, around: &Surroundings<'_>, own: &Keys) -> Result<Connection, Failure> {
        let directory = self.home.directory_in(around.env)?;
        let shown = directory.display();
        let Some(host): Option<HostFile> = home::read(&directory.join("host.json"))? else {
            let start = match &self.home.home {
                Some(_) => format!("`nylorun start --home {shown}`"),
                None => "`nylorun start`".to_owned(),
            };
            let failure = Failure::not_running(format!("no server has run with the home directory {shown}"))
                .remedy(format!("start one with {start}, or say where one runs with --url"));
            return Err(match &self.home.home {
                Some(_) => failure,
                None => failure.lines(vec![
                    "NYLORUN_RUNTIME_URL is not set".to_owned(),
                    format!("there is no .nylorun/link.json in {} or above it", around.directory.display()),
                ]),
            });
        };
        let credentials = home::read(&directory.join("host-credentials.json"))?;
        Ok(own.or_of(credentials).at(host.url, format!("the home directory {shown}")))
    }
}

struct Keys {
    application: Option<String>,
    management: Option<String>,
}

impl Keys {
    fn or_of(&self, file: Option<CredentialsFile>) -> Self {
        let (application, management) = file.map_or((None, None), |file| (file.application_key, file.management_key));
        Self {
            application: self.application.clone().or(application.map(|named| named.key)),
            management: self.management.clone().or(management.map(|named| named.key)),
        }
    }

    /// A URL that was given needs a key that was given.
    fn with(self, url: String, origin: String) -> Result<Connection, Failure> {
        if self.application.is_none() && self.management.is_none() {
            return Err(Failure::usage(format!("{origin} names a server, but no key for it"))
                .remedy(format!("{APPLICATION_KEY}; for the tenant's settings {MANAGEMENT_KEY}")));
        }
        Ok(self.at(url, origin))
    }

    fn at(self, url: String, origin: String) -> Connection {
        Connection { url, application_key: self.application, management_key: self.management, origin }
    }
}

impl Connection {
    /// A client of the Runtime API.
    ///
    /// # Errors
    /// There is no application key, or the URL is none.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let key = self.application_key.as_deref().ok_or_else(|| self.no_key("application", APPLICATION_KEY))?;
        self.client_with(self.key("application", key)?)
    }

    /// A client of the Management API.
    ///
    /// # Errors
    /// There is no management key, or the URL is none.
    pub(crate) fn tenant(&self) -> Result<TenantClient, Failure> {
        TenantClient::new(&self.url, self.management()?).map_err(|error| self.unusable(error))
    }

    /// A client for what any key may ask: how the server is.
    ///
    /// # Errors
    /// There is no key at all, or the URL is none.
    pub(crate) fn any_client(&self) -> Result<Client, Failure> {
        if self.application_key.is_some() {
            return self.client();
        }
        self.client_with(self.management()?)
    }

    fn client_with(&self, key: Key) -> Result<Client, Failure> {
        Client::new(&self.url, key).map_err(|error| self.unusable(error))
    }

    fn management(&self) -> Result<Key, Failure> {
        let key = self.management_key.as_deref().ok_or_else(|| self.no_key("management", MANAGEMENT_KEY))?;
        self.key("management", key)
    }

    /// The key's value is not repeated.
    fn key(&self, role: &str, text: &str) -> Result<Key, Failure> {
        let wrong = |error| Failure::usage(format!("the {role} key for {} cannot be used: {error}", self.url));
        Key::new(text).map_err(wrong)
    }

    /// An error of this server; when it does not answer, with what told us of it.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        match error {
            Error::Unreachable { .. } => {
                Failure::from(error).lines(vec![format!("its address comes from {}", self.origin)])
            }
            error => error.into(),
        }
    }

    /// A URL that cannot be used, with where it came from.
    fn unusable(&self, error: Error) -> Failure {
        match error {
            Error::InvalidUrl { .. } => Failure::usage(format!("{}: {error}", self.origin)),
            error => error.into(),
        }
    }

    fn no_key(&self, role: &str, remedy: &str) -> Failure {
        Failure::usage(format!("this needs a key of role {role}, and {} gives none", self.origin)).remedy(remedy)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Machine {
        root: tempfile::TempDir,
        env: Vec<(&'static str, String)>,
    }

    impl Machine {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let home = root.path().join("home").display().to_string();
            Self { root, env: vec![("HOME", home)] }
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn with_home(self) -> Self {
            let host = r#"{"format":1,"hostId":"host_1","tenantId":"tn_1","url":"http://127.0.0.1:4000",
                "host":"127.0.0.1","port":4000,"pid":1}"#;
            self.write("home/.nylorun/host.json", host);
            self.write("home/.nylorun/host-credentials.json", &credentials("a", "b"));
            self
        }

        fn with_link(self) -> Self {
            self.write("project/.nylorun/link.json", r#"{"url":"http://127.0.0.1:5000","more":1}"#);
            self.write("project/.nylorun/credentials.json", &credentials("c", "d"));
            self.write("project/src/deep/file", "");
            self
        }

        fn connect(&self, args: &ConnectArgs, directory: &str) -> Result<Connection, Failure> {
            let env = |name: &str| self.env.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
            args.connection_in(&Surroundings { env: &env, directory: self.root.path().join(directory) })
        }
    }

    /// A key that its first letter names.
    fn key(letter: &str) -> String {
        letter.repeat(64)
    }

    fn credentials(application: &str, management: &str) -> String {
        let (application, management) = (key(application), key(management));
        format!(
            r#"{{"format":1,"applicationKey":{{"id":"local","key":"{application}"}},
                "managementKey":{{"id":"m","key":"{management}"}}}}"#
        )
    }

    /// The URL, and the first letters of both keys.
    fn found(connection: &Connection) -> (&str, Option<&str>, Option<&str>) {
        (&connection.url, first(&connection.application_key), first(&connection.management_key))
    }

    fn first(key: &Option<String>) -> Option<&str> {
        key.as_deref().and_then(|key| key.get(..1))
    }

    #[test]
    fn arguments_then_environment_then_link_then_home() {
        let mut machine = Machine::new().with_home().with_link();
        let none = ConnectArgs::default();
        let connection = machine.connect(&none, "elsewhere").unwrap();
        assert_eq!(found(&connection), ("http://127.0.0.1:4000", Some("a"), Some("b")));
        let connection = machine.connect(&none, "project/src/deep").unwrap();
        assert_eq!(found(&connection), ("http://127.0.0.1:5000", Some("c"), Some("d")));
        machine.env.push(("NYLORUN_RUNTIME_URL", "http://env".into()));
        machine.env.push(("NYLORUN_SERVER_KEY", key("e")));
        let connection = machine.connect(&none, "project").unwrap();
        assert_eq!(found(&connection), ("http://env", Some("e"), None));
        machine.write("key", &format!("{}\n", key("f")));
        let file = Some(machine.root.path().join("key"));
        let args = ConnectArgs { url: Some("http://arg".into()), application_key_file: file, ..none };
        let connection = machine.connect(&args, "project").unwrap();
        assert_eq!(found(&connection), ("http://arg", Some("f"), None));
    }

    #[test]
    fn a_home_that_is_asked_for_wins_over_link_and_environment() {
        let mut machine = Machine::new().with_home().with_link();
        machine.env.push(("NYLORUN_RUNTIME_URL", "http://env".into()));
        machine.env.push(("NYLORUN_SERVER_KEY", key("e")));
        let home = HomeArgs { home: Some(machine.root.path().join("home/.nylorun")) };
        let connection = machine.connect(&ConnectArgs { home, ..ConnectArgs::default() }, "project").unwrap();
        assert_eq!(found(&connection), ("http://127.0.0.1:4000", Some("a"), Some("b")));
    }

    #[test]
    fn an_environment_without_a_key_is_wrong_usage() {
        let mut machine = Machine::new();
        machine.env.push(("NYLORUN_RUNTIME_URL", "http://env".into()));
        let failure = machine.connect(&ConnectArgs::default(), "x").unwrap_err();
        assert_eq!(failure.exit.number(), 2);
    }

    #[test]
    fn url_and_key_come_together_or_not_at_all() {
        let mut machine = Machine::new().with_home().with_link();
        machine.env.push(("NYLORUN_SERVER_KEY", key("e")));
        let failure = machine.connect(&ConnectArgs::default(), "project").unwrap_err();
        assert_eq!(failure.to_string(), "NYLORUN_SERVER_KEY is set, and NYLORUN_RUNTIME_URL is not");
        assert_eq!(failure.exit.number(), 2);
        // A server that the command line names has nothing to do with the environment.
        let home = HomeArgs { home: Some(machine.root.path().join("home/.nylorun")) };
        machine.connect(&ConnectArgs { home, ..ConnectArgs::default() }, "project").unwrap();
        // For the tenant's settings alone, the management key is enough.
        machine.env = vec![("NYLORUN_RUNTIME_URL", "http://env".into()), ("NYLORUN_MANAGEMENT_KEY", key("f"))];
        let connection = machine.connect(&ConnectArgs::default(), "project").unwrap();
        assert_eq!(found(&connection), ("http://env", None, Some("f")));
    }

    #[test]
    fn nothing_that_ran_is_exit_code_3() {
        let failure = Machine::new().connect(&ConnectArgs::default(), "x").unwrap_err();
        assert_eq!(failure.exit.number(), 3);
        assert!(failure.to_string().contains("home/.nylorun"), "{failure}");
        let said = format!("{failure:?}");
        assert!(said.contains("NYLORUN_RUNTIME_URL is not set") && said.contains("no .nylorun/link.json in"), "{said}");
    }

    #[test]
    fn a_damaged_file_is_said() {
        let machine = Machine::new();
        machine.write("home/.nylorun/host.json", "{");
        let failure = machine.connect(&ConnectArgs::default(), "x").unwrap_err();
        assert!(failure.to_string().contains("host.json is damaged"), "{failure}");
    }

    #[test]
    fn a_connection_without_the_key_says_which_is_missing() {
        let mut machine = Machine::new();
        machine.env.push(("NYLORUN_SERVER_KEY", key("e")));
        let args = ConnectArgs { url: Some("http://h".into()), ..ConnectArgs::default() };
        let connection = machine.connect(&args, "x").unwrap();
        let failure = connection.tenant().map(|_| ()).unwrap_err();
        assert_eq!(failure.to_string(), "this needs a key of role management, and --url gives none");
    }
}
