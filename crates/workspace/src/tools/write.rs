//! `write`: a file, whole.

use std::path::Path;

use nylorun_domain::json::Value;
use nylorun_domain::tool::ToolOutcome;

use super::input::Write;
use super::reason;
use crate::files::{Files, absolute};

pub(super) fn write(files: &dyn Files, call: &Write) -> ToolOutcome {
    let path = absolute(&call.path);
    let parent = path.parent().unwrap_or(Path::new("/"));
    if let Err(error) = files.make_dirs(parent) {
        let message = format!("{} cannot be made a directory: {}", parent.display(), reason(&error));
        return ToolOutcome::failed("sandbox.write_failed", message);
    }
    if let Err(error) = files.write(&path, call.content.as_bytes()) {
        let message = format!("{} cannot be written: {}", path.display(), reason(&error));
        return ToolOutcome::failed("sandbox.write_failed", message);
    }
    let bytes = i64::try_from(call.content.len()).unwrap_or(i64::MAX);
    let output =
        Value::object([("path", Value::from(path.to_string_lossy().into_owned())), ("bytes", Value::from(bytes))]);
    ToolOutcome::Completed { output: output.to_json() }
}
