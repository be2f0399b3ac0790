//! Who uses a home directory, and that a process really does before a signal is sent to it.

use std::io;
use std::path::PathBuf;

use nylorun_store::db::{HomeLock, LockHolder};
use rustix::process::{Pid, Signal};

use super::Home;
use crate::cli::{Failure, HostFile};

/// Who uses a home directory.
#[derive(Debug)]
pub(crate) enum Occupant {
    /// Nobody.
    Nobody,
    /// A process that is not ready, or not a server: it starts, say.
    Busy {
        /// Its number, if it has said it.
        pid: Option<u32>,
    },
    /// A server that was ready.
    Server(HostFile),
}

impl Home {
    /// Who uses the directory now.
    ///
    /// # Errors
    /// The lock file or `host.json` cannot be read.
    pub(crate) fn occupant(&self) -> Result<Occupant, Failure> {
        let path = self.lock_path();
        let holder = HomeLock::holder(&path);
        let holder = holder.map_err(|error| Failure::new(format!("cannot look at {}: {error}", path.display())))?;
        let pid = match holder {
            LockHolder::Nobody => return Ok(Occupant::Nobody),
            LockHolder::Process { pid } => pid,
        };
        match self.host_file()? {
            Some(host) if Some(host.pid) == pid => Ok(Occupant::Server(host)),
            Some(_) | None => Ok(Occupant::Busy { pid }),
        }
    }

    /// The process of this number, if it is the one that uses the directory. A number alone proves nothing: that
    /// process may be gone and the number another's, or it may count in another container.
    pub(crate) fn process(&self, pid: u32) -> Option<Process> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        let handle = handle::open(number).ok()?;
        let process = Process { pid, handle, lock: self.lock_path() };
        process.is_there().then_some(process)
    }
}

/// A process that uses a home directory.
pub(crate) struct Process {
    pid: u32,
    handle: handle::Handle,
    lock: PathBuf,
}

impl Process {
    /// Asks it to stop.
    pub(crate) fn terminate(&self) -> io::Result<()> {
        Ok(handle::send(&self.handle, Signal::TERM)?)
    }

    /// Whether it still uses the directory.
    pub(crate) fn is_there(&self) -> bool {
        let is_held = matches!(
            HomeLock::holder(&self.lock),
            Ok(LockHolder::Process { pid }) if pid.is_none_or(|pid| pid == self.pid)
        );
        is_held && handle::has_open(self.pid, &self.lock)
    }
}

#[cfg(target_os = "linux")]
mod handle {
    //! A descriptor of the process: its number cannot come to mean another one between a look and a signal.

    use std::fs;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    pub(super) type Handle = OwnedFd;

    pub(super) fn open(pid: Pid) -> rustix::io::Result<Handle> {
        pidfd_open(pid, PidfdFlags::empty())
    }

    pub(super) fn send(handle: &Handle, signal: Signal) -> rustix::io::Result<()> {
        pidfd_send_signal(handle, signal)
    }

    /// Whether the process has the file open. Of another user's process this cannot be seen, so it has not.
    pub(super) fn has_open(pid: u32, path: &Path) -> bool {
        let Ok(wanted) = fs::metadata(path) else { return false };
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        let mut open = descriptors.flatten().filter_map(|descriptor| fs::metadata(descriptor.path()).ok());
        open.any(|file| (file.dev(), file.ino()) == (wanted.dev(), wanted.ino()))
    }
}

#[cfg(not(target_os = "linux"))]
mod handle {
    //! The number of the process: this system has nothing better.

    use std::path::Path;

    use rustix::process::{Pid, Signal, kill_process, test_kill_process};

    pub(super) type Handle = Pid;

    pub(super) fn open(pid: Pid) -> rustix::io::Result<Handle> {
        test_kill_process(pid).map(|()| pid)
    }

    pub(super) fn send(handle: &Handle, signal: Signal) -> rustix::io::Result<()> {
        kill_process(*handle, signal)
    }

    /// Whether there is such a process: the holder of the lock wrote its number into the file.
    pub(super) fn has_open(pid: u32, _path: &Path) -> bool {
        i32::try_from(pid).ok().and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_that_holds_the_lock_is_found() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::prepare(root.path()).unwrap();
        let own = std::process::id();
        assert!(matches!(home.occupant().unwrap(), Occupant::Nobody));
        assert!(home.process(own).is_none(), "this process does not hold the lock");
        let lock = home.lock().unwrap();
        assert!(matches!(home.occupant().unwrap(), Occupant::Busy { pid: Some(pid) } if pid == own));
        let process = home.process(own).unwrap();
        assert!(home.process(1).is_none() || own == 1, "the number of somebody else");
        drop(lock);
        assert!(!process.is_there());
    }

    #[test]
    fn a_server_is_told_from_a_process_that_is_not_ready() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::prepare(root.path()).unwrap();
        let _lock = home.lock().unwrap();
        let mut host = HostFile {
            format: 1,
            host_id: "h".to_owned(),
            tenant_id: "t".to_owned(),
            url: "http://127.0.0.1:1".to_owned(),
            host: "127.0.0.1".to_owned(),
            port: 1,
            pid: std::process::id() + 1,
        };
        home.write_host_file(&host).unwrap();
        assert!(matches!(home.occupant().unwrap(), Occupant::Busy { .. }), "an earlier server wrote it");
        host.pid = std::process::id();
        home.write_host_file(&host).unwrap();
        assert!(matches!(home.occupant().unwrap(), Occupant::Server(found) if found == host));
    }
}
