//! Definition files: what a manifest names by its content (api 1.12, 2.1).

use std::fmt;

use crate::check::{Complaint, ProblemCode};
use crate::grammar::is_file_hash;

/// Largest definition file, in bytes (api 1.13).
pub const MAX_FILE_BYTES: u64 = 10 << 20;

/// The name of a definition file: `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileHash(String);

/// A text that is no [`FileHash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFileHash;

impl FileHash {
    /// Reads `sha256:<hex>`.
    ///
    /// # Errors
    /// It is something else.
    pub fn parse(text: &str) -> Result<Self, NoFileHash> {
        if is_file_hash(text) { Ok(Self(text.to_owned())) } else { Err(NoFileHash) }
    }

    /// The name of a file whose SHA-256 is `hex`, 64 lower-case hexadecimal digits.
    pub fn of_digest(hex: &str) -> Self {
        Self(format!("{PREFIX}{hex}"))
    }

    /// `sha256:<hex>`
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The 64 digits alone.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix(PREFIX).unwrap_or(&self.0)
    }
}

const PREFIX: &str = "sha256:";

impl fmt::Display for FileHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl From<NoFileHash> for Complaint {
    fn from(_: NoFileHash) -> Self {
        Self {
            code: ProblemCode::InvalidFormat,
            message: "Invalid file: expected sha256: and 64 lower-case hexadecimal digits".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FileHash;
    use crate::hash::sha256_hex;

    #[test]
    fn names_are_of_one_form() {
        let hex = sha256_hex(b"abc");
        let file = FileHash::of_digest(&hex);
        assert_eq!((file.hex(), FileHash::parse(file.as_str())), (hex.as_str(), Ok(file.clone())));
        for wrong in ["", "sha256:", &hex, &file.as_str().to_uppercase(), &format!("{file}0")] {
            assert!(FileHash::parse(wrong).is_err(), "{wrong}");
        }
    }
}
