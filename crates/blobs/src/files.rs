//! Blobs as files of one folder.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use nylorun_domain::hash::to_hex;
use nylorun_ports::BoxFuture;
use nylorun_ports::blobs::{
    BlobBody, BlobKey, Blobs, BlobsUnavailable, BodyError, Placed, PutBlob, PutError, PutRules,
};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How much of a file is read at once, in bytes.
const CHUNK: usize = 64 << 10;

/// Blobs in a folder that one process uses at a time. A blob is written under a name of its own, and gets its key's
/// name only when all of it is on disk: a reader never sees half of it, and a crash leaves none.
#[derive(Debug)]
pub struct FileBlobs {
    /// The blobs, by their keys.
    blobs: PathBuf,
    /// What is being written.
    unfinished: PathBuf,
    writes: AtomicU64,
}

/// A file that is being written. It goes away with the value unless it was finished.
struct Unfinished(Option<PathBuf>);

impl FileBlobs {
    /// The blobs below `root`, which is made when it is missing. What an earlier process left half written is removed.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(root: &Path) -> io::Result<Self> {
        let (blobs, unfinished) = (root.join("by-key"), root.join("unfinished"));
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        for folder in [&blobs, &unfinished] {
            make_folder(folder)?;
        }
        Ok(Self { blobs, unfinished, writes: AtomicU64::new(0) })
    }

    fn path(&self, key: &BlobKey) -> PathBuf {
        self.blobs.join(key.as_str())
    }

    async fn write(&self, key: &BlobKey, body: BlobBody<'_>, rules: PutRules) -> Result<PutBlob, PutError> {
        let beside = self.unfinished.join(self.writes.fetch_add(1, Ordering::Relaxed).to_string());
        let (mut file, mut unfinished) = begin(beside.clone()).await?;
        let (size_bytes, sha256) = copy(body, &mut file, &beside, rules.limit_bytes).await?;
        if rules.sha256.is_some_and(|wanted| wanted != sha256) {
            return Err(PutError::OtherDigest { actual: sha256 });
        }
        file.sync_all().await.map_err(|error| failed("write", &beside, &error))?;
        drop(file);
        let (root, path) = (self.blobs.clone(), self.path(key));
        let named = tokio::task::spawn_blocking(move || name(&root, &beside, &path)).await;
        let placed = named.map_err(|error| BlobsUnavailable(error.to_string()))??;
        unfinished.0 = None;
        Ok(PutBlob { placed, size_bytes, sha256 })
    }
}

/// Makes a file that goes away with what is given beside it, also when nobody waits for it any more.
async fn begin(path: PathBuf) -> Result<(File, Unfinished), BlobsUnavailable> {
    let made = tokio::task::spawn_blocking(move || {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| failed("make", &path, &error))?;
        Ok((File::from_std(file), Unfinished(Some(path))))
    });
    made.await.map_err(|error| BlobsUnavailable(error.to_string()))?
}

/// Writes all of a body; gives its size and its digest.
async fn copy(mut body: BlobBody<'_>, file: &mut File, path: &Path, limit: u64) -> Result<(u64, String), PutError> {
    let (mut size, mut digest) = (0_u64, Sha256::new());
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        size += chunk.len() as u64;
        if size > limit {
            return Err(PutError::TooLarge { limit_bytes: limit });
        }
        digest.update(&chunk);
        file.write_all(&chunk).await.map_err(|error| failed("write", path, &error))?;
    }
    file.flush().await.map_err(|error| failed("write", path, &error))?;
    Ok((size, to_hex(&digest.finalize())))
}

/// Gives a file that is on disk its name, and waits until the name is on disk too.
fn name(root: &Path, beside: &Path, path: &Path) -> Result<Placed, BlobsUnavailable> {
    let folder = path.parent().unwrap_or(root);
    make_folder(folder).map_err(|error| failed("make", folder, &error))?;
    let placed = if path.exists() { Placed::Replaced } else { Placed::New };
    fs::rename(beside, path).map_err(|error| failed("name", path, &error))?;
    // The folders above may be as new as the file.
    for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(root)) {
        let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| failed("write", folder, &error))?;
    }
    Ok(placed)
}

/// Makes a folder for its owner alone, with those above it.
fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn failed(what: &str, path: &Path, error: &io::Error) -> BlobsUnavailable {
    BlobsUnavailable(format!("cannot {what} {}: {error}", path.display()))
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // What stays is removed when the folder is opened again.
            let _ = fs::remove_file(path);
        }
    }
}

impl Blobs for FileBlobs {
    fn put<'a>(
        &'a self,
        key: &'a BlobKey,
        body: BlobBody<'a>,
        rules: PutRules,
    ) -> BoxFuture<'a, Result<PutBlob, PutError>> {
        Box::pin(self.write(key, body, rules))
    }

    fn head<'a>(&'a self, key: &'a BlobKey) -> BoxFuture<'a, Result<Option<u64>, BlobsUnavailable>> {
        let path = self.path(key);
        Box::pin(async move {
            match tokio::fs::metadata(&path).await {
                Ok(file) => Ok(file.is_file().then_some(file.len())),
                Err(error) if is_missing(&error) => Ok(None),
                Err(error) => Err(failed("look at", &path, &error)),
            }
        })
    }

    fn get<'a>(&'a self, key: &'a BlobKey) -> BoxFuture<'a, Result<Option<BlobBody<'static>>, BlobsUnavailable>> {
        Box::pin(async move {
            // A folder can be opened as a file is, and not be read.
            if self.head(key).await?.is_none() {
                return Ok(None);
            }
            let path = self.path(key);
            match File::open(&path).await {
                Ok(file) => Ok(Some(read(file))),
                Err(error) if is_missing(&error) => Ok(None),
                Err(error) => Err(failed("read", &path, &error)),
            }
        })
    }
}

/// No file has this name, or one of the folders above is a file.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn read(file: File) -> BlobBody<'static> {
    Box::pin(stream::unfold(Some(file), |file| async {
        let mut file = file?;
        let mut chunk = vec![0; CHUNK];
        match file.read(&mut chunk).await {
            Ok(0) => None,
            Ok(length) => {
                chunk.truncate(length);
                Some((Ok(Bytes::from(chunk)), Some(file)))
            }
            Err(error) => Some((Err(BodyError(error.to_string())), None)),
        }
    }))
}
