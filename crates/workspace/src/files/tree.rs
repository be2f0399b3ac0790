//! The workspace's directory on the host, opened beneath a directory handle.
//!
//! Every path is resolved by the kernel beneath that handle and through no link at all (`openat2` with
//! `RESOLVE_BENEATH`, `RESOLVE_NO_SYMLINKS`), so that a link that is swapped in meanwhile leads nowhere. Who wants
//! links followed reads them and follows them in the workspace's own names.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps};

use super::count::count;
use super::quota::{Account, Held, OpenAccount, Quota};
use super::{Entry, Kind};

/// A directory of the host. Paths given to it are relative, normalised, and may be empty: the directory itself.
#[derive(Debug)]
pub(crate) struct Tree {
    dir: OwnedFd,
    /// Every change is entered here. It is open while one is made, so that changes are made one after the other; only
    /// the content of a file that replaces another one is written outside of it.
    account: Account,
    /// What the names of this process's unfinished files begin with.
    unfinished: String,
    /// Makes them differ.
    counter: AtomicU64,
}

/// Largest file of a workspace, in bytes: the interpreter holds a file that it reads or writes in memory, and what it
/// could not read, some of its commands would take for missing and write anew.
pub(crate) const MAX_FILE: u64 = 256 << 20;

/// Permissions of new files and directories; the umask takes from them.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const DIR_MODE: Mode = Mode::from_raw_mode(0o777);

/// What the names of all unfinished files begin with.
pub(super) const UNFINISHED: &str = ".nylorun-unfinished-";

/// What is known of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) modified: (i64, u32),
}

