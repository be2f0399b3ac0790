//! `read`: the lines of a text file, numbered.

use std::io::{self, BufRead, BufReader};

use nylorun_domain::tool::ToolOutcome;

use super::clip::push_line_text;
use super::input::Read;
use super::{MAX_TEXT, Stopped, Until, open_failure, text_outcome};
use crate::files::{Files, absolute};

/// What is kept of one line, in bytes: more than 2,000 UTF-16 units can take.
const MAX_LINE_BYTES: usize = 8 * 1024;
/// Where a NUL tells that a file is no text, in bytes from its beginning.
const BINARY_PREFIX: usize = 8 * 1024;
/// How often a long read looks whether it is to stop, in chunks of the file.
const CHECK_EVERY: u32 = 64;

pub(super) fn read(files: &dyn Files, call: &Read, until: &Until) -> Result<ToolOutcome, Stopped> {
    let path = absolute(&call.path);
    let scan = match files.open(&path) {
        Ok(file) => scan(file, call, until),
        Err(error) => return Ok(open_failure(&path, &error)),
    };
    Ok(match scan {
        Ok(Scan::Text(lines)) if lines.bytes == 0 => text_outcome(&format!("[{} is an empty file]", path.display())),
        Ok(Scan::Text(lines)) => text_outcome(&lines.format(call.offset)),
        Ok(Scan::Binary) => text_outcome(&format!("[{} is a binary file and is not shown]", path.display())),
        Err(ScanError::Stopped(stopped)) => return Err(stopped),
        Err(ScanError::Io(error)) => open_failure(&path, &error),
    })
}

enum Scan {
    Text(Lines),
    Binary,
}

enum ScanError {
    Stopped(Stopped),
    Io(io::Error),
}

/// The lines that were asked for, and what is known of the rest.
#[derive(Default)]
struct Lines {
    shown: Vec<String>,
    total: u64,
    /// Size of the file.
    bytes: u64,
    /// Some shown line had bytes that are not UTF-8.
    replaced: bool,
}

/// Reads the file to its end, since the last line says how many lines are left, and keeps only what is shown.
fn scan(file: Box<dyn io::Read>, call: &Read, until: &Until) -> Result<Scan, ScanError> {
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut lines = Lines::default();
    let mut line = Vec::new();
    let mut open_line = false;
    let mut room = MAX_TEXT;
    for round in 0_u32.. {
        if round % CHECK_EVERY == 0 {
            until.check().map_err(ScanError::Stopped)?;
        }
        let chunk = reader.fill_buf().map_err(ScanError::Io)?;
        if chunk.is_empty() {
            break;
        }
        if lines.bytes == 0 && chunk[..chunk.len().min(BINARY_PREFIX)].contains(&0) {
            return Ok(Scan::Binary);
        }
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let kept = MAX_LINE_BYTES.saturating_sub(line.len()).min(text.len());
            line.extend_from_slice(&text[..kept]);
            open_line = text.len() == piece.len();
            if !open_line {
                lines.end_line(&mut line, call, &mut room);
            }
        }
        let length = chunk.len();
        lines.bytes += length as u64;
        reader.consume(length);
    }
    if open_line {
        lines.end_line(&mut line, call, &mut room);
    }
    Ok(Scan::Text(lines))
}

impl Lines {
    fn end_line(&mut self, line: &mut Vec<u8>, call: &Read, room: &mut usize) {
        self.total += 1;
        let in_window = self.total >= call.offset && self.total - call.offset < call.limit;
        // A line that did not fit ends the window, else a shorter one after it would be shown in its place.
        let no_gap = self.total - self.shown.len() as u64 == call.offset;
        if in_window && no_gap {
            let mut text = String::new();
            let lossy = String::from_utf8_lossy(line);
            push_line_text(&lossy, &mut text);
            let width = digits(call.offset.saturating_add(call.limit)) + 2;
            if let Some(left) = room.checked_sub(text.len() + width) {
                *room = left;
                self.replaced |= std::str::from_utf8(line).is_err() && line.len() < MAX_LINE_BYTES;
                self.shown.push(text);
            }
        }
        line.clear();
    }

    fn format(&self, offset: u64) -> String {
        let next = offset + self.shown.len() as u64;
        let width = digits(next.saturating_sub(1));
        let mut out = Vec::with_capacity(self.shown.len() + 2);
        for (at, text) in self.shown.iter().enumerate() {
            out.push(format!("{:>width$}\t{text}", offset + at as u64));
        }
        if self.replaced {
            out.push("[bytes that are not UTF-8 are shown as U+FFFD]".to_owned());
        }
        if !self.shown.is_empty() && self.total >= next {
            let left = self.total - next + 1;
            let plural = if left == 1 { "line" } else { "lines" };
            out.push(format!("[{left} more {plural}; continue with offset {next}]"));
        }
        out.join("\n")
    }
}

fn digits(number: u64) -> usize {
    number.to_string().len()
}
