//! Secrets sealed in an envelope (engine e.8): each has a data key of its own, which is wrapped with the vault key.
//!
//! Both layers are AES-256-GCM with a random 12-byte nonce and the 16-byte tag appended. A data key seals one secret,
//! and a vault key wraps far fewer than the 2^32 keys up to which random nonces are safe. What a secret belongs to is
//! bound into both layers: a row that is moved to another place does not open.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::kek::Kek;
pub use crate::random::NoRandomness;

const KEY_LEN: usize = 32;
const TAG_LEN: usize = 16;
/// Length of a wrapped data key: nonce, key, tag.
pub const WRAPPED_LEN: usize = NONCE_LEN + KEY_LEN + TAG_LEN;

/// What a secret belongs to: its purpose, and the ids and URLs that must not change under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding(Vec<u8>);

impl Binding {
    /// Binds to these parts, in this order. Each part's length stands before it, so that no two lists of parts read
    /// alike.
    pub fn new(purpose: &str, parts: &[&str]) -> Self {
        let mut bytes = Vec::new();
        for part in std::iter::once(&purpose).chain(parts) {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Self(bytes)
    }

    fn layer(&self, layer: &str) -> Aad<Vec<u8>> {
        Aad::from([layer.as_bytes(), &self.0].concat())
    }
}

/// A sealed secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The vault key that it was sealed with, by its id.
    pub kek_id: String,
    /// The wrapped data key: [`WRAPPED_LEN`] bytes.
    pub wrapped_key: Vec<u8>,
    /// The nonce of the ciphertext: 12 bytes.
    pub nonce: Vec<u8>,
    /// The ciphertext with its tag.
    pub ciphertext: Vec<u8>,
}

/// Why a sealed secret does not open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It was sealed with another vault key.
    #[error("the secret was sealed with another vault key ({0})")]
    OtherKek(String),
    /// It was changed, cut, or moved to another place.
    #[error("the sealed secret does not open: it was changed or belongs elsewhere")]
    Broken,
}

impl Sealed {
    /// The form for a single column: nonce, wrapped key, ciphertext. The vault key's id is kept beside it.
    pub fn to_column(&self) -> Vec<u8> {
        [&*self.nonce, &*self.wrapped_key, &*self.ciphertext].concat()
    }

    /// Reads the form of [`Sealed::to_column`].
    pub fn from_column(kek_id: &str, column: &[u8]) -> Result<Self, OpenError> {
        let (nonce, rest) = column.split_at_checked(NONCE_LEN).ok_or(OpenError::Broken)?;
        let (wrapped_key, ciphertext) = rest.split_at_checked(WRAPPED_LEN).ok_or(OpenError::Broken)?;
        Ok(Self {
            kek_id: kek_id.to_owned(),
            wrapped_key: wrapped_key.to_vec(),
            nonce: nonce.to_vec(),
            ciphertext: ciphertext.to_vec(),
        })
    }
}

impl Kek {
    /// Seals a secret to where it belongs.
    pub fn seal(&self, secret: &[u8], binding: &Binding) -> Result<Sealed, NoRandomness> {
        let mut data_key = Zeroizing::new([0; KEY_LEN]);
        crate::random::fill(data_key.as_mut())?;
        let (wrap_nonce, wrapped) = encrypt(&self.key, data_key.as_ref(), binding.layer(WRAP))?;
        let (nonce, ciphertext) = encrypt(&key(data_key.as_ref())?, secret, binding.layer(SECRET))?;
        let wrapped_key = [&wrap_nonce[..], &wrapped].concat();
        Ok(Sealed { kek_id: self.id().to_owned(), wrapped_key, nonce: nonce.to_vec(), ciphertext })
    }

    /// Opens a sealed secret that belongs here.
    pub fn open(&self, sealed: &Sealed, binding: &Binding) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        if sealed.kek_id != self.id() {
            return Err(OpenError::OtherKek(sealed.kek_id.clone()));
        }
        let (wrap_nonce, wrapped) = sealed.wrapped_key.split_at_checked(NONCE_LEN).ok_or(OpenError::Broken)?;
        let data_key = decrypt(&self.key, wrap_nonce, wrapped, binding.layer(WRAP))?;
        let data_key = key(&data_key).map_err(|_| OpenError::Broken)?;
        decrypt(&data_key, &sealed.nonce, &sealed.ciphertext, binding.layer(SECRET))
    }
}

const WRAP: &str = "nylorun.data-key/1";
const SECRET: &str = "nylorun.secret/1";

fn key(bytes: &[u8]) -> Result<LessSafeKey, NoRandomness> {
    UnboundKey::new(&AES_256_GCM, bytes).map(LessSafeKey::new).map_err(|_| NoRandomness)
}

