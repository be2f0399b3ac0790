//! The lock on a home directory: one process at a time owns it, so on SQLite every other worker is gone by
//! definition (the operating system frees the lock when its process ends, however it ends).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// A held lock; freed when it is dropped or the process ends.
#[derive(Debug)]
pub struct HomeLock {
    file: File,
}

/// A home directory that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum HomeLockError {
    /// Another process holds it.
    #[error("the home directory is in use{}", pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    Held {
        /// The holder, if it has written its number already.
        pid: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("the lock file cannot be used")]
    Io(#[from] io::Error),
}

/// Who holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockHolder {
    /// Nobody.
    Nobody,
    /// A process.
    Process {
        /// Its number in its own machine or container, if it has written it already.
        pid: Option<u32>,
    },
}

impl HomeLock {
    /// Who holds the lock on the file at `path`; nobody when there is no such file.
    ///
    /// It looks by taking the lock for a moment, shared with others who look: a process that wants it waits that long.
    pub fn holder(path: &Path) -> io::Result<LockHolder> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockHolder::Nobody),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(LockHolder::Nobody),
            Err(TryLockError::WouldBlock) => Ok(LockHolder::Process { pid: read_pid(&mut file) }),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes the lock on the file at `path` (made if missing, never removed) and writes this process's number into it.
    /// Does not wait.
    pub fn acquire(path: &Path) -> Result<Self, HomeLockError> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(HomeLockError::Held { pid: read_pid(&mut file) }),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Self { file })
    }
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // A number without a holder would mislead; if it stays, the lock is freed all the same.
        let _ = self.file.set_len(0);
    }
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
