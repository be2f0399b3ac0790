//! `grep`: the lines that match an extended regular expression.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use globset::GlobMatcher;
use nylorun_domain::tool::ToolOutcome;
use regex::bytes::Regex;

use super::clip::push_line_text;
use super::ere::{Case, compile};
use super::glob::matcher;
use super::input::Grep;
use super::walk::{Enter, Met, Walk, walk};
use super::{MAX_TEXT, Stopped, Until, reason, text_outcome};
use crate::files::{Files, Kind, absolute};

/// Longest line that is searched, in bytes; what is longer counts as binary.
const MAX_LINE_BYTES: u64 = 16 << 20;
/// Where a NUL tells that a file is no text, in bytes from its beginning.
const BINARY_PREFIX: usize = 32 * 1024;
/// How many complaints are named when nothing was found.
const MAX_COMPLAINTS: usize = 10;
/// How often a long search looks whether it is to stop, in lines.
const CHECK_EVERY: u32 = 1024;

pub(super) fn grep(files: &dyn Files, call: &Grep, until: &Until) -> Result<ToolOutcome, Stopped> {
    let case = if call.ignore_case { Case::Ignored } else { Case::Sensitive };
    let regex = match compile(&call.pattern, case) {
        Ok(regex) => regex,
        Err(message) => return Ok(failed(&format!("pattern: {message}"))),
    };
    let filter = match call.glob.as_deref().map(matcher).transpose() {
        Ok(filter) => filter,
        Err(message) => return Ok(failed(&format!("glob: {message}"))),
    };
    let root = absolute(&call.path);
    let mut search = Search { files, regex, filter, until, max: call.max_results, found: Found::default() };
    match files.locate(&root) {
        Err(error) => search.found.complain(&call.path, &error),
        Ok((Kind::Dir, at)) => search.tree(&at, &call.path)?,
        Ok((Kind::File, at)) => search.file(&at, at.file_name().map(Path::new).unwrap_or(&at), &call.path)?,
        Ok((Kind::Link | Kind::Other, _)) => search.found.complain(&call.path, &io::Error::other("not a regular file")),
    }
    Ok(search.found.outcome())
}

fn failed(message: &str) -> ToolOutcome {
    ToolOutcome::failed("sandbox.grep_failed", message)
}

struct Search<'a> {
    files: &'a dyn Files,
    regex: Regex,
    filter: Option<GlobMatcher>,
    until: &'a Until,
    max: usize,
    found: Found,
}

/// Lines found so far.
#[derive(Default)]
struct Found {
    text: String,
    lines: usize,
    complaints: Vec<String>,
    end: Option<End>,
}

/// Why the search ended before all was searched.
#[derive(Clone, Copy)]
enum End {
    MaxResults,
    MaxText,
}

impl Search<'_> {
    fn tree(&mut self, root: &Path, shown_root: &str) -> Result<(), Stopped> {
        let prefix = shown_root.trim_end_matches('/');
        let mut stopped = None;
        let (files, until) = (self.files, self.until);
        walk(files, root, Enter::All, until, &mut |met| {
            match met {
                Met::Unreadable(path, error) => self.found.complain(&format!("{prefix}/{}", path.display()), error),
                Met::File(path) => {
                    let shown = format!("{prefix}/{}", path.display());
                    stopped = self.file(&root.join(path), path, &shown).err();
                }
            }
            if stopped.is_some() || self.found.end.is_some() { Walk::Enough } else { Walk::On }
        })?;
        stopped.map_or(Ok(()), Err)
    }

    /// Searches one file; `relative` is what the filter sees, `shown` what stands before its lines.
    fn file(&mut self, path: &Path, relative: &Path, shown: &str) -> Result<(), Stopped> {
        if self.filter.as_ref().is_some_and(|filter| !filter.is_match(relative)) {
            return Ok(());
        }
        match self.files.open(path) {
            Ok(file) => self.lines(BufReader::with_capacity(64 * 1024, file), shown),
            Err(error) => {
                self.found.complain(shown, &error);
                Ok(())
            }
        }
    }

    fn lines(&mut self, mut reader: BufReader<Box<dyn io::Read>>, shown: &str) -> Result<(), Stopped> {
        let mut is_binary = match reader.fill_buf() {
            Ok(prefix) => prefix[..prefix.len().min(BINARY_PREFIX)].contains(&0),
            Err(error) => {
                self.found.complain(shown, &error);
                return Ok(());
            }
        };
        let mut line = Vec::new();
        for number in 1_u32.. {
            if number % CHECK_EVERY == 0 {
                self.until.check()?;
            }
            line.clear();
            match io::Read::take(&mut reader, MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    self.found.complain(shown, &error);
                    break;
                }
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            is_binary |= text.len() as u64 >= MAX_LINE_BYTES;
            if !self.regex.is_match(text) {
                continue;
            }
            if is_binary {
                self.found.add(format!("{shown}: binary file matches"), self.max);
                break;
            }
            let mut found = format!("{shown}:{number}:");
            push_line_text(&String::from_utf8_lossy(text), &mut found);
            self.found.add(found, self.max);
            if self.found.end.is_some() {
                break;
            }
        }
        Ok(())
    }
}

impl Found {
    fn add(&mut self, line: String, max: usize) {
        if self.lines == max {
            self.end = Some(End::MaxResults);
        } else if self.text.len() + line.len() >= MAX_TEXT {
            self.end = Some(End::MaxText);
        } else {
            self.lines += 1;
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }

    fn complain(&mut self, shown: &str, error: &io::Error) {
        if self.complaints.len() < MAX_COMPLAINTS {
            let reason = match error.kind() {
                io::ErrorKind::NotFound => "No such file or directory".to_owned(),
                _ => reason(error),
            };
            self.complaints.push(format!("{shown}: {reason}"));
        }
    }

    fn outcome(mut self) -> ToolOutcome {
        if self.lines == 0 && !self.complaints.is_empty() {
            return failed(&self.complaints.join("\n"));
        }
        match self.end {
            None if self.lines == 0 => self.text.push_str("[no matches]"),
            None => {
                self.text.pop();
            }
            Some(End::MaxResults) => {
                let shown = self.lines;
                self.text += &format!("[the first {shown} matches; there are more: narrow pattern, path or glob]");
            }
            Some(End::MaxText) => {
                let shown = self.lines;
                self.text += &format!(
                    "[the first {shown} matches, cut at 256 KiB; there are more: narrow pattern, path or glob]"
                );
            }
        }
        text_outcome(&self.text)
    }
}
