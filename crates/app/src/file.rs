//! Definition files: what manifests name by their content (api 2.1, engine d.5). None is ever removed, so that what
//! sessions pinned stays readable.

use nylorun_domain::definition_file::{FileHash, MAX_FILE_BYTES};
use nylorun_domain::manifest::AgentManifest;
use nylorun_ports::blobs::{BlobBody, BlobKey, BlobsUnavailable, Placed, PutError, PutRules};

use crate::{App, Error};

/// A definition file that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Its name.
    pub file: FileHash,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Whether it was there before.
    pub placed: Placed,
}

impl App {
    /// Stores a definition file whose bytes have this hash. Storing it again is fine.
    pub async fn file_put(&self, file: FileHash, body: BlobBody<'_>) -> Result<StoredFile, Error> {
        let rules = PutRules { limit_bytes: MAX_FILE_BYTES, sha256: Some(file.hex().to_owned()) };
        let put = self.parts().blobs.put(&BlobKey::of_definition_file(&file), body, rules).await;
        match put {
            Ok(put) => Ok(StoredFile { file, size_bytes: put.size_bytes, placed: put.placed }),
            Err(PutError::TooLarge { limit_bytes }) => Err(Error::TooLarge { what: "a definition file", limit_bytes }),
            Err(PutError::OtherDigest { actual }) => {
                Err(Error::OtherFile { expected: file, actual: FileHash::of_digest(&actual) })
            }
            Err(PutError::Body(error)) => {
                tracing::debug!(%file, %error, "an upload broke off");
                Err(Error::BrokenBody)
            }
            Err(PutError::Unavailable(error)) => Err(error.into()),
        }
    }

    /// Whether this file is stored.
    pub async fn file_is_stored(&self, file: &FileHash) -> Result<bool, Error> {
        Ok(self.parts().blobs.head(&BlobKey::of_definition_file(file)).await?.is_some())
    }

    /// Refuses a manifest that names files which are not stored.
    pub(crate) async fn require_files(&self, manifest: &AgentManifest) -> Result<(), Error> {
        let mut missing = Vec::new();
        for file in manifest.files().into_iter().filter_map(|file| FileHash::parse(file).ok()) {
            if !self.file_is_stored(&file).await? {
                missing.push(file);
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(Error::FilesMissing { missing }) }
    }
}

impl From<BlobsUnavailable> for Error {
    fn from(error: BlobsUnavailable) -> Self {
        Self::Unavailable { message: error.to_string() }
    }
}
