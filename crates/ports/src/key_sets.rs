//! Fetching an issuer's public keys (api 1.6).

use crate::BoxFuture;

/// Fetches JSON Web Key Sets.
pub trait KeySets: Send + Sync {
    /// The document at this URL: at most 256 KiB, within 5 seconds, without a redirect. What went wrong is for the log.
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<u8>, String>>;
}
