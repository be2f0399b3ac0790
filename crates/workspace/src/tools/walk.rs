//! Walking a directory tree in the order of the paths' bytes.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Stopped, Until};
use crate::files::{Entry, Files, Kind};

/// What a walk meets.
pub(super) enum Met<'a> {
    /// A regular file, by its path relative to the walk's root.
    File(&'a Path),
    /// A directory that cannot be read.
    Unreadable(&'a Path, &'a io::Error),
}

/// Whether a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    On,
    Enough,
}

/// Which directories are entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Enter {
    All,
    /// None that is named `.git`.
    NoGit,
}

/// Visits the regular files below `root`, links not followed. No recursion: a tree may be as deep as it likes.
pub(super) fn walk(
    files: &dyn Files,
    root: &Path,
    enter: Enter,
    until: &Until,
    visit: &mut dyn FnMut(Met<'_>) -> Walk,
) -> Result<(), Stopped> {
    // The entries still to visit, of every directory on the way, the next one last.
    let mut pending: Vec<(PathBuf, Kind)> = vec![(PathBuf::new(), Kind::Dir)];
    while let Some((relative, kind)) = pending.pop() {
        until.check()?;
        let went = match kind {
            Kind::File => visit(Met::File(&relative)),
            Kind::Link | Kind::Other => Walk::On,
            Kind::Dir => match files.list(&root.join(&relative)) {
                Ok(mut entries) => {
                    entries.retain(|entry| enter == Enter::All || !is_git(entry));
                    // The next one is taken from the end.
                    entries.sort_by(|a, b| sort_key(b).cmp(sort_key(a)));
                    pending.extend(entries.into_iter().map(|entry| (relative.join(&entry.name), entry.kind)));
                    Walk::On
                }
                Err(error) => visit(Met::Unreadable(&relative, &error)),
            },
        };
        if went == Walk::Enough {
            break;
        }
    }
    Ok(())
}

fn is_git(entry: &Entry) -> bool {
    entry.kind == Kind::Dir && entry.name == OsStr::new(".git")
}

/// Directories sort as `name/`, so that all paths come in the order of their bytes.
fn sort_key(entry: &Entry) -> impl Iterator<Item = u8> {
    let slash = (entry.kind == Kind::Dir).then_some(b'/');
    entry.name.as_bytes().iter().copied().chain(slash)
}
