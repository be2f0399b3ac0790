//! The vault key (KEK): 32 random bytes as base64 in `keys/vault-kek` of the home directory, readable by its owner
//! alone.
//!
//! Whoever has this file and the database has every secret; whoever lacks it has none. So the file is read strictly,
//! and each refusal names the file and the remedy.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nylorun_domain::hash::sha256_hex;
use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use rustix::fs::{Mode, OFlags};
use zeroize::Zeroizing;

/// Where the file stands in the home directory.
pub const KEK_FILE: &str = "keys/vault-kek";

/// Length of the key, in bytes.
const KEY_LEN: usize = 32;
/// No file that is longer can hold the key.
const MAX_FILE: u64 = 1024;

/// The vault key.
pub struct Kek {
    pub(crate) key: LessSafeKey,
    id: String,
}

/// Why there is no vault key.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct KekError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: KekProblem,
}

/// What is wrong with the vault key's file.
#[derive(Debug, thiserror::Error)]
pub enum KekProblem {
    /// It is not there.
    #[error("the vault key is missing; restore it from a backup: what was sealed with it does not open without it")]
    Missing,
    /// It is a symbolic link.
    #[error("the vault key must not be a symbolic link; put the file itself there")]
    SymbolicLink,
    /// It is a directory, a pipe or a device.
    #[error("the vault key must be an ordinary file")]
    NotAFile,
    /// Others than its owner may use it.
    #[error("the vault key may be used by others (mode {mode:03o}); run chmod 600 on it, and ask who may have read it")]
    Open {
        /// Its permission bits.
        mode: u32,
    },
    /// It belongs to somebody else than this process runs as.
    #[error(
        "the vault key belongs to another user (id {owner}); run the server as that user, or give the file to this one"
    )]
    Owner {
        /// The owner's id.
        owner: u32,
    },
    /// It holds something else than 32 bytes as base64.
    #[error(
        "the vault key must be exactly 32 bytes as base64; restore it from a backup, or remove it if there is none"
    )]
    Malformed,
    /// Its bytes are all zero.
    #[error("the vault key is all zeros, which is no key; restore it from a backup, or remove it if there is none")]
    Zero,
    /// The file system refused.
    #[error("the vault key cannot be used: {0}")]
    Io(#[from] io::Error),
    /// No random bytes to make it of.
    #[error("the vault key cannot be made: {0}")]
    Random(#[from] crate::random::NoRandomness),
}

impl Kek {
    /// Reads the key, and makes it when there is no file. Only for a home directory that is held by a lock.
    pub fn load_or_create(path: &Path) -> Result<Self, KekError> {
        match Self::load(path) {
            Err(KekError { problem: KekProblem::Missing, .. }) => {
                create(path).map_err(|problem| KekError { path: path.to_owned(), problem })?;
                Self::load(path)
            }
            read => read,
        }
    }

    /// Reads the key.
    pub fn load(path: &Path) -> Result<Self, KekError> {
        read(path).map_err(|problem| KekError { path: path.to_owned(), problem })
    }

    /// Lower-case hexadecimal SHA-256 of the key: what a sealed secret says it was sealed with.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, KekProblem> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(KekProblem::Zero);
        }
        let key = UnboundKey::new(&AES_256_GCM, bytes).map_err(|_| KekProblem::Malformed)?;
        Ok(Self { key: LessSafeKey::new(key), id: sha256_hex(bytes) })
    }
}

impl std::fmt::Debug for Kek {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kek").field("id", &self.id).finish_non_exhaustive()
    }
}

fn read(path: &Path) -> Result<Kek, KekProblem> {
    // Checks are made on the open file, so that it cannot be exchanged between check and use.
    let file = File::from(open(path)?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(KekProblem::NotAFile);
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KekProblem::Open { mode });
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(KekProblem::Owner { owner: metadata.uid() });
    }
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_FILE).read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => KekProblem::Malformed,
        _ => error.into(),
    })?;
    let bytes = Zeroizing::new(STANDARD.decode(text.trim_end()).map_err(|_| KekProblem::Malformed)?);
    if bytes.len() == KEY_LEN { Kek::from_bytes(&bytes) } else { Err(KekProblem::Malformed) }
}

