//! One trusted issuer.

use nylorun_domain::issuer::{ClaimRefusal, IssuerRules, Person};
use nylorun_domain::time::Millis;
use nylorun_ports::issuers::TokenRefusal;

use crate::jwt::Unverified;
use crate::key_set::{KeySet, RemoteKeys, Signed, Unavailable};

pub(crate) struct Issuer {
    pub(crate) rules: IssuerRules,
    pub(crate) keys: Keys,
}

/// Where its keys come from.
pub(crate) enum Keys {
    /// From the identity file.
    Given(KeySet),
    /// From its key set.
    Remote(RemoteKeys),
}

impl Issuer {
    /// The person who holds a token that claims to be of this issuer.
    pub(crate) async fn person(&self, token: &Unverified<'_>, now: Millis) -> Result<Person, TokenRefusal> {
        let signed = match &self.keys {
            Keys::Given(keys) => Ok(keys.signed(token)),
            Keys::Remote(keys) => keys.signed(token).await,
        };
        let signed = signed.map_err(|Unavailable| TokenRefusal::Unavailable)?;
        match signed {
            Signed::Yes => {}
            Signed::No => return Err(TokenRefusal::Invalid("its signature is wrong".to_owned())),
            Signed::ByUnknown => return Err(TokenRefusal::Invalid("no key of its issuer has signed it".to_owned())),
        }
        self.rules.person(&token.claims, now).map_err(|refusal| match refusal {
            ClaimRefusal::Expired => TokenRefusal::Expired,
            ClaimRefusal::Invalid(problem) => TokenRefusal::Invalid(problem),
        })
    }
}
