//! A store of blobs in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;

use nylorun_domain::hash::sha256_hex;
use nylorun_ports::BoxFuture;
use nylorun_ports::blobs::{BlobBody, BlobKey, Blobs, BlobsUnavailable, Placed, PutBlob, PutError, PutRules, collect};

/// The blobs.
#[derive(Default)]
pub(crate) struct MemoryBlobs(Mutex<BTreeMap<BlobKey, Vec<u8>>>);

impl MemoryBlobs {
    fn find(&self, key: &BlobKey) -> Option<Vec<u8>> {
        self.0.lock().expect("nobody panics with it").get(key).cloned()
    }
}

impl Blobs for MemoryBlobs {
    fn put<'a>(
        &'a self,
        key: &'a BlobKey,
        body: BlobBody<'a>,
        rules: PutRules,
    ) -> BoxFuture<'a, Result<PutBlob, PutError>> {
        Box::pin(async move {
            let bytes = collect(body).await?;
            let (size_bytes, sha256) = (bytes.len() as u64, sha256_hex(&bytes));
            if size_bytes > rules.limit_bytes {
                return Err(PutError::TooLarge { limit_bytes: rules.limit_bytes });
            }
            if rules.sha256.is_some_and(|wanted| wanted != sha256) {
                return Err(PutError::OtherDigest { actual: sha256 });
            }
            let before = self.0.lock().expect("nobody panics with it").insert(key.clone(), bytes);
            let placed = if before.is_some() { Placed::Replaced } else { Placed::New };
            Ok(PutBlob { placed, size_bytes, sha256 })
        })
    }

    fn head<'a>(&'a self, key: &'a BlobKey) -> BoxFuture<'a, Result<Option<u64>, BlobsUnavailable>> {
        Box::pin(async { Ok(self.find(key).map(|bytes| bytes.len() as u64)) })
    }

    fn get<'a>(&'a self, key: &'a BlobKey) -> BoxFuture<'a, Result<Option<BlobBody<'static>>, BlobsUnavailable>> {
        Box::pin(async {
            Ok(self.find(key).map(|bytes| -> BlobBody<'static> {
                Box::pin(futures_util::stream::iter([Ok(bytes::Bytes::from(bytes))]))
            }))
        })
    }
}
