//! The file system that commands and tools see: the workspace's directory at `/workspace`, and memory.

use std::future::Future;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bashkit::{FileSystem, FileType, FsLimits, InMemoryFs, MountableFs};
use nylorun_domain::workspace::WORKSPACE_DIR;
use nylorun_ports::backends::{FileBytes, FileList};

use super::devices::{device_paths, mount_devices};
use super::tree_fs::TreeFs;
use crate::files::{Entry, Files, Kind, Quota, Tree, absolute, normalize};

/// How many links one path may lead through, as in Linux.
const MAX_LINKS: usize = 40;

/// Files in memory, at least.
const MEMORY_FILES: u64 = 10_000;

/// All files of one workspace.
pub(super) struct World {
    tree: Arc<Tree>,
    memory: Arc<InMemoryFs>,
    memory_bytes: u64,
}

/// Where a path stands.
enum Place<'a> {
    /// Below the workspace, by its path there.
    Tree(&'a Path),
    /// In memory.
    Memory(&'a Path),
}

fn place(path: &Path) -> Place<'_> {
    match path.strip_prefix(WORKSPACE_DIR) {
        Ok(relative) => Place::Tree(relative),
        Err(_) => Place::Memory(path),
    }
}

impl World {
    pub(super) fn new(tree: Tree, memory_mib: u64, quota: Quota) -> Self {
        let memory_bytes = memory_mib.saturating_mul(1 << 20);
        // Half of the memory may hold files; what interprets commands needs the rest.
        // The interpreter cuts what a pattern such as `*` gives at the number of files, silently and also in the
        // workspace: so it must be more than a workspace holds.
        let limits = FsLimits::new()
            .max_total_bytes(memory_bytes / 2)
            .max_file_size(memory_bytes / 4)
            .max_file_count(quota.files.saturating_add(MEMORY_FILES));
        let memory = Arc::new(InMemoryFs::with_limits(limits));
        memory.add_dir(WORKSPACE_DIR, 0o755);
        // So that a listing of `/dev` has them as files.
        device_paths().for_each(|path| memory.add_file(path, "", 0o666));
        Self { tree: Arc::new(tree), memory, memory_bytes }
    }

    /// What a shell may hold at once, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes / 2
    }

    /// The file system for a shell.
    pub(super) fn shell_fs(&self) -> Arc<dyn FileSystem> {
        let whole = MountableFs::new(Arc::clone(&self.memory) as Arc<dyn FileSystem>);
        // It refuses nothing but relative paths.
        let _ = whole.mount(WORKSPACE_DIR, Arc::new(TreeFs(Arc::clone(&self.tree))));
        mount_devices(&whole);
        Arc::new(whole)
    }

    /// Reads a file whole (environments 3, reads outside tool calls).
    pub(super) fn read_bytes(&self, path: &str, max: u64) -> io::Result<FileBytes> {
        let (kind, at) = match self.locate(&absolute(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileBytes::Missing),
            other => other?,
        };
        if kind != Kind::File {
            return Ok(FileBytes::Missing);
        }
        let (_, size) = self.look(&at)?;
        if size > max {
            return Ok(FileBytes::TooLarge(size));
        }
        let mut bytes = Vec::new();
        self.open(&at)?.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
        // It may have grown meanwhile.
        let length = bytes.len() as u64;
        Ok(if length > max { FileBytes::TooLarge(length) } else { FileBytes::Bytes(bytes) })
    }

    /// Lists the files below a directory (sandbox-and-definitions a6, listFiles rules).
    pub(super) fn list_files(&self, dir: &str, max_entries: u32) -> io::Result<Option<FileList>> {
        let Ok((Kind::Dir, root)) = self.locate(&absolute(dir)) else { return Ok(None) };
        let max_entries = usize::try_from(max_entries).unwrap_or(usize::MAX);
        let mut list = FileList::default();
        let mut pending = vec![(PathBuf::new(), Kind::Dir, 0)];
        while let Some((relative, kind, size)) = pending.pop() {
            match kind {
                Kind::Link | Kind::Other => {}
                Kind::File if list.entries.len() == max_entries => {
                    list.truncated = true;
                    break;
                }
                Kind::File => list.entries.push((relative.to_string_lossy().into_owned(), size)),
                Kind::Dir => {
                    let mut entries = self.list(&root.join(&relative))?;
                    entries.sort_by(|a, b| b.name.cmp(&a.name));
                    pending
                        .extend(entries.into_iter().map(|entry| (relative.join(entry.name), entry.kind, entry.size)));
                }
            }
        }
        Ok(Some(list))
    }

    /// What stands at `path`, no link followed, and its size.
    fn look(&self, path: &Path) -> io::Result<(Kind, u64)> {
        match place(path) {
            Place::Tree(path) => self.tree.meta(path).map(|meta| (meta.kind, meta.size)),
            Place::Memory(path) => now(self.memory.stat(path)).map(|meta| (kind_of(meta.file_type), meta.size)),
        }
    }

    /// Follows the links of `path`, which lead to other paths of this same file system. What is missing stays in the
    /// path.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let mut links = 0;
        let mut pending = names(path);
        let mut at = PathBuf::from("/");
        while let Some(name) = pending.pop() {
            if name == Path::new("..") {
                at.pop();
                continue;
            }
            at.push(&name);
            match self.look(&at) {
                Ok((Kind::Link, _)) => {}
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(io::Error::other("too many levels of symbolic links"));
            }
            let target = match place(&at) {
                Place::Tree(path) => self.tree.read_link(path)?,
                Place::Memory(path) => now(self.memory.read_link(path))?,
            };
            at.pop();
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            pending.extend(names(&target));
        }
        Ok(at)
    }
}

