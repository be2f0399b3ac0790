//! The home directory: what is in it, who may read it, and that one process at a time serves from it
//! (overview, Commands and files).

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nylorun_store::db::{DatabaseUrl, HomeLock, HomeLockError};
use serde::Serialize;

use crate::cli::{CredentialsFile, Failure, HostFile, read_file};

/// A home directory.
#[derive(Clone, Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    /// The directory, made with everything in it that is missing.
    pub(crate) fn prepare(path: &Path) -> Result<Self, Failure> {
        let home = Self(path.to_owned());
        for folder in [path.to_owned(), home.tenant(), home.workspaces(), path.join("keys"), path.join("logs")] {
            make_private_folder(&folder)
                .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
        }
        Ok(home)
    }

    /// The directory of a server that was there before.
    pub(crate) fn existing(path: &Path) -> Result<Self, Failure> {
        let home = Self(path.to_owned());
        if home.tenant().is_dir() {
            return Ok(home);
        }
        Err(Failure::not_running(format!("{} is no home directory of nylorun", path.display()))
            .remedy("start a server with `nylorun serve`, or name its home directory with --home"))
    }

    /// Takes the directory for this process.
    ///
    /// A server that was killed while it was starting a child may leave its lock with that child for a moment, until
    /// the child runs its own program: a lock whose holder is dead is waited for.
    pub(crate) fn lock(&self) -> Result<HomeLock, Failure> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let path = self.0.join("home.lock");
        let begun = Instant::now();
        loop {
            match HomeLock::acquire(&path) {
                Ok(lock) => return Ok(lock),
                Err(HomeLockError::Held { pid }) if pid.is_none_or(is_dead) && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error @ HomeLockError::Held { .. }) => {
                    return Err(Failure::new(format!("{}: {error}", self.0.display()))
                        .remedy("stop the other server, or choose another directory with --home"));
                }
                Err(HomeLockError::Io(cause)) => {
                    return Err(Failure::new(format!("cannot use the lock file {}: {cause}", path.display())));
                }
            }
        }
    }

    /// The SQLite file.
    pub(crate) fn database(&self) -> DatabaseUrl {
        DatabaseUrl::Sqlite(self.tenant().join("nylorun.db"))
    }

    /// Where the tenant's files are.
    pub(crate) fn tenant(&self) -> PathBuf {
        self.0.join("tenant")
    }

    fn workspaces(&self) -> PathBuf {
        self.tenant().join("workspaces")
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What the last server wrote about itself.
    pub(crate) fn host_file(&self) -> Result<Option<HostFile>, Failure> {
        read_file(&self.0.join("host.json"))
    }

    /// Says where this server is.
    pub(crate) fn write_host_file(&self, file: &HostFile) -> Result<(), Failure> {
        write_private(&self.0.join("host.json"), file)
    }

    /// The keys that the command line uses.
    pub(crate) fn credentials(&self) -> Result<Option<CredentialsFile>, Failure> {
        read_file(&self.0.join("host-credentials.json"))
    }

    /// Keeps the keys that the command line uses.
    pub(crate) fn write_credentials(&self, file: &CredentialsFile) -> Result<(), Failure> {
        write_private(&self.0.join("host-credentials.json"), file)
    }
}

fn is_dead(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_none_or(|pid| rustix::process::test_kill_process(pid).is_err())
}

fn make_private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Written beside and renamed, so that a reader never sees half of it; only its owner may read it.
fn write_private(path: &Path, file: &impl Serialize) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let beside = path.with_extension("new");
        let mut out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        out.write_all(serde_json::to_string_pretty(file)?.as_bytes())?;
        out.write_all(b"\n")?;
        out.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}
