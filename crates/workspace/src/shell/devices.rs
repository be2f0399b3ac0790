//! The devices without an end, `/dev/zero`, `/dev/random` and `/dev/urandom`.
//!
//! The interpreter reads every file whole. Of a device without an end it would read some and take that for all, so that
//! `head -c 3000000 /dev/zero` gave less than it was asked for, and no error. So `head` is told how much to read, and
//! zeros that nobody counted are an error. Random bytes that nobody counted are [`UNCOUNTED_RANDOM`], since scripts
//! filter them before they count: `tr -dc a-z < /dev/urandom | head -c 16`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bashkit::hooks::{HookAction, ToolEvent};
use bashkit::{DirEntry, FileSystem, FileSystemExt, FileType, Metadata, MountableFs, Result, async_trait};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::files::MAX_FILE;

/// What a read of a random device gives that does not say how much it wants, in bytes.
const UNCOUNTED_RANDOM: u64 = 64 << 10;

const DEVICES: [(&str, Content); 3] =
    [("/dev/zero", Content::Zeros), ("/dev/random", Content::Random), ("/dev/urandom", Content::Random)];

#[derive(Clone, Copy, Debug)]
enum Content {
    Zeros,
    Random,
}

/// One device. Below it, as `/dev/zero/4096`, are its first bytes by their number.
struct Device(Content);

/// Puts the devices where they belong.
pub(super) fn mount_devices(whole: &MountableFs) {
    for (path, content) in DEVICES {
        // It refuses nothing but relative paths.
        let _ = whole.mount(path, Arc::new(Device(content)));
    }
}

/// The paths of the devices.
pub(super) fn device_paths() -> impl Iterator<Item = &'static str> {
    DEVICES.into_iter().map(|(path, _)| path)
}

/// Tells a device how much `head` wants of it.
pub(super) fn count_reads(mut event: ToolEvent) -> HookAction<ToolEvent> {
    if event.name == "head"
        && let Some(count) = head_bytes(&event.args)
    {
        for arg in event.args.iter_mut().filter(|arg| device_paths().any(|path| path == arg.as_str())) {
            arg.push_str(&format!("/{count}"));
        }
    }
    HookAction::Continue(event)
}

/// The number of bytes that `head` is to print, when it is to print bytes from the beginning.
fn head_bytes(args: &[String]) -> Option<u64> {
    let mut count = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "-c" || arg == "--bytes" {
            count = parse_count(args.next()?);
        } else if let Some(text) = arg.strip_prefix("--bytes=").or_else(|| arg.strip_prefix("-c")) {
            count = parse_count(text);
        }
    }
    count
}

/// A number as GNU tools take it: `512`, `4k`, `2M`, `2MiB`, `2MB`.
fn parse_count(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match &text[end..] {
        "" => 1,
        "b" => 512,
        "k" | "K" | "KiB" => 1 << 10,
        "kB" | "KB" => 1_000,
        "M" | "MiB" => 1 << 20,
        "MB" => 1_000_000,
        "G" | "GiB" => 1 << 30,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    text[..end].parse::<u64>().ok()?.checked_mul(unit)
}

impl Device {
    /// How many bytes a path asks for: none given for the device itself.
    fn count(path: &Path) -> io::Result<Option<u64>> {
        if path == Path::new("/") {
            return Ok(None);
        }
        let count = path.strip_prefix("/").ok().and_then(Path::to_str).and_then(|count| count.parse().ok());
        count.map(Some).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn read(&self, count: Option<u64>) -> io::Result<Vec<u8>> {
        let count = match (self.0, count) {
            (_, Some(count)) => count,
            (Content::Random, None) => UNCOUNTED_RANDOM,
            (Content::Zeros, None) => {
                return Err(io::Error::other(
                    "has no end; read a number of bytes with head -c NUMBER /dev/zero, or with dd",
                ));
            }
        };
        let length = usize::try_from(count).ok().filter(|_| count <= MAX_FILE);
        let too_large = || io::Error::other(format!("at most {} MiB can be read at once", MAX_FILE >> 20));
        let mut bytes = vec![0; length.ok_or_else(too_large)?];
        if let Content::Random = self.0 {
            let mut filled = 0;
            while filled < bytes.len() {
                filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
            }
        }
        Ok(bytes)
    }
}

fn refused<T>() -> Result<T> {
    Err(io::Error::from(io::ErrorKind::PermissionDenied).into())
}

impl FileSystemExt for Device {
    fn backend_kind(&self) -> &'static str {
        "device"
    }
}

#[async_trait]
impl FileSystem for Device {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        Ok(self.read(Self::count(path)?)?)
    }

    async fn write_file(&self, _path: &Path, _content: &[u8]) -> Result<()> {
        Ok(())
    }

    async fn append_file(&self, _path: &Path, _content: &[u8]) -> Result<()> {
        Ok(())
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        Self::count(path)?;
        Ok(Metadata { file_type: FileType::File, size: 0, mode: 0o666, ..Metadata::default() })
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        Ok(Self::count(path).is_ok())
    }

    async fn read_dir(&self, _path: &Path) -> Result<Vec<DirEntry>> {
        Err(io::Error::from(io::ErrorKind::NotADirectory).into())
    }

    async fn mkdir(&self, _path: &Path, _recursive: bool) -> Result<()> {
        refused()
    }

    async fn remove(&self, _path: &Path, _recursive: bool) -> Result<()> {
        refused()
    }

    async fn rename(&self, _from: &Path, _to: &Path) -> Result<()> {
        refused()
    }

    async fn copy(&self, _from: &Path, _to: &Path) -> Result<()> {
        refused()
    }

    async fn symlink(&self, _target: &Path, _link: &Path) -> Result<()> {
        refused()
    }

    async fn read_link(&self, _path: &Path) -> Result<PathBuf> {
        Err(io::Error::from(io::ErrorKind::InvalidInput).into())
    }

    async fn chmod(&self, _path: &Path, _mode: u32) -> Result<()> {
        refused()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_says_how_many_bytes_it_wants() {
        for (args, expected) in [
            ("-c 3 /dev/zero", Some(3)),
            ("-c3k /dev/zero", Some(3072)),
            ("--bytes=2MB /dev/zero", Some(2_000_000)),
            ("--bytes 1G /dev/zero", Some(1 << 30)),
            ("-n 3 /dev/zero", None),
            ("-c -3 /dev/zero", None),
            ("-c 99999999999999G /dev/zero", None),
            ("/dev/zero -c", None),
        ] {
            let args: Vec<_> = args.split(' ').map(str::to_owned).collect();
            assert_eq!(head_bytes(&args), expected, "{args:?}");
        }
    }
}
