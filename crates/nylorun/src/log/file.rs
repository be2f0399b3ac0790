//! A log file that does not grow without bound: when it is full, it is kept under another name, and the oldest of
//! those goes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// How large a log becomes, and how many full ones are kept beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    limit_bytes: u64,
    kept: u32,
}

impl Rotation {
    /// 10 MiB, and three more.
    pub(super) const DEFAULT: Self = Self { limit_bytes: 10 << 20, kept: 3 };
}

/// The file.
#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    size_bytes: u64,
}

/// Where the `number`th full log is, the newest first from 1.
pub(crate) fn rotated(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

impl RotatingFile {
    /// Goes on with the file at `path`, made if it is missing.
    pub(super) fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let file = append_to(path)?;
        let size_bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), rotation, file, size_bytes })
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.rotation.kept).rev() {
            rename_if_there(&rotated(&self.path, number), &rotated(&self.path, number + 1))?;
        }
        rename_if_there(&self.path, &rotated(&self.path, 1))?;
        self.file = append_to(&self.path)?;
        self.size_bytes = self.file.metadata()?.len();
        Ok(())
    }
}

/// A line comes as one piece, so that none is cut by a rotation.
impl Write for RotatingFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if self.size_bytes > 0 && self.size_bytes.saturating_add(length) > self.rotation.limit_bytes {
            // A full disk or a folder that became read-only: better a file that is too large than no line at all.
            let _ = self.rotate();
        }
        let written = self.file.write(line)?;
        self.size_bytes = self.size_bytes.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &Path) -> Vec<Option<String>> {
        let paths = [path.to_owned(), rotated(path, 1), rotated(path, 2), rotated(path, 3)];
        paths.iter().map(|path| fs::read_to_string(path).ok()).collect()
    }

    #[test]
    fn a_full_log_is_kept_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nylorun.log");
        let rotation = Rotation { limit_bytes: 10, kept: 2 };
        let mut file = RotatingFile::open(&path, rotation).unwrap();
        for line in ["one\n", "two\n", "three\n", "a line that is longer than a file\n", "four\n", "five\n"] {
            file.write_all(line.as_bytes()).unwrap();
        }
        drop(file);
        // Another process goes on where this one stopped.
        RotatingFile::open(&path, rotation).unwrap().write_all(b"six\n").unwrap();
        let some = |text: &str| Some(text.to_owned());
        let expected = [some("six\n"), some("four\nfive\n"), some("a line that is longer than a file\n"), None];
        assert_eq!(texts(&path), expected);
    }
}
