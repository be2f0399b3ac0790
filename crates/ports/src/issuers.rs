//! Who holds a token of a trusted issuer (api 1.6).

use nylorun_domain::issuer::{Person, TokenScope};

use crate::BoxFuture;

/// The issuers whose tokens this runtime takes.
pub trait TrustedIssuers: Send + Sync {
    /// Their identifiers, in the order of the identity file.
    fn identifiers(&self) -> Vec<String>;

    /// What their tokens may carry, all together.
    fn grantable(&self) -> Vec<TokenScope>;

    /// The person who holds this token. What a forger controls is checked before any key is looked for.
    fn person<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Person, TokenRefusal>>;
}

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// Of no trusted issuer, or not as that one's tokens are. The reason is for the log.
    #[error("the token is not valid: {0}")]
    Invalid(String),
    /// It was valid.
    #[error("the token has expired")]
    Expired,
    /// Its issuer's keys cannot be had now.
    #[error("the issuer's keys cannot be fetched")]
    Unavailable,
}
