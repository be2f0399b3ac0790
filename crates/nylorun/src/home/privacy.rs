//! Who may use the home directory: its owner alone. Folders of ours that are open to others are closed; a file with
//! secrets that others could read is refused, since closing it would hide that somebody may have read it.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::cli::Failure;
use crate::disk;

/// Permission bits of others than the owner.
const OTHERS: u32 = 0o077;

/// Why a file or folder is not its owner's alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// Others may use it: the permission bits.
    Mode(u32),
    /// It belongs to somebody else than this process runs as: the user's id.
    Owner(u32),
}

impl Exposure {
    /// How others can get at what is at this path; `None` when they cannot.
    ///
    /// # Errors
    /// There is nothing at the path, or it cannot be looked at.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        Ok(Self::in_metadata(&fs::metadata(path)?))
    }

    fn in_metadata(metadata: &Metadata) -> Option<Self> {
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Some(Self::Owner(metadata.uid()));
        }
        let mode = metadata.mode() & 0o7777;
        (mode & OTHERS != 0).then_some(Self::Mode(mode))
    }
}

impl std::fmt::Display for Exposure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mode(mode) => write!(out, "is open to other users (mode {mode:04o})"),
            Self::Owner(owner) => write!(out, "belongs to another user (id {owner})"),
        }
    }
}

/// What a file with secrets holds, and what to do when others may have read it.
pub(crate) struct SecretFile {
    /// What is in it.
    holds: &'static str,
    /// What to do beyond closing it.
    beyond: &'static str,
}

/// `host-credentials.json`
pub(crate) const CREDENTIALS: SecretFile = SecretFile::new(
    "the keys of the command line",
    "; if somebody may have read it, remove it instead: the next start makes new keys",
);

/// The SQLite file and its log.
pub(crate) const DATABASE: SecretFile = SecretFile::new("everything that was said", "");

impl SecretFile {
    /// A file that holds this, and what to do beyond closing it.
    pub(crate) const fn new(holds: &'static str, beyond: &'static str) -> Self {
        Self { holds, beyond }
    }

    /// What to do about a file that is exposed.
    pub(crate) fn remedy(&self, path: &Path, exposure: Exposure) -> String {
        let path = path.display();
        match exposure {
            Exposure::Mode(_) => format!("run `chmod 600 {path}`{}", self.beyond),
            Exposure::Owner(_) => format!("run the server as that user, or run `chown $(id -u) {path}`{}", self.beyond),
        }
    }
}

/// Refuses a file that is not its owner's alone. A missing one is fine.
pub(super) fn refuse_open_file(path: &Path, file: &SecretFile) -> Result<(), Failure> {
    match Exposure::of(path) {
        Ok(None) => Ok(()),
        Ok(Some(exposure)) => {
            let what = format!("{} {exposure}, and it holds {}", path.display(), file.holds);
            Err(Failure::new(what).remedy(file.remedy(path, exposure)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::new(format!("cannot look at {}: {error}", path.display()))),
    }
}

/// Makes the folder for its owner alone, or closes the one that is there.
pub(super) fn keep_folder(path: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| disk::failure("cannot make", path, &error);
    if path.exists() && !path.is_dir() {
        return Err(Failure::new(format!("{} is not a directory", path.display())).remedy("choose another with --home"));
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    match Exposure::of(path).map_err(failed)? {
        None => Ok(()),
        Some(exposure @ Exposure::Owner(_)) => Err(foreign_folder(path, exposure)),
        Some(Exposure::Mode(mode)) => {
            let closed = fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS));
            closed.map_err(|error| Failure::new(format!("cannot close {} to others: {error}", path.display())))?;
            let (path, mode) = (path.display(), format_args!("{mode:04o}"));
            tracing::warn!(%path, %mode, "a folder of the home directory was open to other users and is closed now");
            Ok(())
        }
    }
}

/// Refuses a folder that is open to others and holds what is not ours: closing it could take it from somebody.
pub(super) fn refuse_open_folder(path: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot look at {}: {error}", path.display()));
    match Exposure::of(path).map_err(failed)? {
        None => Ok(()),
        Some(exposure @ Exposure::Owner(_)) => Err(foreign_folder(path, exposure)),
        Some(exposure @ Exposure::Mode(_)) => {
            let what = format!("{} {exposure}, and holds other files than a home directory's", path.display());
            // No command to copy: what may be closed to others, only its owner knows.
            Err(Failure::new(what).remedy(
                "choose a directory of its own with --home, or give this one mode 0700 if all of it is for the server",
            ))
        }
    }
}

fn foreign_folder(path: &Path, exposure: Exposure) -> Failure {
    Failure::new(format!("{} {exposure}", path.display()))
        .remedy("run the server as that user, or choose a directory below it with --home")
}

#[cfg(test)]
mod tests {
    use nylorun_store::db::DatabaseUrl;

    use super::super::Home;
    use super::*;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn an_open_home_is_closed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("home");
        Home::prepare(&path).unwrap();
        for open in [path.clone(), path.join("keys"), path.join("tenant"), path.join("tenant/workspaces")] {
            assert_eq!(mode(&open), 0o700, "{}", open.display());
            chmod(&open, 0o777);
        }
        Home::prepare(&path).unwrap();
        for closed in [path.clone(), path.join("keys"), path.join("tenant"), path.join("tenant/workspaces")] {
            assert_eq!(mode(&closed), 0o700, "{}", closed.display());
        }
    }

    #[test]
    fn an_open_folder_of_somebody_elses_files_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("project.txt"), "x").unwrap();
        chmod(root.path(), 0o755);
        let refused = Home::prepare(root.path()).unwrap_err().to_string();
        assert!(refused.contains("is open to other users (mode 0755), and holds other files"), "{refused}");
        assert_eq!(mode(root.path()), 0o755);
        assert!(!root.path().join("tenant").exists());
        // Closed already, it may become one; and so may an empty one.
        chmod(root.path(), 0o700);
        Home::prepare(root.path()).unwrap();
        let empty = tempfile::tempdir().unwrap();
        chmod(empty.path(), 0o755);
        Home::prepare(empty.path()).unwrap();
        assert_eq!(mode(empty.path()), 0o700);
    }

    #[test]
    fn files_with_secrets_that_others_may_use_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::prepare(root.path()).unwrap();
        let database = home.database();
        home.refuse_open_files(&database).unwrap();
        for name in ["host-credentials.json", "tenant/nylorun.db", "tenant/nylorun.db-wal"] {
            let path = root.path().join(name);
            fs::write(&path, "x").unwrap();
            for open in [0o644, 0o620, 0o604] {
                chmod(&path, open);
                let refused = home.refuse_open_files(&database).unwrap_err().to_string();
                assert!(refused.starts_with(&format!("{} is open to other users (mode {open:04o})", path.display())));
                assert_eq!(mode(&path), open, "a file is not changed behind its owner's back");
            }
            chmod(&path, 0o600);
            home.refuse_open_files(&database).unwrap();
        }
        chmod(&root.path().join("tenant/nylorun.db"), 0o644);
        let elsewhere: DatabaseUrl = "postgres://u@h/d".parse().unwrap();
        home.refuse_open_files(&elsewhere).unwrap();
    }
}
