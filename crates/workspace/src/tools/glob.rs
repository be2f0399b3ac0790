//! `glob`: regular files by name.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use nylorun_domain::tool::ToolOutcome;

use super::input::Glob;
use super::walk::{Enter, Met, Walk, walk};
use super::{Stopped, Until, text_outcome};
use crate::files::{Files, Kind, absolute, normalize};

/// How many files are shown.
const MAX_SHOWN: usize = 500;
/// How many files are looked at.
const MAX_CANDIDATES: usize = 20_000;

pub(super) fn glob(files: &dyn Files, call: &Glob, until: &Until) -> Result<ToolOutcome, Stopped> {
    let (root, matcher) = match target(call) {
        Ok(target) => target,
        Err(message) => return Ok(ToolOutcome::failed("tool.invalid-arguments", format!("pattern: {message}"))),
    };
    let at = match files.locate(&root) {
        Ok((Kind::Dir, at)) => at,
        Ok(_) | Err(_) => return Ok(text_outcome(&format!("[no files: {} is not a directory]", root.display()))),
    };
    let mut found: Vec<PathBuf> = Vec::new();
    let mut candidates = 0;
    walk(files, &at, Enter::NoGit, until, &mut |met| {
        let Met::File(path) = met else { return Walk::On };
        candidates += 1;
        if candidates > MAX_CANDIDATES {
            return Walk::Enough;
        }
        if matcher.is_match(path) {
            found.push(path.to_path_buf());
        }
        if found.len() > MAX_SHOWN { Walk::Enough } else { Walk::On }
    })?;
    Ok(text_outcome(&listing(&root, &found, candidates)))
}

/// The names, which a walk finds in the order of their bytes.
fn listing(root: &Path, found: &[PathBuf], candidates: usize) -> String {
    let mut lines: Vec<_> =
        found.iter().take(MAX_SHOWN).map(|path| root.join(path).to_string_lossy().into_owned()).collect();
    if found.is_empty() {
        lines.push("[no files match]".to_owned());
    }
    if found.len() > MAX_SHOWN {
        lines.push(format!("[the first {MAX_SHOWN} files; there are more: narrow pattern or path]"));
    } else if candidates > MAX_CANDIDATES {
        lines.push(format!("[only the first {MAX_CANDIDATES} files were looked at; name a path]"));
    }
    lines.join("\n")
}

/// The directory to search, and what matches below it.
fn target(call: &Glob) -> Result<(PathBuf, GlobMatcher), String> {
    if call.pattern.starts_with('/') {
        let (root, pattern) = split_absolute(&normalize(Path::new(&call.pattern)));
        return Ok((root, path_matcher(&pattern)?));
    }
    let root = absolute(&call.path);
    match call.pattern.strip_prefix("./") {
        Some(pattern) => Ok((root, path_matcher(pattern)?)),
        None => Ok((root, matcher(&call.pattern)?)),
    }
}

/// An absolute pattern as a directory to search and a pattern of the paths below it.
fn split_absolute(pattern: &Path) -> (PathBuf, String) {
    let text = pattern.to_string_lossy();
    let special = text.find(['*', '?', '[', '{', '\\']).unwrap_or(text.len());
    let slash = text[..special].rfind('/').unwrap_or(0);
    let root = if slash == 0 { "/" } else { &text[..slash] };
    (PathBuf::from(root), text[slash + 1..].to_owned())
}

/// Matches paths relative to the root: by name alone when the pattern has no `/`.
pub(super) fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    if pattern.contains('/') { path_matcher(pattern) } else { path_matcher(&format!("**/{pattern}")) }
}

/// Matches whole relative paths. `*` does not cross `/`, `**` does.
fn path_matcher(pattern: &str) -> Result<GlobMatcher, String> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| error.kind().to_string())
}
