//! A token's parts: everything that a forger controls is checked here, before any key is looked for (trust 2).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nylorun_domain::json::{Value, parse};

use crate::key::Algorithm;

/// Largest token of an issuer, in bytes (api 1.6).
const MAX_TOKEN: usize = 16 << 10;
/// Longest `kid`, in bytes.
const MAX_KID: usize = 256;
/// Members of the header that would make somebody else's key the token's, or that nobody here understands.
const FORBIDDEN: [&str; 5] = ["jku", "jwk", "x5u", "x5c", "crit"];

/// A token that is well formed, and not yet known to be anybody's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unverified<'t> {
    pub(crate) algorithm: Algorithm,
    pub(crate) kid: Option<String>,
    pub(crate) claims: Value,
    /// What was signed.
    pub(crate) message: &'t str,
    pub(crate) signature: Vec<u8>,
}

impl<'t> Unverified<'t> {
    pub(crate) fn read(token: &'t str) -> Result<Self, String> {
        if token.len() > MAX_TOKEN {
            return Err(format!("it has more than {MAX_TOKEN} bytes"));
        }
        let (message, signature) = token.rsplit_once('.').ok_or("it has no three parts")?;
        let (header, claims) = message.split_once('.').ok_or("it has no three parts")?;
        let (algorithm, kid) = read_header(&part("header", header)?)?;
        let claims = part("claims", claims)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| "its signature is not base64url")?;
        Ok(Self { algorithm, kid, claims, message, signature })
    }

    /// The issuer that it claims to be of.
    pub(crate) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }
}

fn part(name: &str, part: &str) -> Result<Value, String> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| format!("its {name} part is not base64url"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("its {name} part is not UTF-8"))?;
    parse(&text).map_err(|_| format!("its {name} part is not JSON"))
}

fn read_header(header: &Value) -> Result<(Algorithm, Option<String>), String> {
    if let Some(name) = FORBIDDEN.iter().find(|name| header.get(name).is_some()) {
        return Err(format!("its header has {name}"));
    }
    let alg = header.get("alg").and_then(Value::as_str).and_then(Algorithm::parse);
    let algorithm = alg.ok_or("its alg is none of RS256, ES256 and EdDSA")?;
    let kid = match header.get("kid") {
        None => None,
        Some(kid) => {
            let kid = kid.as_str().filter(|kid| (1..=MAX_KID).contains(&kid.len()));
            Some(kid.ok_or("its kid is no text of 1 to 256 bytes")?.to_owned())
        }
    };
    Ok((algorithm, kid))
}
