//! Trusted issuers: the identity file, tokens, and the keys that signed them (api 1.6, trust 3).
//!
//! What a token's claims make of a person, `domain::issuer` decides; here is what needs keys and a clock. Reasons of
//! refusals are logged and never told.

mod file;
mod issuer;
mod jwt;
mod key;
mod key_set;

use std::sync::Arc;

use nylorun_domain::issuer::{Person, TokenScope};
use nylorun_domain::time::Millis;
use nylorun_ports::BoxFuture;
use nylorun_ports::issuers::{TokenRefusal, TrustedIssuers};

pub use file::IdentityFile;
use issuer::Issuer;
use jwt::Unverified;

/// How much of an issuer's identifier is logged.
const MAX_SHOWN: usize = 200;

/// The issuers of an identity file.
#[derive(Clone)]
pub struct Issuers {
    issuers: Arc<[Issuer]>,
    now: fn() -> Millis,
}

impl Issuers {
    fn new(issuers: Vec<Issuer>, now: fn() -> Millis) -> Self {
        Self { issuers: issuers.into(), now }
    }

    /// No issuers: no token is taken.
    pub fn none(now: fn() -> Millis) -> Self {
        Self::new(Vec::new(), now)
    }

    async fn person_of(&self, token: &str) -> Result<Person, TokenRefusal> {
        if self.issuers.is_empty() {
            return Err(TokenRefusal::Invalid("no issuer is trusted".to_owned()));
        }
        let judged = match Unverified::read(token) {
            Ok(token) => self.judge(&token).await,
            Err(problem) => Err(TokenRefusal::Invalid(problem)),
        };
        if let Err(refusal) = &judged {
            tracing::info!(reason = refusal.to_string(), "a token is refused");
        }
        judged
    }

    async fn judge(&self, token: &Unverified<'_>) -> Result<Person, TokenRefusal> {
        let Some(issuer) = self.issuers.iter().find(|issuer| token.issuer() == Some(&issuer.rules.issuer)) else {
            let shown: String = token.issuer().unwrap_or_default().chars().take(MAX_SHOWN).collect();
            return Err(TokenRefusal::Invalid(format!("its issuer {shown:?} is not trusted")));
        };
        issuer.person(token, (self.now)()).await
    }
}

impl TrustedIssuers for Issuers {
    fn identifiers(&self) -> Vec<String> {
        self.issuers.iter().map(|issuer| issuer.rules.issuer.clone()).collect()
    }

    fn grantable(&self) -> Vec<TokenScope> {
        let granted =
            |scope: &TokenScope| self.issuers.iter().any(|issuer| issuer.rules.allowed_scopes.contains(scope));
        TokenScope::ALL.iter().copied().filter(granted).collect()
    }

    fn person<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Person, TokenRefusal>> {
        Box::pin(self.person_of(token))
    }
}
