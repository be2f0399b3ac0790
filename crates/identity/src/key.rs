//! Public keys of issuers, and what they have signed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nylorun_domain::json::Value;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use spki::der::asn1::UintRef;
use spki::der::pem::PemLabel;
use spki::der::{Decode as _, Document, Reader as _, SliceReader};
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef};

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const ED25519_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// Least bits of an RSA key (api 1.6); more than the most takes too long to check.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;
/// Bytes of an uncompressed point of P-256: `4`, then both coordinates.
const POINT_LEN: usize = 65;
const COORDINATE_LEN: usize = 32;
const ED25519_LEN: usize = 32;

/// Algorithms that are taken (api 1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

impl Algorithm {
    pub(crate) fn parse(alg: &str) -> Option<Self> {
        match alg {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A public key that one of the algorithms uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PublicKey {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// The algorithm that it is for: a key is never used for another one.
    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
            Self::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// Whether it has signed this.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let checked = match self {
            Self::Rsa { modulus, exponent } => RsaPublicKeyComponents { n: modulus, e: exponent }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                message,
                signature,
            ),
            Self::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature),
            Self::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
        };
        checked.is_ok()
    }

    /// Reads a `PUBLIC KEY` in PEM.
    pub(crate) fn from_pem(pem: &str) -> Result<Self, &'static str> {
        const KINDS: &str = "Invalid key: expected RSA, P-256 or Ed25519";
        let (label, document) = Document::from_pem(pem.trim()).map_err(|_| "Invalid key: expected a key in PEM")?;
        SubjectPublicKeyInfoRef::validate_pem_label(label)
            .map_err(|_| "Invalid key: expected PEM that begins with -----BEGIN PUBLIC KEY-----")?;
        let info = SubjectPublicKeyInfoRef::from_der(document.as_bytes()).map_err(|_| KINDS)?;
        let bytes = info.subject_public_key.as_bytes().ok_or(KINDS)?;
        match (info.algorithm.oid, info.algorithm.parameters_oid().ok()) {
            (RSA, _) => {
                let (modulus, exponent) = rsa_numbers(bytes).map_err(|_| KINDS)?;
                Self::rsa(modulus, exponent)
            }
            (EC, Some(P256)) if bytes.len() == POINT_LEN => Ok(Self::P256(bytes.to_vec())),
            (ED25519_KEY, _) if bytes.len() == ED25519_LEN => Ok(Self::Ed25519(bytes.to_vec())),
            _ => Err(KINDS),
        }
    }

    /// Reads a JSON Web Key; `None` for one of another kind or for another use.
    pub(crate) fn from_jwk(jwk: &Value) -> Option<Self> {
        let text = |name| jwk.get(name).and_then(Value::as_str);
        let bytes = |name| text(name).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        let coordinate = |name| bytes(name).filter(|bytes| bytes.len() == COORDINATE_LEN);
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let key = match (text("kty")?, text("crv")) {
            ("RSA", _) => Self::rsa(bytes("n")?, bytes("e")?).ok()?,
            ("EC", Some("P-256")) => Self::P256([vec![4], coordinate("x")?, coordinate("y")?].concat()),
            ("OKP", Some("Ed25519")) => Self::Ed25519(bytes("x").filter(|key| key.len() == ED25519_LEN)?),
            _ => return None,
        };
        let is_for = |alg| Algorithm::parse(alg) == Some(key.algorithm());
        text("alg").is_none_or(is_for).then_some(key)
    }

    fn rsa(modulus: Vec<u8>, exponent: Vec<u8>) -> Result<Self, &'static str> {
        let strip = |number: Vec<u8>| number.into_iter().skip_while(|byte| *byte == 0).collect::<Vec<u8>>();
        let (modulus, exponent) = (strip(modulus), strip(exponent));
        let leading = modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
        if !RSA_BITS.contains(&(modulus.len() * 8 - leading)) {
            return Err("Invalid key: an RSA key has 2048 to 8192 bits");
        }
        Ok(Self::Rsa { modulus, exponent })
    }
}

/// Modulus and exponent of PKCS #1.
fn rsa_numbers(der: &[u8]) -> spki::der::Result<(Vec<u8>, Vec<u8>)> {
    let mut reader = SliceReader::new(der)?;
    let numbers = reader.sequence(|inside| {
        let (modulus, exponent): (UintRef<'_>, UintRef<'_>) = (inside.decode()?, inside.decode()?);
        Ok::<_, spki::der::Error>((modulus.as_bytes().to_vec(), exponent.as_bytes().to_vec()))
    })?;
    reader.finish()?;
    Ok(numbers)
}
