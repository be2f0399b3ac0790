//! `nylorun logs`: the log of the server in the background, through its rotations.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use crate::cli::{Failure, LogsArgs};
use crate::home::Home;
use crate::log::rotated;

/// How often to look for new lines.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Prints the last lines, and what follows when that is wanted.
///
/// # Errors
/// There is no log (exit code 3), or it cannot be read.
pub(crate) fn run(args: LogsArgs) -> Result<(), Failure> {
    let home = Home::existing(&args.home.directory()?)?;
    let path = home.log_file();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Failure::not_running(format!("there is no log at {}", path.display()))
            .remedy("`nylorun start` writes one; `nylorun serve` logs to its standard error"),
        _ => Failure::new(format!("cannot read {}: {error}", path.display())),
    };
    let mut file = File::open(&path).map_err(failed)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(failed)?;
    print(&last_lines(&path, text, args.lines))?;
    if args.follow {
        follow(&path, file, failed)?;
    }
    Ok(())
}

/// The last lines of the log and, when it has too few, of the full one before it.
fn last_lines(path: &Path, current: Vec<u8>, count: usize) -> Vec<u8> {
    let is_short = current.iter().filter(|byte| **byte == b'\n').count() < count;
    let mut text = if is_short { fs::read(rotated(path, 1)).unwrap_or_default() } else { Vec::new() };
    text.extend(current);
    let ends = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    // The end before the first of the wanted lines; the last line may not be ended.
    let skipped = usize::from(text.ends_with(b"\n"));
    let begin = match count {
        0 => text.len(),
        _ => ends.map(|(at, _)| at + 1).nth(count - 1 + skipped).unwrap_or(0),
    };
    text.split_off(begin)
}

fn follow(path: &Path, mut file: File, failed: impl Fn(io::Error) -> Failure) -> Result<(), Failure> {
    loop {
        let is_rotated = is_another(&file, path);
        // After the look: what came into the old file before it was full is read to its end.
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(&failed)?;
        print(&text)?;
        if is_rotated {
            file = File::open(path).map_err(&failed)?;
        } else {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Whether another file has taken the place of this one.
fn is_another(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) != (there.dev(), there.ino()),
        // Between two names, for a moment.
        (Ok(_), Err(_)) | (Err(_), _) => false,
    }
}

fn print(text: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_reach_into_the_full_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nylorun.log");
        fs::write(rotated(&path, 1), "one\ntwo\n").unwrap();
        let last = |count| String::from_utf8(last_lines(&path, b"three\nfour\n".to_vec(), count)).unwrap();
        assert_eq!(last(0), "");
        assert_eq!(last(1), "four\n");
        assert_eq!(last(2), "three\nfour\n");
        assert_eq!(last(3), "two\nthree\nfour\n");
        assert_eq!(last(9), "one\ntwo\nthree\nfour\n");
        assert_eq!(last_lines(&path, b"a\nb".to_vec(), 1), b"b");
    }
}
