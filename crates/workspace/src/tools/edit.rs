//! `edit`: replaces text in a file, literally and byte for byte.

use std::io::Read;
use std::path::Path;

use nylorun_domain::json::Value;
use nylorun_domain::tool::ToolOutcome;

use super::input::Edit;
use super::{open_failure, reason};
use crate::files::{Files, absolute};

/// Largest file that is edited, in bytes.
const MAX_FILE: u64 = 64 << 20;

pub(super) fn edit(files: &dyn Files, call: &Edit) -> ToolOutcome {
    let path = absolute(&call.path);
    let mut content = Vec::new();
    if let Err(error) = files.open(&path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut content)) {
        return open_failure(&path, &error);
    }
    match replaced(&content, call, &path) {
        Err(refusal) => refusal,
        Ok((new_content, replacements)) => match files.write(&path, &new_content) {
            Err(error) => {
                let message = format!("{} cannot be written: {}", path.display(), reason(&error));
                ToolOutcome::failed("sandbox.write_failed", message)
            }
            Ok(()) => ToolOutcome::Completed {
                output: Value::object([
                    ("path", Value::from(path.to_string_lossy().into_owned())),
                    ("replacements", Value::from(i64::try_from(replacements).unwrap_or(i64::MAX))),
                ])
                .to_json(),
            },
        },
    }
}

/// The new content and how often the text stood in the old, or why nothing changes.
fn replaced(content: &[u8], call: &Edit, path: &Path) -> Result<(Vec<u8>, usize), ToolOutcome> {
    let path = path.display();
    if content.len() as u64 > MAX_FILE {
        let message = format!("{path} has more than {MAX_FILE} bytes; edit it with bash.");
        return Err(ToolOutcome::failed("sandbox.write_failed", message));
    }
    if call.old == call.new {
        let message = "old_string and new_string are the same; nothing would change.";
        return Err(ToolOutcome::failed("sandbox.edit_noop", message));
    }
    let found: Vec<usize> = positions(content, call.old.as_bytes());
    if found.is_empty() {
        let message = format!("old_string does not stand in {path}. It must match exactly, white space included.");
        return Err(ToolOutcome::failed("sandbox.edit_no_match", message));
    }
    if found.len() > 1 && !call.replace_all {
        let count = found.len();
        let message = format!(
            "old_string stands {count} times in {path}. Add text around it until it is unique, or set replace_all."
        );
        return Err(ToolOutcome::failed("sandbox.edit_not_unique", message));
    }
    let mut new_content = Vec::with_capacity(content.len());
    let mut copied = 0;
    for at in &found {
        new_content.extend_from_slice(&content[copied..*at]);
        new_content.extend_from_slice(call.new.as_bytes());
        copied = at + call.old.len();
    }
    new_content.extend_from_slice(&content[copied..]);
    Ok((new_content, found.len()))
}

/// Where `needle` stands in `content`, from left to right and without overlap.
fn positions(content: &[u8], needle: &[u8]) -> Vec<usize> {
    match regex::bytes::Regex::new(&literal(needle)) {
        Ok(regex) => regex.find_iter(content).map(|found| found.start()).collect(),
        // Too long for a compiled expression: compare at every place.
        Err(_) => {
            let mut found = Vec::new();
            let mut at = 0;
            while at + needle.len() <= content.len() {
                if content[at..].starts_with(needle) {
                    found.push(at);
                    at += needle.len();
                } else {
                    at += 1;
                }
            }
            found
        }
    }
}

fn literal(needle: &[u8]) -> String {
    regex::escape(&String::from_utf8_lossy(needle))
}
