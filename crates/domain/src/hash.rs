//! SHA-256, as lower-case hexadecimal.

use sha2::{Digest, Sha256};

/// Lower-case hexadecimal SHA-256 of these bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

/// A SHA-256 in lower-case hexadecimal, for what is hashed by the thousand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HexDigest([u8; 64]);

impl HexDigest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut digits = [0; 64];
        for (two, byte) in digits.chunks_exact_mut(2).zip(Sha256::digest(bytes)) {
            two.copy_from_slice(&hex(byte));
        }
        Self(digits)
    }

    /// Its 64 digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A SHA-256 of bytes that come one after the other, and that can be asked at any point.
#[derive(Clone, Debug, Default)]
pub struct RunningHash(Sha256);

impl RunningHash {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Lower-case hexadecimal SHA-256 of what came so far.
    pub fn hex(&self) -> String {
        to_hex(&self.0.clone().finalize())
    }
}

/// Lower-case hexadecimal of these bytes.
pub fn to_hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    digits.extend(bytes.iter().flat_map(|byte| hex(*byte)).map(char::from));
    digits
}

fn hex(byte: u8) -> [u8; 2] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]
}

#[cfg(test)]
mod tests {
    use super::{HexDigest, RunningHash, sha256_hex, to_hex};

    #[test]
    fn hashes_the_known_vectors() {
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let mut running = RunningHash::default();
        [&b"a"[..], b"", b"bc"].into_iter().for_each(|bytes| running.update(bytes));
        assert_eq!(running.hex(), sha256_hex(b"abc"));
        assert_eq!(HexDigest::of(b"abc").as_bytes(), sha256_hex(b"abc").as_bytes());
        assert_eq!(to_hex(&[0x00, 0x0f, 0xf0, 0xff]), "000ff0ff");
    }
}
