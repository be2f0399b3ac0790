//! The home directory: what is in it, who may read it, and that one process at a time serves from it
//! (overview, Commands and files).

mod last_stop;
mod occupant;
mod privacy;

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nylorun_keys::kek::KEK_FILE;
use nylorun_store::db::{DatabaseUrl, HomeLock, HomeLockError};
use serde::Serialize;

use crate::cli::{CredentialsFile, Failure, HostFile, read_file};
use crate::disk;
pub(crate) use last_stop::LastStop;
pub(crate) use occupant::{Occupant, Process};
pub(crate) use privacy::{CREDENTIALS, DATABASE, Exposure, SecretFile};

/// A home directory.
#[derive(Clone, Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    /// The directory, made with everything in it that is missing, and closed to others.
    ///
    /// # Errors
    /// It cannot be made, belongs to somebody else, or is open to others and not ours to close.
    pub(crate) fn prepare(path: &Path) -> Result<Self, Failure> {
        let home = Self(path.to_owned());
        if path.is_dir() && !home.is_ours()? {
            privacy::refuse_open_folder(path)?;
        }
        for folder in [path.to_owned(), home.tenant(), home.workspaces(), home.blobs(), path.join("keys"), home.logs()]
        {
            privacy::keep_folder(&folder)?;
        }
        Ok(home)
    }

    /// Whether the directory was a home before, or may become one without taking it from somebody: what else is in it
    /// is not ours to close.
    fn is_ours(&self) -> Result<bool, Failure> {
        let failed = |error| Failure::new(format!("cannot look into {}: {error}", self.0.display()));
        for entry in fs::read_dir(&self.0).map_err(failed)? {
            // A disk's own folder is on every fresh volume.
            if entry.map_err(failed)?.file_name() != "lost+found" {
                return Ok(self.tenant().is_dir());
            }
        }
        Ok(true)
    }

    /// Refuses to go on while others may use a file that holds secrets. The vault key is checked where it is read.
    ///
    /// # Errors
    /// The first such file, with what to do.
    pub(crate) fn refuse_open_files(&self, database: &DatabaseUrl) -> Result<(), Failure> {
        privacy::refuse_open_file(&self.credentials_path(), &CREDENTIALS)?;
        let DatabaseUrl::Sqlite(path) = database else { return Ok(()) };
        for end in ["", "-wal"] {
            let mut file = path.clone().into_os_string();
            file.push(end);
            privacy::refuse_open_file(Path::new(&file), &DATABASE)?;
        }
        Ok(())
    }

    /// The directory of a server that was there before.
    pub(crate) fn existing(path: &Path) -> Result<Self, Failure> {
        let home = Self(path.to_owned());
        if home.tenant().is_dir() {
            return Ok(home);
        }
        Err(Failure::not_running(format!("{} is no home directory of nylorun", path.display()))
            .remedy("start a server with `nylorun start`, or name its home directory with --home"))
    }

    /// Takes the directory for this process.
    ///
    /// A server that was killed while it was starting a child may leave its lock with that child for a moment, until
    /// the child runs its own program: a lock whose holder is dead is waited for.
    pub(crate) fn lock(&self) -> Result<HomeLock, Failure> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let path = self.lock_path();
        let begun = Instant::now();
        loop {
            match HomeLock::acquire(&path) {
                Ok(lock) => return Ok(lock),
                Err(HomeLockError::Held { pid }) if pid.is_none_or(is_dead) && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error @ HomeLockError::Held { .. }) => {
                    return Err(Failure::new(format!("{}: {error}", self.0.display()))
                        .remedy("stop the other server with `nylorun stop`, or choose another directory with --home"));
                }
                Err(HomeLockError::Io(cause)) => {
                    return Err(disk::failure("cannot use the lock file", &path, &cause));
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

    /// The file whose lock the process holds that serves from the directory.
    fn lock_path(&self) -> PathBuf {
        self.0.join("home.lock")
    }

    /// Where servers in the background log.
    pub(crate) fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// The log that a server in the background writes now.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.logs().join("nylorun.log")
    }

    /// Where blobs are: the definition files.
    pub(crate) fn blobs(&self) -> PathBuf {
        self.tenant().join("blobs")
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
        read_file(&self.credentials_path())
    }

    /// Keeps the keys that the command line uses.
    pub(crate) fn write_credentials(&self, file: &CredentialsFile) -> Result<(), Failure> {
        write_private(&self.credentials_path(), file)
    }

    /// Where the keys that the command line uses are.
    pub(crate) fn credentials_path(&self) -> PathBuf {
        self.0.join("host-credentials.json")
    }

    /// Where the vault key is.
    pub(crate) fn vault_key(&self) -> PathBuf {
        self.0.join(KEK_FILE)
    }
}

fn is_dead(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_none_or(|pid| rustix::process::test_kill_process(pid).is_err())
}

/// Written beside and renamed, so that a reader never sees half of it; only its owner may read it.
pub(crate) fn write_private(path: &Path, file: &impl Serialize) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        // A name of its own, since others may write the same file at the same moment.
        let mut beside =
            tempfile::Builder::new().prefix(".new-").permissions(Permissions::from_mode(0o600)).tempfile_in(folder)?;
        beside.write_all(serde_json::to_string_pretty(file)?.as_bytes())?;
        beside.write_all(b"\n")?;
        beside.as_file().sync_all()?;
        beside.persist(path)?;
        Ok(())
    };
    write().map_err(|error| disk::failure("cannot write", path, &error))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn several_may_write_a_file_at_once() {
        const WRITERS: usize = 8;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link.json");
        let begin = Barrier::new(WRITERS);
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| {
                    begin.wait();
                    (0..25).for_each(|round| write_private(&path, &round).unwrap());
                });
            }
        });
        assert_eq!(fs::read_to_string(&path).unwrap(), "24\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
