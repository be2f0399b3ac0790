//! What every store of blobs does. A store's own file calls [`holds`] with an empty store.

use bytes::Bytes;
use futures_util::stream;
use nylorun_domain::hash::sha256_hex;
use nylorun_ports::blobs::{BlobBody, BlobKey, Blobs, BodyError, Placed, PutBlob, PutError, PutRules, collect};

/// All of the contract, on an empty store.
pub(crate) async fn holds(blobs: &dyn Blobs) {
    what_was_put_is_read_back(blobs).await;
    a_key_holds_what_was_put_last(blobs).await;
    what_breaks_the_rules_changes_nothing(blobs).await;
    a_body_that_breaks_off_changes_nothing(blobs).await;
    absent_keys_hold_nothing(blobs).await;
    writers_of_one_key_do_not_mix(blobs).await;
}

pub(crate) fn key(text: &str) -> BlobKey {
    BlobKey::parse(text).unwrap()
}

/// A body that comes in pieces of at most `size` bytes.
pub(crate) fn body(bytes: &[u8], size: usize) -> BlobBody<'static> {
    let pieces: Vec<_> = bytes.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    Box::pin(stream::iter(pieces))
}

pub(crate) fn up_to(limit_bytes: u64) -> PutRules {
    PutRules { limit_bytes, sha256: None }
}

async fn read(blobs: &dyn Blobs, name: &str) -> Option<Vec<u8>> {
    let body = blobs.get(&key(name)).await.unwrap()?;
    Some(collect(body).await.unwrap())
}

async fn what_was_put_is_read_back(blobs: &dyn Blobs) {
    let large: Vec<u8> = (0..200_001_u32).map(|n| (n % 251) as u8).collect();
    for (name, bytes) in [("read/large", &large[..]), ("read/empty", b""), ("read/a.b/c_d-E9", b"\0\xff")] {
        let digest = sha256_hex(bytes);
        let rules = PutRules { limit_bytes: bytes.len() as u64, sha256: Some(digest.clone()) };
        let put = blobs.put(&key(name), body(bytes, 7_000), rules).await;
        assert_eq!(put, Ok(PutBlob { placed: Placed::New, size_bytes: bytes.len() as u64, sha256: digest }));
        assert_eq!(blobs.head(&key(name)).await, Ok(Some(bytes.len() as u64)));
        assert_eq!(read(blobs, name).await.as_deref(), Some(bytes));
    }
}

async fn a_key_holds_what_was_put_last(blobs: &dyn Blobs) {
    for (bytes, placed) in [("first", Placed::New), ("second", Placed::Replaced), ("second", Placed::Replaced)] {
        let put = blobs.put(&key("last"), body(bytes.as_bytes(), 2), up_to(100)).await.unwrap();
        assert_eq!(put.placed, placed);
        assert_eq!(read(blobs, "last").await.as_deref(), Some(bytes.as_bytes()));
    }
}

async fn what_breaks_the_rules_changes_nothing(blobs: &dyn Blobs) {
    let put = |name: &'static str, rules| async move { blobs.put(&key(name), body(b"abcd", 3), rules).await };
    let other = PutRules { limit_bytes: 100, sha256: Some(sha256_hex(b"abc")) };
    assert_eq!(put("rules/large", up_to(3)).await, Err(PutError::TooLarge { limit_bytes: 3 }));
    assert_eq!(put("rules/other", other.clone()).await, Err(PutError::OtherDigest { actual: sha256_hex(b"abcd") }));
    assert_eq!((read(blobs, "rules/large").await, read(blobs, "rules/other").await), (None, None));
    put("rules/there", up_to(4)).await.unwrap();
    assert!(put("rules/there", up_to(3)).await.is_err() && put("rules/there", other).await.is_err());
    assert_eq!(read(blobs, "rules/there").await.as_deref(), Some(&b"abcd"[..]));
}

async fn a_body_that_breaks_off_changes_nothing(blobs: &dyn Blobs) {
    let cut = || BodyError("cut".to_owned());
    let broken = || Box::pin(stream::iter([Ok(Bytes::from_static(b"ab")), Err(cut())]));
    assert_eq!(blobs.put(&key("broken"), broken(), up_to(100)).await, Err(PutError::Body(cut())));
    assert_eq!(blobs.head(&key("broken")).await, Ok(None));
}

async fn absent_keys_hold_nothing(blobs: &dyn Blobs) {
    blobs.put(&key("absent/there"), body(b"x", 1), up_to(1)).await.unwrap();
    for name in ["absent/not", "absent", "absent/there/below"] {
        assert_eq!((blobs.head(&key(name)).await, read(blobs, name).await), (Ok(None), None), "{name}");
    }
}

async fn writers_of_one_key_do_not_mix(blobs: &dyn Blobs) {
    let texts: Vec<Vec<u8>> = (0..8_u8).map(|n| vec![n; 100_000]).collect();
    let there = key("together");
    let puts = texts.iter().map(|text| blobs.put(&there, body(text, 1_000), up_to(100_000)));
    for put in futures_util::future::join_all(puts).await {
        put.unwrap();
    }
    assert!(texts.contains(&read(blobs, "together").await.unwrap()));
}
