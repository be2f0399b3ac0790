//! Blobs: bytes under a key, kept outside of the database (engine d.5). A blob counts only once a row names it; one
//! that nobody names is garbage.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use nylorun_domain::definition_file::FileHash;

use crate::BoxFuture;

/// The bytes of a blob as they come.
pub type BlobBody<'a> = BoxStream<'a, Result<Bytes, BodyError>>;

/// The bytes broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BodyError(pub String);

/// The key of a blob: 1 to 1,024 characters, segments of `A-Z a-z 0-9 . _ -` between `/`, none of them `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobKey(String);

impl BlobKey {
    /// Longest key, in characters.
    const MAX_LEN: usize = 1_024;

    /// Reads a key; `None` when the text breaks the grammar.
    pub fn parse(text: &str) -> Option<Self> {
        let sound = |segment: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
            !matches!(segment, "" | "." | "..") && segment.bytes().all(allowed)
        };
        (text.len() <= Self::MAX_LEN && text.split('/').all(sound)).then(|| Self(text.to_owned()))
    }

    /// Where a definition file is.
    pub fn of_definition_file(file: &FileHash) -> Self {
        Self(format!("definitions/sha256/{}", file.hex()))
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What bytes must be to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutRules {
    /// Most bytes.
    pub limit_bytes: u64,
    /// Lower-case hexadecimal SHA-256 that they must have.
    pub sha256: Option<String>,
}

/// What a put did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// There was no such blob.
    New,
    /// There was one, which has these bytes now.
    Replaced,
}

/// A blob that was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBlob {
    /// What the put did.
    pub placed: Placed,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Lower-case hexadecimal SHA-256 of its bytes.
    pub sha256: String,
}

/// Why a blob was not put. What was there before is still there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// It has more bytes than the rules allow.
    #[error("more than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// Its bytes are others than the rules ask for.
    #[error("the bytes have SHA-256 {actual}")]
    OtherDigest {
        /// Lower-case hexadecimal SHA-256 of what came.
        actual: String,
    },
    /// Its bytes broke off.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The store of blobs failed.
    #[error(transparent)]
    Unavailable(#[from] BlobsUnavailable),
}

/// The store of blobs does not answer, or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("blobs unavailable: {0}")]
pub struct BlobsUnavailable(pub String);

/// Keeps blobs.
pub trait Blobs: Send + Sync {
    /// Stores all of `body`, whole and durably, or nothing. Takes no more of it than the rules allow.
    fn put<'a>(
        &'a self,
        key: &'a BlobKey,
        body: BlobBody<'a>,
        rules: PutRules,
    ) -> BoxFuture<'a, Result<PutBlob, PutError>>;
    /// The size of a blob in bytes; `None` when there is none.
    fn head<'a>(&'a self, key: &'a BlobKey) -> BoxFuture<'a, Result<Option<u64>, BlobsUnavailable>>;
    /// The bytes of a blob; `None` when there is none.
    fn get<'a>(&'a self, key: &'a BlobKey) -> BoxFuture<'a, Result<Option<BlobBody<'static>>, BlobsUnavailable>>;
}

/// All bytes of a body, in memory: for those that are known to be small.
///
/// # Errors
/// They broke off.
pub async fn collect(mut body: BlobBody<'_>) -> Result<Vec<u8>, BodyError> {
    let mut all = Vec::new();
    while let Some(chunk) = body.next().await {
        all.extend_from_slice(&chunk?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::BlobKey;

    #[test]
    fn keys_lead_nowhere_else() {
        for right in ["a", "definitions/sha256/0a", "A-Z/_x.y", ".tmp", &"a".repeat(1_024)] {
            assert_eq!(BlobKey::parse(right).as_ref().map(BlobKey::as_str), Some(right));
        }
        for wrong in ["", "/a", "a/", "a//b", ".", "a/..", "a b", "a\\b", "é", "a\0", &"a".repeat(1_025)] {
            assert_eq!(BlobKey::parse(wrong), None, "{wrong}");
        }
    }
}