fn encrypt(key: &LessSafeKey, plain: &[u8], aad: Aad<Vec<u8>>) -> Result<([u8; NONCE_LEN], Vec<u8>), NoRandomness> {
    let mut nonce = [0; NONCE_LEN];
    crate::random::fill(&mut nonce)?;
    // The plain text is overwritten in place.
    let mut buffer = Vec::with_capacity(plain.len() + TAG_LEN);
    buffer.extend_from_slice(plain);
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut buffer).map_err(|_| NoRandomness)?;
    Ok((nonce, buffer))
}

fn decrypt(key: &LessSafeKey, nonce: &[u8], sealed: &[u8], aad: Aad<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| OpenError::Broken)?;
    let mut buffer = Zeroizing::new(sealed.to_vec());
    let length = key.open_in_place(nonce, aad, &mut buffer).map_err(|_| OpenError::Broken)?.len();
    buffer.truncate(length);
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::kek::KEK_FILE;

    fn kek() -> Kek {
        let home = tempfile::tempdir().unwrap();
        Kek::load_or_create(&home.path().join(KEK_FILE)).unwrap()
    }

    fn binding() -> Binding {
        Binding::new("model", &["host", "host-model", "api_key", "https://api.example.com/v1"])
    }

    #[test]
    fn what_was_sealed_opens_at_its_place() {
        let kek = kek();
        let sealed = kek.seal(b"sk-secret", &binding()).unwrap();
        assert_eq!(sealed.kek_id, kek.id());
        assert_eq!((sealed.wrapped_key.len(), sealed.nonce.len(), sealed.ciphertext.len()), (60, 12, 9 + 16));
        let column = sealed.to_column();
        assert_eq!(Sealed::from_column(kek.id(), &column), Ok(sealed.clone()));
        assert_eq!(kek.open(&sealed, &binding()).unwrap().as_slice(), b"sk-secret");
        assert!(!column.windows(9).any(|window| window == b"sk-secret"));
    }

    #[test]
    fn two_seals_of_one_secret_share_nothing() {
        let kek = kek();
        let (a, b) = (kek.seal(b"x", &binding()).unwrap(), kek.seal(b"x", &binding()).unwrap());
        assert_ne!(a.nonce, b.nonce);
        assert_ne!(a.wrapped_key[..12], b.wrapped_key[..12]);
        assert_ne!(a.wrapped_key[12..], b.wrapped_key[12..]);
        assert_ne!(a.ciphertext, b.ciphertext);
    }

    #[test]
    fn a_row_that_was_moved_does_not_open() {
        let kek = kek();
        let sealed = kek.seal(b"x", &Binding::new("model", &["ab", "c"])).unwrap();
        for (purpose, parts) in [
            ("model", ["a", "bc"].as_slice()),
            ("model", &["abc"]),
            ("model", &["ab", "c", ""]),
            ("model", &["ab", "d"]),
            ("signing-key", &["ab", "c"]),
        ] {
            assert_eq!(kek.open(&sealed, &Binding::new(purpose, parts)), Err(OpenError::Broken), "{purpose} {parts:?}");
        }
    }

    #[test]
    fn another_vault_key_is_named_and_does_not_open() {
        let (ours, theirs) = (kek(), kek());
        let sealed = theirs.seal(b"x", &binding()).unwrap();
        assert_eq!(ours.open(&sealed, &binding()), Err(OpenError::OtherKek(theirs.id().into())));
        let forged = Sealed { kek_id: ours.id().into(), ..sealed };
        assert_eq!(ours.open(&forged, &binding()), Err(OpenError::Broken));
    }

    /// Made once: a file that is synced to disk for each case takes most of the test's time.
    static SHARED: LazyLock<Kek> = LazyLock::new(kek);

    proptest! {
        #[test]
        fn any_secret_survives_and_any_changed_bit_is_noticed(
            secret in proptest::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
            bit in 0..8,
        ) {
            let kek = &*SHARED;
            let column = kek.seal(&secret, &binding()).unwrap().to_column();
            let read = Sealed::from_column(kek.id(), &column).unwrap();
            prop_assert_eq!(kek.open(&read, &binding()).unwrap().to_vec(), secret);
            let mut changed = column.clone();
            changed[at.index(column.len())] ^= 1u8 << bit;
            let read = Sealed::from_column(kek.id(), &changed).unwrap();
            prop_assert_eq!(kek.open(&read, &binding()), Err(OpenError::Broken));
            let cut = Sealed::from_column(kek.id(), &column[..at.index(column.len())]);
            prop_assert_eq!(cut.and_then(|cut| kek.open(&cut, &binding())), Err(OpenError::Broken));
        }
    }
}