impl Tree {
    /// Opens a directory of the host. Fails where the kernel cannot resolve beneath a handle.
    pub(crate) fn open_dir(dir: &Path, quota: Quota) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(dir, flags, Mode::empty())?;
        // An earlier process may have had the same number.
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let unfinished = format!("{UNFINISHED}{}-{started}-", std::process::id());
        let tree = Self { dir, account: Account::new(quota), unfinished, counter: AtomicU64::new(0) };
        tree.open_at(Path::new(""), OFlags::PATH)?;
        Ok(tree)
    }

    /// What stands at `path`; a link at its end is not followed.
    pub(crate) fn meta(&self, path: &Path) -> io::Result<Meta> {
        let fd = self.open_at(path, OFlags::PATH | OFlags::NOFOLLOW)?;
        Ok(meta_of(&rustix::fs::fstat(fd)?))
    }

    /// Opens a regular file to read.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        // Without NONBLOCK, opening a pipe would wait for its writer.
        let fd = self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        regular(fd)
    }

    /// The entries of a directory.
    pub(crate) fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let fd = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&fd)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            // One that is gone by now is no entry.
            if let Ok(stat) = rustix::fs::statat(&fd, &name, AtFlags::SYMLINK_NOFOLLOW) {
                let Meta { kind, size, .. } = meta_of(&stat);
                entries.push(Entry { name, kind, size });
            }
        }
        Ok(entries)
    }

    /// Writes a file whole.
    pub(crate) fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.replace(path, content.len() as u64, |file| file.write_all(content))
    }

    /// Copies a file's content, replacing what stands at `to`.
    pub(crate) fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        let source = self.open(from)?;
        let size = source.metadata()?.len();
        // It may grow meanwhile.
        self.replace(to, size, |file| io::copy(&mut source.take(size), file).map(drop))
    }

    /// Fills a file of at most `size` bytes under another name first, so that it is never half written.
    fn replace(&self, path: &Path, size: u64, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        check_size(size)?;
        let (parent, name) = self.parent_of(path)?;
        let old = stat_of(&parent, name)?;
        match old.as_ref().map(|stat| meta_of(stat).kind) {
            None | Some(Kind::File) => {}
            Some(Kind::Dir) => return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory")),
            Some(Kind::Link | Kind::Other) => return Err(not_regular()),
        }
        let new = Held::file(size);
        let mut account = self.account()?;
        account.admit(new, held_at(&parent, name)?)?;
        account.begin(new);
        drop(account);
        let unfinished = format!("{}{}", self.unfinished, self.counter.fetch_add(1, Ordering::Relaxed));
        let filled = fill_new(&parent, &unfinished, old.as_ref(), fill);
        let mut account = self.account()?;
        account.end(new);
        let stands = filled.and_then(|()| {
            let gone = held_at(&parent, name)?;
            rustix::fs::renameat(&parent, &unfinished, &parent, name)?;
            account.enter(new, gone);
            Ok(())
        });
        // The error that is reported is the first one.
        if stands.is_err() && rustix::fs::unlinkat(&parent, &unfinished, AtFlags::empty()).is_err() {
            account.doubt();
        }
        stands
    }

    /// Adds to a file's end; makes it when it is not there.
    pub(crate) fn append(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let (parent, name) = self.parent_of(path)?;
        let mut account = self.account()?;
        let old = stat_of(&parent, name)?.map(|stat| meta_of(&stat));
        let size = old.map_or(0, |meta| meta.size) + content.len() as u64;
        if !content.is_empty() {
            check_size(size)?;
        }
        account.admit(Held::file(size), old.as_ref().map_or(Held::NOTHING, Held::of))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NONBLOCK;
        let mut file = regular(open_beneath(&parent, name, flags, FILE_MODE)?)?;
        let appended = file.write_all(content);
        let now = file.metadata().map(|meta| Held::file(meta.len()));
        match now {
            Ok(now) => account.enter(now, old.as_ref().map_or(Held::NOTHING, Held::of)),
            Err(_) => account.doubt(),
        }
        appended
    }

    /// Makes a directory, whose parent must be there.
    pub(crate) fn make_dir(&self, path: &Path) -> io::Result<()> {
        let (parent, name) = self.parent_of(path)?;
        self.make(&parent, name, Held::DIR, || rustix::fs::mkdirat(&parent, name, DIR_MODE))
    }

    /// Makes what does not stand there yet.
    fn make(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        made: Held,
        make: impl FnOnce() -> rustix::io::Result<()>,
    ) -> io::Result<()> {
        let mut account = self.account()?;
        // What is there already is no question of room.
        if stat_of(parent, name)?.is_some() {
            return Err(rustix::io::Errno::EXIST.into());
        }
        account.admit(made, Held::NOTHING)?;
        make()?;
        account.enter(made, Held::NOTHING);
        Ok(())
    }

    /// Makes a directory and those above it that are missing.
    pub(crate) fn make_dirs(&self, path: &Path) -> io::Result<()> {
        let mut at = PathBuf::new();
        for component in path.components() {
            at.push(component);
            match self.make_dir(&at) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if self.meta(&at)?.kind != Kind::Dir {
                        return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a directory"));
                    }
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Removes a file, a link or an empty directory.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let (parent, name) = self.parent_of(path)?;
        let mut account = self.account()?;
        let gone = self.meta(path)?;
        let flags = match gone.kind {
            Kind::Dir => AtFlags::REMOVEDIR,
            Kind::File | Kind::Link | Kind::Other => AtFlags::empty(),
        };
        rustix::fs::unlinkat(parent, name, flags)?;
        account.enter(Held::NOTHING, Held::of(&gone));
        Ok(())
    }

    /// Removes what stands at `path` and all below it. Works on one directory at a time, so that depth takes no stack.
    pub(crate) fn remove_all(&self, path: &Path) -> io::Result<()> {
        let mut pending = vec![path.to_path_buf()];
        while let Some(at) = pending.last().cloned() {
            match self.remove(&at) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    pending.extend(self.list(&at)?.into_iter().map(|entry| at.join(entry.name)));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && pending.len() > 1 => {
                    pending.pop();
                }
                other => {
                    other?;
                    pending.pop();
                }
            }
        }
        Ok(())
    }

    /// Renames within the tree, replacing what stands at `to`.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_parent, from_name) = self.parent_of(from)?;
        let (to_parent, to_name) = self.parent_of(to)?;
        let mut account = self.account()?;
        let (moved, old) = (stat_of(&from_parent, from_name)?, stat_of(&to_parent, to_name)?);
        rustix::fs::renameat(from_parent, from_name, to_parent, to_name)?;
        // Renaming one name of a file to another one of the same file does nothing.
        let is_same = |old: &Stat| moved.is_some_and(|moved| (moved.st_dev, moved.st_ino) == (old.st_dev, old.st_ino));
        if let Some(old) = old.filter(|old| !is_same(old)) {
            account.enter(Held::NOTHING, Held::of(&meta_of(&old)));
        }
        Ok(())
    }

    /// Makes a link with this text.
    pub(crate) fn symlink(&self, target: &Path, link: &Path) -> io::Result<()> {
        let (parent, name) = self.parent_of(link)?;
        let made = Held::file(target.as_os_str().len() as u64);
        self.make(&parent, name, made, || rustix::fs::symlinkat(target, &parent, name))
    }

    /// The text of a link.
    pub(crate) fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let (parent, name) = self.parent_of(path)?;
        let target = rustix::fs::readlinkat(parent, name, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Sets the permissions of a file or directory. Those of the tree itself stay: it could not be opened again.
    pub(crate) fn chmod(&self, path: &Path, mode: u32) -> io::Result<()> {
        if path.as_os_str().is_empty() {
            return Err(rustix::io::Errno::PERM.into());
        }
        let fd = self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        Ok(rustix::fs::fchmod(fd, Mode::from_raw_mode(mode & 0o777))?)
    }

    /// Sets the time of last change, in seconds and nanoseconds since 1970.
    pub(crate) fn set_modified(&self, path: &Path, (seconds, nanos): (i64, u32)) -> io::Result<()> {
        let fd = self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let time = Timespec { tv_sec: seconds, tv_nsec: nanos.into() };
        Ok(rustix::fs::futimens(fd, &Timestamps { last_access: time, last_modification: time })?)
    }

    /// Opens the account for one change. What stands in the tree is counted when that is not known.
    fn account(&self) -> io::Result<OpenAccount<'_>> {
        self.account.open(|| count(&self.dir, &self.unfinished))
    }

    /// The directory that holds `path`, and its name there. The tree itself has none.
    fn parent_of<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let name = path.file_name().ok_or_else(|| io::Error::other("the workspace itself cannot be replaced"))?;
        let parent = self.open_at(path.parent().unwrap_or(Path::new("")), OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((parent, name))
    }

    fn open_at(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { OsStr::new(".") } else { path.as_os_str() };
        open_beneath(&self.dir, path, flags, Mode::empty())
    }
}

