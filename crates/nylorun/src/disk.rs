//! The disk below a home directory: how much room it has, and what is said when it takes nothing more.

use std::io;
use std::path::Path;

use crate::cli::Failure;

/// Bytes that the disk of this path has left for this user; of the nearest folder that is there. `None` when the system
/// does not tell.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let there = path.ancestors().find(|folder| folder.exists())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// `1.5 GiB`
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes as f64 / 1024.0;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// What to do when the disk of this path takes nothing more.
pub(crate) fn remedy(path: &Path) -> String {
    let free = free_bytes(path).map_or_else(String::new, |free| format!(", which has {} free", size(free)));
    format!(
        "make room on the disk of {}{free}; where there is room, it is read-only, broken, or limited by a quota",
        path.display()
    )
}

/// A file of this path could not be written; with the remedy where the disk is the cause.
pub(crate) fn failure(what: &str, path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("{what} {}: {error}", path.display()));
    if takes_nothing(error.kind()) { failure.remedy(remedy(path)) } else { failure }
}

fn takes_nothing(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(kind, FileTooLarge | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in
            [(0, "0.0 KiB"), (512, "0.5 KiB"), (1 << 20, "1.0 MiB"), (3 << 29, "1.5 GiB"), (1 << 52, "4096.0 TiB")]
        {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn only_what_the_disk_refuses_is_the_disks_fault() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not/there");
        assert!(free_bytes(&path).is_some(), "the folder above it says");
        let told = |kind| failure("cannot write", &path, &io::Error::from(kind));
        let full = told(io::ErrorKind::StorageFull);
        assert!(full.to_string().starts_with(&format!("cannot write {}: ", path.display())), "{full}");
        assert!(full.advice().unwrap().contains(&format!("the disk of {}, which has ", path.display())));
        assert_eq!(told(io::ErrorKind::PermissionDenied).advice(), None);
    }
}
