//! The `virtual` backend: a shell that is interpreted in a child process, with no program of the host.
//!
//! A workspace is the directory `<root>/<key>/workspace`, and one child while it runs.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nylorun_domain::workspace::{WORKSPACE_DIR, WorkspaceKey, WorkspaceSpec};
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::backends::{Backend, BackendError, ExecCommand, Opened, Probe, Probed, WorkspaceHandle};

use crate::files::Quota;
use crate::supervisor::{Link, Start, SupervisedHandle};

/// How the child is started: a program and the arguments before those of the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCommand {
    /// The program: this binary.
    pub program: OsString,
    /// `internal-shell`.
    pub args: Vec<OsString>,
}

/// The backend.
#[derive(Debug)]
pub struct VirtualBackend {
    root: PathBuf,
    shell: ShellCommand,
    quota: Quota,
}

/// The child's environment. The shell in it has variables of its own.
const CHILD_ENV: [(&str, &str); 5] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", WORKSPACE_DIR),
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
    // Each arena of the allocator reserves address space, which is limited.
    ("MALLOC_ARENA_MAX", "2"),
];

/// Memory of the workspace that a probe opens, in MiB.
const PROBE_MEMORY_MIB: u32 = 128;
const PROBE_TIME: Duration = Duration::from_secs(10);

impl VirtualBackend {
    /// A backend that keeps its workspaces below `root`, a directory that it makes when it needs it, each within `quota`.
    pub fn new(root: PathBuf, shell: ShellCommand, quota: Quota) -> Self {
        Self { root, shell, quota }
    }

    /// The directory of one workspace. A key is one name.
    fn dir(&self, key: &WorkspaceKey) -> Result<PathBuf, BackendError> {
        let mut components = Path::new(key.as_str()).components();
        match (components.next(), components.next()) {
            (Some(Component::Normal(name)), None) => Ok(self.root.join(name)),
            _ => Err(BackendError(format!("{} is not a workspace's key", key.as_str()))),
        }
    }

    async fn start(&self, dir: &Path, memory_mib: u32) -> Result<Link, BackendError> {
        let mut args = self.shell.args.clone();
        let Quota { bytes, files } = self.quota;
        let numbers = [u64::from(memory_mib), bytes, files].map(|number| number.to_string().into());
        args.push(dir.as_os_str().to_owned());
        args.extend(numbers);
        let start = Start { program: self.shell.program.clone(), args, env: CHILD_ENV.to_vec() };
        Link::start(&start).await.map_err(BackendError)
    }

    async fn try_probe(&self, dir: &Path) -> Result<Probed, BackendError> {
        make_dirs(dir).map_err(|error| fault(dir, &error))?;
        let handle = SupervisedHandle(self.start(dir, PROBE_MEMORY_MIB).await?);
        let command = ExecCommand {
            command: ". /etc/os-release && echo \"$VERSION_ID\"".to_owned(),
            cwd: WORKSPACE_DIR.to_owned(),
            env: Vec::new(),
            time_limit: PROBE_TIME,
        };
        let result = handle.exec(command, Abort::never()).await;
        handle.stop().await;
        match result {
            Ok(result) if result.exit_code == 0 => {
                Ok(Probed::Available { version: result.stdout.trim().to_owned(), partial: Vec::new() })
            }
            Ok(result) => Err(BackendError(format!("a command failed in it: {}", result.stderr.trim()))),
            Err(error) => Err(BackendError(format!("a command failed in it: {error}"))),
        }
    }
}

impl Probe for VirtualBackend {
    fn name(&self) -> &'static str {
        "virtual"
    }

    fn isolation(&self) -> &'static str {
        "process"
    }

    fn probe(&self) -> BoxFuture<'_, Probed> {
        Box::pin(async {
            // The name is none that a key can have.
            let dir = self.root.join(format!(".probe-{}", std::process::id()));
            let probed = self.try_probe(&dir).await;
            if let Err(error) = remove_dir(&dir) {
                tracing::warn!(%error, "the probe's directory was left behind");
            }
            probed.unwrap_or_else(|error| Probed::Unavailable { reason: error.0 })
        })
    }
}

impl Backend for VirtualBackend {
    fn unmet(&self, spec: &WorkspaceSpec) -> Option<String> {
        if let Some(image) = &spec.image {
            return Some(format!("the virtual backend takes no image ({image})"));
        }
        if !spec.network_allow.is_empty() {
            return Some("the virtual backend has no network yet; leave network.allow empty".to_owned());
        }
        None
    }

    fn open<'a>(
        &'a self,
        key: &'a WorkspaceKey,
        spec: &'a WorkspaceSpec,
    ) -> BoxFuture<'a, Result<Opened, BackendError>> {
        Box::pin(async move {
            let dir = self.dir(key)?.join("workspace");
            let created = make_dirs(&dir).map_err(|error| fault(&dir, &error))?;
            let link = self.start(&dir, spec.memory_mib).await?;
            Ok(Opened { handle: Arc::new(SupervisedHandle(link)), created })
        })
    }

    fn remove<'a>(&'a self, key: &'a WorkspaceKey) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move {
            let dir = self.dir(key)?;
            let removed = tokio::task::spawn_blocking({
                let dir = dir.clone();
                move || remove_dir(&dir)
            });
            match removed.await {
                Ok(removed) => removed.map_err(|error| fault(&dir, &error)),
                Err(error) => Err(BackendError(format!("the removal was interrupted: {error}"))),
            }
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<WorkspaceKey>, BackendError>> {
        Box::pin(async move {
            let entries = match std::fs::read_dir(&self.root) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                other => other.map_err(|error| fault(&self.root, &error))?,
            };
            let mut keys = Vec::new();
            for entry in entries {
                let entry = entry.map_err(|error| fault(&self.root, &error))?;
                let is_dir = entry.file_type().is_ok_and(|file_type| file_type.is_dir());
                // A name that is not UTF-8 is none of ours.
                let name = entry.file_name().into_string().ok().filter(|name| is_dir && name.starts_with(prefix));
                keys.extend(name.map(WorkspaceKey::from_trusted));
            }
            keys.sort();
            Ok(keys)
        })
    }
}

fn fault(path: &Path, error: &io::Error) -> BackendError {
    BackendError(format!("{}: {error}", path.display()))
}

/// Makes a directory for this user alone, and those above it; whether it was missing.
fn make_dirs(dir: &Path) -> io::Result<bool> {
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o700);
    if let Some(parent) = dir.parent() {
        builder.recursive(true).create(parent)?;
    }
    match builder.recursive(false).create(dir) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes a directory with all below it; one that is not there is no error. Nothing runs in it any more.
fn remove_dir(dir: &Path) -> io::Result<()> {
    let removed = match std::fs::remove_dir_all(dir) {
        // A command may have taken the permissions that the removal needs.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            grant_all(dir)?;
            std::fs::remove_dir_all(dir)
        }
        other => other,
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Gives this user all permissions on the directories below `dir`, through no link.
fn grant_all(dir: &Path) -> io::Result<()> {
    let mut pending = vec![dir.to_path_buf()];
    while let Some(dir) = pending.pop() {
        std::fs::set_permissions(&dir, Permissions::from_mode(0o700))?;
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    Ok(())
}