/// The names of a path, the first one last; `.` left out.
fn names(path: &Path) -> Vec<PathBuf> {
    let named = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut names: Vec<_> = named.collect();
    names.reverse();
    names
}

impl Files for World {
    fn locate(&self, path: &Path) -> io::Result<(Kind, PathBuf)> {
        let at = self.resolve(&normalize(path))?;
        let (kind, _) = self.look(&at)?;
        Ok((kind, at))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        let (kind, at) = self.locate(path)?;
        match (kind, place(&at)) {
            (Kind::File, Place::Tree(path)) => Ok(Box::new(self.tree.open(path)?)),
            (Kind::File, Place::Memory(path)) => Ok(Box::new(io::Cursor::new(now(self.memory.read_file(path))?))),
            (Kind::Dir, _) => Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory")),
            (Kind::Link | Kind::Other, _) => Err(io::Error::other("not a regular file")),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let at = self.resolve(path)?;
        match place(&at) {
            Place::Tree(path) => self.tree.list(path),
            Place::Memory(path) => {
                let entries = now(self.memory.read_dir(path))?.into_iter().map(|entry| Entry {
                    name: entry.name.into(),
                    kind: kind_of(entry.metadata.file_type),
                    size: entry.metadata.size,
                });
                Ok(entries.collect())
            }
        }
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let at = self.resolve(path)?;
        match place(&at) {
            Place::Tree(path) => self.tree.write(path, content),
            Place::Memory(path) => now(self.memory.write_file(path, content)),
        }
    }

    fn make_dirs(&self, path: &Path) -> io::Result<()> {
        let at = self.resolve(path)?;
        match place(&at) {
            Place::Tree(path) => self.tree.make_dirs(path),
            Place::Memory(path) => now(self.memory.mkdir(path, true)),
        }
    }
}

fn kind_of(file_type: FileType) -> Kind {
    match file_type {
        FileType::File => Kind::File,
        FileType::Directory => Kind::Dir,
        FileType::Symlink => Kind::Link,
        FileType::Fifo => Kind::Other,
    }
}

/// The result of a future that is done at once, as those of the file system in memory are.
fn now<T>(future: impl Future<Output = bashkit::Result<T>>) -> io::Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(value)) => Ok(value),
        Poll::Ready(Err(bashkit::Error::Io(error))) => Err(error),
        Poll::Ready(Err(other)) => Err(io::Error::other(other.to_string())),
        Poll::Pending => Err(io::Error::other("the file system in memory did not answer at once")),
    }
}