fn open(path: &Path) -> Result<rustix::fd::OwnedFd, KekProblem> {
    // Without NONBLOCK, opening a pipe would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::NOENT => KekProblem::Missing,
        rustix::io::Errno::LOOP => KekProblem::SymbolicLink,
        other => KekProblem::Io(other.into()),
    })
}

/// Makes the file whole or not at all: a crash must not leave half a key, for the next start would refuse it.
fn create(path: &Path) -> Result<(), KekProblem> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    let mut bytes = Zeroizing::new([0; KEY_LEN]);
    crate::random::fill(bytes.as_mut())?;
    let text = Zeroizing::new(format!("{}\n", STANDARD.encode(bytes.as_ref())));
    let unfinished = path.with_extension("new");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    // A link, unlike a rename, replaces nothing that came meanwhile.
    fs::hard_link(&unfinished, path)?;
    fs::remove_file(&unfinished)?;
    File::open(parent)?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn home() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(KEK_FILE);
        (home, path)
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn problem(path: &Path) -> String {
        Kek::load(path).unwrap_err().problem.to_string()
    }

    #[test]
    fn it_is_made_once_and_for_its_owner_alone() {
        let (_home, path) = home();
        let made = Kek::load_or_create(&path).unwrap();
        let read = Kek::load_or_create(&path).unwrap();
        assert_eq!(made.id(), read.id());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(sha256_hex(&STANDARD.decode(text.trim_end()).unwrap()), made.id());
        assert!(!format!("{made:?}").contains(text.trim_end()));
    }

    #[test]
    fn a_stopped_creation_is_begun_anew() {
        let (_home, path) = home();
        write(&path.with_extension("new"), "hal");
        Kek::load_or_create(&path).unwrap();
    }

    #[test]
    fn a_missing_file_is_only_made_when_asked() {
        let (_home, path) = home();
        assert!(matches!(Kek::load(&path).unwrap_err().problem, KekProblem::Missing));
        assert!(!path.exists());
        let text = Kek::load(&path).unwrap_err().to_string();
        assert!(text.starts_with(&format!("{}: the vault key is missing; restore it", path.display())), "{text}");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let (_home, path) = home();
        let malformed = KekProblem::Malformed.to_string();
        for wrong in [
            "",
            "no base64!",
            &STANDARD.encode([1; 31]),
            &STANDARD.encode([1; 33]),
            &"0a".repeat(32),
            &STANDARD.encode([1; 2000]),
        ] {
            write(&path, wrong);
            assert_eq!(problem(&path), malformed, "{wrong}");
        }
        fs::write(&path, [0xff; 32]).unwrap();
        assert_eq!(problem(&path), malformed);
        write(&path, &STANDARD.encode([0; 32]));
        assert_eq!(problem(&path), KekProblem::Zero.to_string());
        write(&path, &STANDARD.encode([1; 32]));
        assert_eq!(Kek::load(&path).unwrap().id(), sha256_hex(&[1; 32]));
    }

    #[test]
    fn a_file_that_others_may_use_is_refused() {
        let (_home, path) = home();
        write(&path, &STANDARD.encode([1; 32]));
        for mode in [0o640, 0o604, 0o620, 0o601, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(problem(&path), KekProblem::Open { mode }.to_string());
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(Kek::load(&path).is_ok());
    }

    #[test]
    fn only_an_ordinary_file_is_read() {
        let (_home, path) = home();
        let elsewhere = path.with_extension("elsewhere");
        write(&elsewhere, &STANDARD.encode([1; 32]));
        symlink(&elsewhere, &path).unwrap();
        assert_eq!(problem(&path), KekProblem::SymbolicLink.to_string());
        assert!(matches!(Kek::load_or_create(&path).unwrap_err().problem, KekProblem::SymbolicLink));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(problem(&path), KekProblem::NotAFile.to_string());
    }
}
