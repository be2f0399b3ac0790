//! Keys of callers: 64 lower-case hexadecimal characters, shown once; a store keeps their SHA-256 alone (trust 3).
//!
//! A plain hash is right: a key is 256 random bits, which nobody can guess from it.

use nylorun_domain::hash::{sha256_hex, to_hex};
use nylorun_ports::secret::Secret;
use ring::hmac;
use zeroize::Zeroizing;

pub use crate::random::NoRandomness;

/// Length of a key, in characters.
pub const KEY_LEN: usize = 64;

/// Makes a key.
pub fn generate() -> Result<Secret, NoRandomness> {
    let mut bytes = Zeroizing::new([0; KEY_LEN / 2]);
    crate::random::fill(bytes.as_mut())?;
    Ok(Secret::new(to_hex(bytes.as_ref())))
}

/// Whether a text has the form of a key. What has not need not be looked up.
pub fn is_well_formed(text: &str) -> bool {
    text.len() == KEY_LEN && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What a store keeps of a key: its SHA-256 in lower-case hexadecimal.
pub fn hash(key: &str) -> String {
    sha256_hex(key.as_bytes())
}

/// Whether a key that a caller sent is the one with this stored hash. Takes the same time wherever they differ.
pub fn matches(key: &str, stored_hash: &str) -> bool {
    // Tags are compared in constant time, which slices of bytes are not.
    let comparison = hmac::Key::new(hmac::HMAC_SHA256, b"nylorun caller key");
    let stored = hmac::sign(&comparison, stored_hash.as_bytes());
    hmac::verify(&comparison, hash(key).as_bytes(), stored.as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_64_hexadecimal_characters_and_differ() {
        let (a, b) = (generate().unwrap(), generate().unwrap());
        assert!(is_well_formed(a.expose()) && is_well_formed(b.expose()));
        assert_ne!(a.expose(), b.expose());
        assert!(!is_well_formed(&a.expose().to_uppercase().replace(|c: char| c.is_ascii_digit(), "A")));
        assert!(!is_well_formed(&a.expose()[1..]));
        assert!(!is_well_formed(&"é".repeat(32)));
    }

    #[test]
    fn only_the_same_key_matches() {
        let (a, b) = (generate().unwrap(), generate().unwrap());
        assert!(matches(a.expose(), &hash(a.expose())));
        assert!(!matches(b.expose(), &hash(a.expose())));
        // What is stored is not a key.
        assert!(!matches(&hash(a.expose()), &hash(a.expose())));
        assert!(!matches("", ""));
    }
}