fn open_beneath(dir: impl AsFd, path: &OsStr, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(dir, path.as_bytes(), flags | OFlags::CLOEXEC, mode, resolve)?)
}

/// Makes a file with this content and, of the old one, the permissions.
fn fill_new(
    parent: &OwnedFd,
    name: &str,
    old: Option<&Stat>,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(parent, name, flags, FILE_MODE)?);
    fill(&mut file)?;
    if let Some(old) = old {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(old.st_mode & 0o777))?;
    }
    Ok(())
}

fn check_size(size: u64) -> io::Result<()> {
    if size > MAX_FILE {
        let message = format!("File too large (a file of a workspace has at most {} MiB)", MAX_FILE >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(())
}

/// What stands at a name, if anything does.
fn stat_of(parent: &OwnedFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn held_at(parent: &OwnedFd, name: &OsStr) -> io::Result<Held> {
    Ok(stat_of(parent, name)?.map_or(Held::NOTHING, |stat| Held::of(&meta_of(&stat))))
}

fn regular(fd: OwnedFd) -> io::Result<File> {
    let file = File::from(fd);
    let kind = file.metadata()?;
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
    }
    if kind.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::other("not a regular file")
}

pub(super) fn meta_of(stat: &Stat) -> Meta {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Dir,
        FileType::Symlink => Kind::Link,
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            Kind::Other
        }
    };
    Meta {
        kind,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode & 0o7777,
        modified: (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or(0)),
    }
}
