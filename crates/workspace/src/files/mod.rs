//! Files as the tools see them.
//!
//! [`Files`] is what the tools need of a file system. Paths are absolute and normalised; links are followed, and lead
//! to other paths of the same tree, never out of it.

mod count;
mod path;
mod quota;
mod tree;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) use path::{absolute, normalize};
pub use quota::Quota;
pub(crate) use tree::{MAX_FILE, Tree};

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Dir,
    Link,
    /// A pipe, a socket, a device: never opened.
    Other,
}

/// An entry of a directory, links not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: Kind,
    /// In bytes; of files.
    pub(crate) size: u64,
}

/// The file system of a workspace, for one process that serves it.
pub(crate) trait Files: Send + Sync {
    /// What stands at the end of `path`, links followed, and where that is.
    fn locate(&self, path: &Path) -> io::Result<(Kind, PathBuf)>;
    /// Opens a regular file. Anything else is an error.
    fn open(&self, path: &Path) -> io::Result<Box<dyn io::Read>>;
    /// The entries of a directory, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;
    /// Writes a file whole: afterwards it has all of `content`, or on an error what it had before.
    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()>;
    /// Makes a directory and those above it that are missing.
    fn make_dirs(&self, path: &Path) -> io::Result<()>;
}
