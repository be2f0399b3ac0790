//! Counts what stands in a tree.

use std::ffi::OsString;
use std::io::{
    self,
    ErrorKind::{NotADirectory, NotFound, PermissionDenied},
};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};

use super::Kind;
use super::quota::Held;
use super::tree::{UNFINISHED, meta_of};

/// A directory on the way down.
struct Level {
    /// Device and number, by which it is known again on the way up.
    id: (u64, u64),
    /// Its directories that are not counted yet.
    dirs: Vec<OsString>,
}

/// Counts what stands below `root`, which itself does not count. Files that another process left unfinished are removed;
/// the names of this process's begin with `own`.
///
/// Goes from directory to directory by their handles, of which it holds one at a time: neither the depth of a tree nor
/// the length of its paths is a limit, and what cannot be reached by a path counts too.
pub(super) fn count(root: &OwnedFd, own: &str) -> io::Result<Held> {
    let mut held = Held::default();
    let mut at = open_dir(root, ".")?;
    let mut way = vec![look(&at, own, &mut held)?];
    while let Some(level) = way.last_mut() {
        if let Some(name) = level.dirs.pop() {
            match enter(&at, &name) {
                Ok(dir) => at = dir,
                // Gone meanwhile, or not this user's: then the shell did not make it.
                Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) => continue,
                Err(error) => return Err(error),
            }
            let level = look(&at, own, &mut held)?;
            way.push(level);
        } else {
            way.pop();
            if let Some(parent) = way.last() {
                at = open_dir(&at, "..")?;
                if id_of(&at)? != parent.id {
                    return Err(io::Error::other("the workspace was moved while it was counted"));
                }
            }
        }
    }
    Ok(held)
}

/// Counts the entries of one directory.
fn look(dir: &OwnedFd, own: &str, held: &mut Held) -> io::Result<Level> {
    let mut level = Level { id: id_of(dir)?, dirs: Vec::new() };
    let mut sum = Held::default();
    for entry in Dir::read_from(dir)? {
        let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
        if name == "." || name == ".." {
            continue;
        }
        // One that is gone by now does not count.
        let Ok(stat) = rustix::fs::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let meta = meta_of(&stat);
        let shown = name.to_string_lossy();
        let is_left_over = meta.kind == Kind::File && shown.starts_with(UNFINISHED) && !shown.starts_with(own);
        if is_left_over && rustix::fs::unlinkat(dir, &name, AtFlags::empty()).is_ok() {
            continue;
        }
        sum = sum.plus(Held::of(&meta));
        if meta.kind == Kind::Dir {
            level.dirs.push(name);
        }
    }
    *held = held.plus(sum);
    Ok(level)
}

/// Opens a directory below another one. A command may have taken the permissions that this needs; then they are given
/// back, or what is in there would be held without being counted.
fn enter(dir: &OwnedFd, name: &OsString) -> io::Result<OwnedFd> {
    match open_dir(dir, name) {
        Err(error) if error.kind() == PermissionDenied => {
            rustix::fs::chmodat(dir, name, Mode::RWXU, AtFlags::empty())?;
            open_dir(dir, name)
        }
        other => other,
    }
}

fn open_dir(dir: impl AsFd, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

fn id_of(dir: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(dir)?;
    Ok((stat.st_dev, stat.st_ino))
}
