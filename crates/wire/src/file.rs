//! Definition files on the wire (api 2.1).

use nylorun_domain::definition_file::FileHash;
use nylorun_domain::json::Value;

/// The answer to a file that is stored: `{sha256, size}` (decisions, Small print).
pub fn stored(file: &FileHash, size_bytes: u64) -> Value {
    let size = i64::try_from(size_bytes).unwrap_or(i64::MAX);
    Value::object([("sha256", Value::from(file.as_str())), ("size", Value::from(size))])
}
