//! A store of blobs in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;

use nylorun_domain::definition_file::FileHash;
use nylorun_domain::hash::sha256_hex;
use nylorun_ports::BoxFuture;
use nylorun_ports::blobs::{BlobBody, BlobKey, Blobs, BlobsUnavailable, PutBlob, PutError, PutRules};

/// Blobs that a test put here, or none that answers.
#[derive(Default)]
pub(crate) struct FakeBlobs {
    files: Mutex<BTreeMap<BlobKey, Vec<u8>>>,
    is_broken: Mutex<bool>,
}

impl FakeBlobs {
    /// Stores a definition file; gives its name.
    pub(crate) fn add(&self, bytes: &[u8]) -> String {
        let file = FileHash::of_digest(&sha256_hex(bytes));
        self.files.lock().unwrap().insert(BlobKey::of_definition_file(&file), bytes.to_vec());
        file.as_str().to_owned()
    }

    /// From now on it does not answer.
    pub(crate) fn break_down(&self) {
        *self.is_broken.lock().unwrap() = true;
    }

    fn find(&self, key: &BlobKey) -> Result<Option<Vec<u8>>, BlobsUnavailable> {
        if *self.is_broken.lock().unwrap() {
            return Err(BlobsUnavailable("broken".to_owned()));
        }
        Ok(self.files.lock().unwrap().get(key).cloned())
    }
}

impl Blobs for FakeBlobs {
    fn put<'a>(&'a self, _: &'a BlobKey, _: BlobBody<'a>, _: PutRules) -> BoxFuture<'a, Result<PutBlob, PutError>> {
        unreachable!("a run puts nothing")
    }

    fn head<'a>(&'a self, key: &'a BlobKey) -> BoxFuture<'a, Result<Option<u64>, BlobsUnavailable>> {
        Box::pin(async { Ok(self.find(key)?.map(|bytes| bytes.len() as u64)) })
    }

    fn get<'a>(&'a self, key: &'a BlobKey) -> BoxFuture<'a, Result<Option<BlobBody<'static>>, BlobsUnavailable>> {
        Box::pin(async {
            let found = self.find(key)?;
            Ok(found.map(|bytes| -> BlobBody<'static> {
                Box::pin(futures_util::stream::iter([Ok(bytes::Bytes::from(bytes))]))
            }))
        })
    }
}
