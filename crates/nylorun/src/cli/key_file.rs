//! Keys from files: never from an argument, since other users of a machine can read those.

use std::io::Write as _;
use std::path::Path;

use super::failure::Failure;
use super::term::{Style, Tone, visible};
use crate::home::Exposure;

/// Reads the key that is alone in a file; a pipe will do. Says so on standard error when others may read the file.
///
/// # Errors
/// The file cannot be read or holds nothing.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Failure::usage(format!("cannot read the key file {shown}: {error}")))?;
    let key = text.trim();
    if key.is_empty() {
        return Err(Failure::usage(format!("the key file {shown} is empty")).remedy("put the key into it, alone"));
    }
    if path.is_file()
        && let Ok(Some(Exposure::Mode(mode))) = Exposure::of(path)
    {
        warn(&format!("{shown} may be read by other users (mode {mode:04o}): run `chmod 600 {shown}`"));
    }
    Ok(key.to_owned())
}

fn warn(text: &str) {
    let style = Style::of_stderr();
    // Nobody can be told when standard error is gone.
    let _ = writeln!(std::io::stderr(), "{} {}", style.paint(Tone::Warn, "warning:"), visible(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_alone_in_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "  sk-1\n").unwrap();
        assert_eq!(read(&path).unwrap(), "sk-1");
        std::fs::write(&path, "\n").unwrap();
        for path in [path, folder.path().join("missing")] {
            assert_eq!(read(&path).unwrap_err().exit.number(), 2);
        }
    }
}
