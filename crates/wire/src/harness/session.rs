//! What a harness finds out about a session, and the files of its definition (engine a.4). Nothing is behind these
//! yet: core answers `unavailable`.

use super::shape::{JsonObject, shapes};

shapes! {
    /// `session.mcp`: the tools that MCP servers offer.
    SessionMcp {
        /// The run.
        run_id: String = "runId",
        /// What was discovered, when it was.
        snapshot: Option<JsonObject> = "snapshot",
        /// What is wrong with servers.
        diagnostics: Vec<JsonObject> = "diagnostics",
    }

    /// The answer to `session.mcp`: what holds for the session.
    DiscoveredTools {
        /// The snapshot that was recorded first.
        snapshot: JsonObject = "snapshot",
        /// The session's tools.
        session_tools: Vec<JsonObject> = "sessionTools",
    }

    /// `definition.file`: the bytes of a file that the root manifest names.
    DefinitionFile {
        /// The run.
        run_id: String = "runId",
        /// `sha256:` and 64 hexadecimal digits.
        sha256: FileHash = "sha256",
    }

    /// The answer to `definition.file`.
    DefinitionBytes {
        /// The bytes.
        base64: String = "base64",
    }
}

/// `sha256:` and 64 lowercase hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHash(String);

impl super::shape::Shape for FileHash {
    fn write(&self, out: &mut String) {
        self.0.write(out);
    }

    fn read(text: &str) -> Result<Self, super::shape::Malformed> {
        let word = String::read(text)?;
        let is_hash = word.strip_prefix("sha256:").is_some_and(super::effect::is_sha256_hex);
        if !is_hash {
            return Err(super::shape::Malformed::new("must be sha256: and 64 lowercase hexadecimal digits"));
        }
        Ok(Self(word))
    }
}
