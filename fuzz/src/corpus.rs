//! The inputs that mutation begins from: files in `corpus/TARGET/`, small and written to be near what is accepted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One input and the file that holds it.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Where it stands.
    pub path: PathBuf,
    /// What it holds.
    pub input: Vec<u8>,
}

/// The inputs of a target, sorted by name.
///
/// # Errors
/// The folder or a file in it cannot be read.
pub fn seeds(target: &str) -> io::Result<Vec<Seed>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries: io::Result<Vec<_>> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let mut paths = entries?;
    paths.sort();
    paths.into_iter().map(|path| Ok(Seed { input: fs::read(&path)?, path })).collect()
}
