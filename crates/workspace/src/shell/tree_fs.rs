//! The workspace's directory as the interpreter's file system.
//!
//! It follows no links: the interpreter's own layer reads them and follows them in the workspace's names.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bashkit::{DirEntry, FileSystem, FileSystemExt, FileType, Metadata, Result, async_trait};

use crate::files::{Kind, MAX_FILE, Tree};

/// The directory, with paths from its own root.
pub(super) struct TreeFs(pub(super) Arc<Tree>);

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

impl TreeFs {
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let meta = self.0.meta(path)?;
        let file_type = match meta.kind {
            Kind::Dir => FileType::Directory,
            Kind::Link => FileType::Symlink,
            Kind::File => FileType::File,
            // Of what is never opened, the interpreter knows pipes only.
            Kind::Other => FileType::Fifo,
        };
        let (seconds, nanos) = meta.modified;
        let modified = UNIX_EPOCH + Duration::new(u64::try_from(seconds).unwrap_or(0), nanos);
        Ok(Metadata { file_type, size: meta.size, mode: meta.mode & 0o777, modified, created: modified })
    }
}

#[async_trait]
impl FileSystemExt for TreeFs {
    /// Refused: nothing here could read or write it, and it would stop a backup that opens it.
    async fn mkfifo(&self, _path: &Path, _mode: u32) -> Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "Operation not supported").into())
    }

    fn backend_kind(&self) -> &'static str {
        "workspace"
    }
}

#[async_trait]
impl FileSystem for TreeFs {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        self.0.open(relative(path))?.take(MAX_FILE + 1).read_to_end(&mut content)?;
        if content.len() as u64 > MAX_FILE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "File too large").into());
        }
        Ok(content)
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        Ok(self.0.write(relative(path), content)?)
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        Ok(self.0.append(relative(path), content)?)
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        let path = relative(path);
        if recursive { Ok(self.0.make_dirs(path)?) } else { Ok(self.0.make_dir(path)?) }
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        let path = relative(path);
        if recursive { Ok(self.0.remove_all(path)?) } else { Ok(self.0.remove(path)?) }
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        Ok(self.metadata(relative(path))?)
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let path = relative(path);
        let entries = self.0.list(path)?.into_iter().filter_map(|entry| {
            // One that is gone by now is no entry.
            let metadata = self.metadata(&path.join(&entry.name)).ok()?;
            Some(DirEntry { name: entry.name.to_string_lossy().into_owned(), metadata })
        });
        Ok(entries.collect())
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.0.meta(relative(path)).is_ok())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        Ok(self.0.rename(relative(from), relative(to))?)
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        Ok(self.0.copy(relative(from), relative(to))?)
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        Ok(self.0.symlink(target, relative(link))?)
    }

    async fn read_link(&self, path: &Path) -> Result<std::path::PathBuf> {
        Ok(self.0.read_link(relative(path))?)
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        Ok(self.0.chmod(relative(path), mode)?)
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Ok(self.0.set_modified(relative(path), (seconds, since.subsec_nanos()))?)
    }
}
