//! The home directory and the files in it that say where a server runs (overview, Commands and files).

use std::path::{Path, PathBuf};

use clap::Args;
use nylorun_domain::caller::is_key;
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::project::Project;

/// `--home`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HomeArgs {
    /// Home directory of the server [default: NYLORUN_HOME, else the one that the project is linked to, else
    /// ~/.nylorun]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

impl HomeArgs {
    /// The directory, absolute: the argument, or `NYLORUN_HOME`, or the one that the project is linked to, or
    /// `~/.nylorun`.
    ///
    /// # Errors
    /// None of the four says where.
    pub(crate) fn directory(&self) -> Result<PathBuf, Failure> {
        let env = |name: &str| std::env::var(name).ok();
        let linked = match self.chosen(&env) {
            Some(_) => None,
            None => Project::of_process()?.and_then(|project| project.home()),
        };
        let directory = match linked {
            Some(directory) => directory,
            None => self.directory_in(&env)?,
        };
        let failed = |error| Failure::usage(format!("home directory {:?}: {error}", directory.display().to_string()));
        std::path::absolute(&directory).map_err(failed)
    }

    /// The same with another environment, without a look at the project.
    pub(crate) fn directory_in(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, Failure> {
        let chosen = self.chosen(env).or_else(|| Some(Path::new(&set(env, "HOME")?).join(".nylorun")));
        chosen.ok_or_else(|| Failure::usage("no home directory: HOME is not set").remedy("pass --home DIR"))
    }

    fn chosen(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        self.home.clone().or_else(|| set(env, "NYLORUN_HOME").map(PathBuf::from))
    }
}

fn set(env: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    env(name).filter(|value| !value.is_empty())
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

/// `link.json` of a project. Only the URL is needed: other programs write it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LinkFile {
    /// 1.
    #[serde(default)]
    pub(crate) format: u32,
    /// The host's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host_id: Option<String>,
    /// The tenant's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant_id: Option<String>,
    /// The server's base URL.
    pub(crate) url: String,
    /// The server's home directory, absolute, where it is on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) home: Option<PathBuf>,
}

/// A file that is kept beside a server.
pub(crate) trait KeptFile: for<'de> Deserialize<'de> {
    /// What to do when it is damaged, after "remove it".
    const WHEN_DAMAGED: &'static str;

    /// What is wrong with the values; `None` when they can be used.
    fn problem(&self) -> Option<&'static str>;
}

const OTHER_FORMAT: &str = "its `format` is not 1: a newer version wrote it";

impl KeptFile for HostFile {
    const WHEN_DAMAGED: &'static str = "the next start of the server writes it anew, with a new id of this host";

    fn problem(&self) -> Option<&'static str> {
        (self.format != 1).then_some(OTHER_FORMAT)
    }
}

impl KeptFile for CredentialsFile {
    const WHEN_DAMAGED: &'static str =
        "the next start of the server makes new keys for the command line; keys of `nylorun key put` stay as they are";

    fn problem(&self) -> Option<&'static str> {
        if self.format != 1 {
            return Some(OTHER_FORMAT);
        }
        let keys = [&self.application_key, &self.management_key];
        let is_damaged = keys.into_iter().flatten().any(|named| !is_key(&named.key));
        is_damaged.then_some("a key in it is not 64 lower-case hexadecimal digits")
    }
}

impl KeptFile for LinkFile {
    const WHEN_DAMAGED: &'static str = "`nylorun start` writes it anew";

    fn problem(&self) -> Option<&'static str> {
        None
    }
}

/// Reads one of these files; `None` when there is none. What is in it is not repeated: it may be a key.
///
/// # Errors
/// The file cannot be read, or is not what it should be.
pub(crate) fn read<T: KeptFile>(path: &Path) -> Result<Option<T>, Failure> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::new(format!("cannot read {}: {error}", path.display()))),
    };
    let damaged = |problem: String| {
        let what = format!("{} is damaged: {problem}", path.display());
        Failure::new(what).remedy(format!("restore it from a backup, or remove it: {}", T::WHEN_DAMAGED))
    };
    let file: T = serde_json::from_slice(&text)
        .map_err(|error| damaged(format!("not as expected at line {}, column {}", error.line(), error.column())))?;
    match file.problem() {
        None => Ok(Some(file)),
        Some(problem) => Err(damaged(problem.to_owned())),
    }
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

    #[test]
    fn a_damaged_file_is_told_without_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host-credentials.json");
        let key = "a".repeat(64);
        for damaged in [
            String::new(),
            "{".to_owned(),
            format!(r#"{{"format":1,"applicationKey":"{key}"}}"#),
            format!(r#"{{"format":1,"applicationKey":{{"id":"local","key":"{key}b"}}}}"#),
            r#"{"format":2}"#.to_owned(),
        ] {
            std::fs::write(&path, &damaged).unwrap();
            let refused = format!("{:?}", read::<CredentialsFile>(&path).unwrap_err());
            assert!(refused.contains("is damaged") && refused.contains("remove it: the next"), "{refused}");
            assert!(!refused.contains(&key), "{refused}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read::<CredentialsFile>(&path).unwrap(), None);
    }
}
