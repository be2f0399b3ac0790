//! Tokens of trusted issuers, with the identity file and the key set that judge them.

use std::sync::Arc;

use futures_util::FutureExt as _;
use nylorun_domain::grammar::is_subject;
use nylorun_domain::json::parse;
use nylorun_domain::time::Millis;
use nylorun_identity::IdentityFile;
use nylorun_ports::BoxFuture;
use nylorun_ports::issuers::TrustedIssuers as _;
use nylorun_ports::key_sets::KeySets;

use super::lines;

/// What the one token of the corpus signs whose key nobody has any more: no other one is ever good.
const SIGNED: &str = concat!(
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIn0.",
    "eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOiJueWxvcnVuIiwic3ViIjoiYW5uIiwiZXhwIjoyMDAwfQ",
);

/// Every issuer's key set.
struct Given(Vec<u8>);

impl KeySets for Given {
    fn fetch<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

/// A file gives issuers or problems, and nobody but the issuer makes a person: one with a subject and with scopes that
/// the issuer may grant.
pub(super) fn tokens(input: &[u8]) {
    let ([token, file], key_set) = lines::<2>(input);
    let text = String::from_utf8_lossy(file);
    let Ok(document) = parse(&text) else { return };
    let source: Arc<dyn KeySets> = Arc::new(Given(key_set.to_vec()));
    let issuers = match IdentityFile::read(&document, &source, || Millis(1_000_000)) {
        Ok(file) => file.issuers,
        Err(problems) => {
            assert!(!problems.is_empty());
            return;
        }
    };
    let token = String::from_utf8_lossy(token);
    let Some(judged) = issuers.person(&token).now_or_never() else { panic!("nothing here waits") };
    if let Ok(person) = judged {
        assert!(token.starts_with(SIGNED), "a token that the issuer did not sign");
        assert!(is_subject(person.user.as_str()));
        let grantable = issuers.grantable();
        assert!(person.scopes.iter().all(|scope| grantable.contains(scope)));
    }
}
