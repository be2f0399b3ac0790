//! Issuers that sign, and a source of key sets that counts.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nylorun_domain::issuer::Person;
use nylorun_domain::json::parse;
use nylorun_domain::time::Millis;
use nylorun_identity::{IdentityFile, Issuers};
use nylorun_ports::BoxFuture;
use nylorun_ports::issuers::{TokenRefusal, TrustedIssuers as _};
use nylorun_ports::key_sets::KeySets;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};

/// What every test's clock says: 1,000 seconds after 1970.
pub(crate) fn now() -> Millis {
    Millis(1_000_000)
}

/// Claims that are valid now.
pub(crate) const CLAIMS: &str = r#"{"iss":"https://id.example","aud":"nylorun","sub":"ann","exp":2000}"#;

/// A key that signs.
pub(crate) enum Signer {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    pub(crate) fn p256() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self::P256(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap())
    }

    pub(crate) fn ed25519() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    pub(crate) fn alg(&self) -> &'static str {
        match self {
            Self::P256(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    /// The public half as a JSON Web Key with this `kid`.
    pub(crate) fn jwk(&self, kid: &str) -> String {
        match self {
            Self::P256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                format!(r#"{{"kty":"EC","crv":"P-256","x":"{}","y":"{}","kid":"{kid}","use":"sig"}}"#, b64(x), b64(y))
            }
            Self::Ed25519(pair) => {
                let x = b64(pair.public_key().as_ref());
                format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","kid":"{kid}","alg":"EdDSA"}}"#)
            }
        }
    }

    /// A token with this header and these claims.
    pub(crate) fn token(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", b64(header.as_bytes()), b64(claims.as_bytes()));
        let signature = match self {
            Self::P256(pair) => b64(pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref()),
            Self::Ed25519(pair) => b64(pair.sign(message.as_bytes()).as_ref()),
        };
        format!("{message}.{signature}")
    }

    /// A sound token by the key of this `kid`.
    pub(crate) fn sound(&self, kid: &str) -> String {
        self.token(&format!(r#"{{"alg":"{}","typ":"JWT","kid":"{kid}"}}"#, self.alg()), CLAIMS)
    }
}

pub(crate) fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn jwks(keys: &[String]) -> String {
    format!(r#"{{"keys":[{}]}}"#, keys.join(","))
}

/// A source that answers with what it was last told to, and counts.
pub(crate) struct Source(Mutex<(Result<String, String>, usize)>);

impl Source {
    pub(crate) fn of(set: &str) -> Arc<Self> {
        Arc::new(Self(Mutex::new((Ok(set.to_owned()), 0))))
    }

    pub(crate) fn answer(&self, answer: Result<&str, &str>) {
        self.0.lock().unwrap().0 = answer.map(str::to_owned).map_err(str::to_owned);
    }

    pub(crate) fn asked(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

impl KeySets for Source {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        assert_eq!(url, "https://id.example/keys");
        Box::pin(async {
            tokio::task::yield_now().await;
            let mut state = self.0.lock().unwrap();
            state.1 += 1;
            state.0.clone().map(String::into_bytes)
        })
    }
}

/// The file's issuers, whose key sets this source has.
pub(crate) fn issuers_of(file: &str, source: &Arc<Source>) -> Issuers {
    let source: Arc<dyn KeySets> = Arc::<Source>::clone(source);
    IdentityFile::read(&parse(file).unwrap(), &source, now).unwrap().issuers
}

/// One issuer with everything by default and these keys.
pub(crate) fn with_keys(keys: &[&str]) -> Issuers {
    let keys: Vec<_> = keys.iter().map(|pem| nylorun_domain::json::quoted(pem)).collect();
    let entry =
        format!(r#""name":"acme","issuer":"https://id.example","audience":"nylorun","keys":[{}]"#, keys.join(","));
    issuers_of(&format!(r#"{{"issuers":[{{{entry}}}]}}"#), &Source::of(""))
}

/// One issuer with everything by default and the key set of this source.
pub(crate) fn with_source(source: &Arc<Source>) -> Issuers {
    let entry = r#""name":"acme","issuer":"https://id.example","audience":"nylorun","jwks":"https://id.example/keys""#;
    issuers_of(&format!(r#"{{"issuers":[{{{entry}}}]}}"#), source)
}

pub(crate) async fn person(issuers: &Issuers, token: &str) -> Result<Person, TokenRefusal> {
    issuers.person(token).await
}

pub(crate) async fn refused(issuers: &Issuers, token: &str) -> String {
    person(issuers, token).await.unwrap_err().to_string()
}
