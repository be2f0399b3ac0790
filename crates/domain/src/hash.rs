//! SHA-256, as lower-case hexadecimal.

use sha2::{Digest, Sha256};

/// Lower-case hexadecimal SHA-256 of these bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

/// Lower-case hexadecimal of these bytes.
pub fn to_hex(bytes: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]).map(char::from).collect()
}
