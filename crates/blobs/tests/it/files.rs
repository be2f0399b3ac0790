//! The store of files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use futures_util::stream;
use nylorun_blobs::FileBlobs;
use nylorun_ports::blobs::Blobs;

use crate::contract::{body, holds, key, up_to};

#[tokio::test]
async fn files_hold_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    holds(&FileBlobs::open(folder.path()).unwrap()).await;
    assert_eq!(unfinished(folder.path()), 0);
}

fn unfinished(root: &Path) -> usize {
    fs::read_dir(root.join("unfinished")).unwrap().count()
}

#[tokio::test]
async fn what_was_put_is_there_for_the_next_process_and_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    FileBlobs::open(folder.path()).unwrap().put(&key("a/b"), body(b"kept", 4), up_to(4)).await.unwrap();
    let again = FileBlobs::open(folder.path()).unwrap();
    assert_eq!(again.head(&key("a/b")).await, Ok(Some(4)));
    let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode("by-key"), mode("by-key/a"), mode("by-key/a/b"), mode("unfinished")),
        (0o700, 0o700, 0o600, 0o700)
    );
}

#[tokio::test]
async fn what_a_crash_left_half_written_is_removed_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    drop(FileBlobs::open(folder.path()).unwrap());
    fs::write(folder.path().join("unfinished/0"), "half").unwrap();
    drop(FileBlobs::open(folder.path()).unwrap());
    assert_eq!(unfinished(folder.path()), 0);
}

#[tokio::test]
async fn a_put_that_is_given_up_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(folder.path()).unwrap();
    let never = Box::pin(stream::pending());
    let there = key("given-up");
    let mut put = blobs.put(&there, never, up_to(1));
    // Until its file is there.
    while unfinished(folder.path()) == 0 {
        tokio::select! {
            biased;
            _ = &mut put => unreachable!("its body never ends"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(put);
    while unfinished(folder.path()) > 0 {
        tokio::task::yield_now().await;
    }
}
