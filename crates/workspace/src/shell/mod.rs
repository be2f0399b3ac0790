//! The child process of the `virtual` backend: a supervisor whose commands run in an interpreter, with no program of
//! the host.
//!
//! `/workspace` is the one directory that it was given; everything else lives in its memory and ends with it. It has
//! no network. A script that overflows the stack or takes all memory ends this process and nothing else.

mod devices;
mod exec;
mod serve;
mod tree_fs;
mod world;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::files::{MAX_FILE, Quota, Tree};
use crate::supervisor::{Body, PROTOCOL, Reply, write_frame};
use world::World;

/// Address space beside what the workspace may use: the program itself and the stacks of its threads, in MiB.
const OWN_MIB: u64 = 1024;
/// Most open files.
const OPEN_FILES: u64 = 256;

/// What the child is told on its command line: the workspace's directory, the memory that it may use, and what may
/// stand in the directory.
struct Args {
    dir: PathBuf,
    memory_mib: u64,
    quota: Quota,
}

/// Serves one workspace on standard input and output until the input ends: the hidden subcommand `nylorun
/// internal-shell`.
///
/// `args` are those that the backend put after its configured ones. The exit code only says whether it could serve;
/// what went wrong is told in the first frame.
pub fn run_shell_child(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut stdout = io::stdout();
    let world = match parse(args).and_then(|args| enter(&args)) {
        Ok(world) => world,
        Err(reason) => {
            // With the output gone there is nobody to tell.
            let _ = write_frame(&mut stdout, &Reply { id: 0, body: Body::Refused { reason } }, &[]);
            return ExitCode::FAILURE;
        }
    };
    let hello = Reply { id: 0, body: Body::Hello { protocol: PROTOCOL } };
    if write_frame(&mut stdout, &hello, &[]).is_err() {
        return ExitCode::FAILURE;
    }
    serve::serve(&Arc::new(world), io::stdin().lock());
    // Shells that still run end with the process: the host is gone.
    ExitCode::SUCCESS
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Args, String> {
    let mut args = args.into_iter();
    let usage =
        || "internal-shell needs a directory, its memory in MiB, and its quota in bytes and in files".to_owned();
    let dir = PathBuf::from(args.next().ok_or_else(usage)?);
    let mut number = || args.next().and_then(|text| text.to_str()?.parse().ok()).ok_or_else(usage);
    Ok(Args { dir, memory_mib: number()?, quota: Quota { bytes: number()?, files: number()? } })
}

/// Opens the workspace, then gives up what is not needed.
fn enter(args: &Args) -> Result<World, String> {
    let tree =
        Tree::open_dir(&args.dir, args.quota).map_err(|error| format!("the workspace cannot be opened: {error}"))?;
    lower(Resource::Core, 0)?;
    lower(Resource::Nofile, OPEN_FILES)?;
    // The account refuses what is too large; this holds also where it should be wrong.
    lower(Resource::Fsize, args.quota.bytes.min(MAX_FILE))?;
    lower(Resource::As, args.memory_mib.saturating_add(OWN_MIB).saturating_mul(1 << 20))?;
    Ok(World::new(tree, args.memory_mib, args.quota))
}

/// Lowers a limit for good; one that is lower already stays.
fn lower(resource: Resource, wanted: u64) -> Result<(), String> {
    let hard = getrlimit(resource).maximum;
    let limit = hard.map_or(wanted, |hard| hard.min(wanted));
    let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
    setrlimit(resource, limit).map_err(|error| format!("a limit cannot be set: {error}"))
}
