//! The home directory and the files in it that say where a server runs (overview, Commands and files).

use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::failure::Failure;

/// `--home`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HomeArgs {
    /// Home directory [default: NYLORUN_HOME, or ~/.nylorun]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

impl HomeArgs {
    /// The directory: the argument, or `NYLORUN_HOME`, or `~/.nylorun`.
    ///
    /// # Errors
    /// None of the three says where.
    pub(crate) fn directory(&self) -> Result<PathBuf, Failure> {
        self.directory_in(&|name| std::env::var(name).ok())
    }

    /// The same with another environment.
    pub(crate) fn directory_in(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, Failure> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let chosen = self.home.clone().or_else(|| set("NYLORUN_HOME").map(PathBuf::from));
        let chosen = chosen.or_else(|| Some(Path::new(&set("HOME")?).join(".nylorun")));
        chosen.ok_or_else(|| Failure::usage("no home directory: HOME is not set").remedy("pass --home DIR"))
    }
}

/// `host.json`, rewritten at each start of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostFile {
    /// 1.
    pub(crate) format: u32,
    /// The host's id.
    pub(crate) host_id: String,
    /// The tenant's id.
    pub(crate) tenant_id: String,
    /// The server's base URL.
    pub(crate) url: String,
    /// The address it listens on.
    pub(crate) host: String,
    /// The port it listens on.
    pub(crate) port: u16,
    /// Its process.
    pub(crate) pid: u32,
}

/// `host-credentials.json` of a home, and `credentials.json` beside a project's link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CredentialsFile {
    /// 1.
    pub(crate) format: u32,
    /// For the Runtime API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) application_key: Option<NamedKey>,
    /// For the Management API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) management_key: Option<NamedKey>,
}

/// A key with its name.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NamedKey {
    /// Its name.
    pub(crate) id: String,
    /// 64 lowercase hex characters.
    pub(crate) key: String,
}

impl std::fmt::Debug for NamedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NamedKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// `link.json` of a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LinkFile {
    /// The server's base URL.
    pub(crate) url: String,
}

/// Reads one of these files; `None` when there is none.
///
/// # Errors
/// The file cannot be read, or is not what it should be.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, Failure> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::new(format!("cannot read {}: {error}", path.display()))),
    };
    let file = serde_json::from_slice(&text);
    file.map(Some).map_err(|error| {
        Failure::new(format!("{} is damaged: {error}", path.display())).remedy("`nylorun serve` writes it anew")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_wins_over_the_environment() {
        let env = |name: &str| match name {
            "NYLORUN_HOME" => Some("/from-env".to_owned()),
            "HOME" => Some("/home/me".to_owned()),
            _ => None,
        };
        let home = |home: Option<&str>, env: &dyn Fn(&str) -> Option<String>| {
            HomeArgs { home: home.map(PathBuf::from) }.directory_in(env).unwrap()
        };
        assert_eq!(home(Some("/arg"), &env), Path::new("/arg"));
        assert_eq!(home(None, &env), Path::new("/from-env"));
        let empty = |name: &str| if name == "NYLORUN_HOME" { Some(String::new()) } else { env(name) };
        assert_eq!(home(None, &empty), Path::new("/home/me/.nylorun"));
        assert_eq!(HomeArgs::default().directory_in(&|_| None).unwrap_err().exit.number(), 2);
    }

    #[test]
    fn the_files_of_a_home_are_read_as_specified() {
        let credentials = concat!(
            r#"{"format":1,"applicationKey":{"id":"local","key":"a"},"#,
            r#""managementKey":{"id":"local-management","key":"m"}}"#
        );
        let read: CredentialsFile = serde_json::from_str(credentials).unwrap();
        assert_eq!(read.management_key.as_ref().unwrap().key, "m");
        assert_eq!(serde_json::to_string(&read).unwrap(), credentials);
        assert!(!format!("{read:?}").contains("\"m\""));
    }
}
