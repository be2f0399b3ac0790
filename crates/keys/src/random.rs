//! Bytes of the operating system's generator.

use ring::rand::{SecureRandom, SystemRandom};

/// The operating system gave no random bytes. Nothing may be made without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random bytes")]
pub struct NoRandomness;

pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), NoRandomness> {
    SystemRandom::new().fill(bytes).map_err(|_| NoRandomness)
}
