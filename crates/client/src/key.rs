//! A caller's key, which is never printed.

use std::fmt;

/// A bearer credential: an application key, a management key (64 lowercase hex characters) or an issuer's token.
///
/// `Debug` shows nothing of it, and it has no `Display` and no serialization.
#[derive(Clone)]
pub struct Key(Box<str>);

/// Text that cannot be a bearer credential: empty, or with characters that no `Authorization` header carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key is empty or holds characters other than visible ASCII")]
pub struct InvalidKey;

impl Key {
    /// Takes a key as the server printed it.
    ///
    /// # Errors
    /// [`InvalidKey`] when it is empty or holds anything but visible ASCII.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, InvalidKey> {
        let text = text.into();
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || !visible { Err(InvalidKey) } else { Ok(Self(text)) }
    }

    /// The value, for the one place that sends it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_visible_ascii_and_never_printed() {
        assert_eq!(Key::new("").unwrap_err(), InvalidKey);
        assert_eq!(Key::new("a b").unwrap_err(), InvalidKey);
        assert_eq!(Key::new("a\nb").unwrap_err(), InvalidKey);
        assert_eq!(format!("{:?}", Key::new("abc").unwrap()), "Key(…)");
    }
}
