//! Which tokens are taken.

use proptest::prelude::*;

use crate::fixtures::{RSA_MODULUS, RSA_PEM, RSA_TOKEN};
use crate::support::{CLAIMS, Signer, Source, b64, jwks, person, refused, with_keys, with_source};

fn rsa_jwk(kid: &str) -> String {
    format!(r#"{{"kty":"RSA","n":"{RSA_MODULUS}","e":"AQAB","kid":"{kid}","alg":"RS256"}}"#)
}

#[tokio::test]
async fn each_algorithm_with_keys_of_either_source() {
    let person = person(&with_keys(&[RSA_PEM]), RSA_TOKEN).await.unwrap();
    assert_eq!((person.issuer.as_str(), person.user.as_str()), ("acme", "ann"));
    let (p256, ed25519) = (Signer::p256(), Signer::ed25519());
    let set = jwks(&[p256.jwk("p"), rsa_jwk("r1"), ed25519.jwk("e")]);
    let issuers = with_source(&Source::of(&set));
    for token in [RSA_TOKEN, &p256.sound("p"), &ed25519.sound("e")] {
        assert_eq!(crate::support::person(&issuers, token).await.unwrap().user.as_str(), "ann", "{token}");
    }
    // Without a name each key that fits is tried.
    let unnamed = ed25519.token(r#"{"alg":"EdDSA"}"#, CLAIMS);
    assert!(crate::support::person(&issuers, &unnamed).await.is_ok());
}

#[tokio::test]
async fn a_header_that_a_forger_could_use_is_refused_before_any_key() {
    let signer = Signer::ed25519();
    let source = Source::of(&jwks(&[signer.jwk("e")]));
    let issuers = with_source(&source);
    for (header, problem) in [
        (r#"{"alg":"none"}"#, "its alg is none of RS256, ES256 and EdDSA"),
        (r#"{"alg":"HS256"}"#, "its alg is none of RS256, ES256 and EdDSA"),
        (r#"{"alg":"eddsa"}"#, "its alg is none of RS256, ES256 and EdDSA"),
        (r#"{}"#, "its alg is none of RS256, ES256 and EdDSA"),
        (r#"[]"#, "its alg is none of RS256, ES256 and EdDSA"),
        (r#"{"alg":"EdDSA","jku":"https://x.example"}"#, "its header has jku"),
        (r#"{"alg":"EdDSA","jwk":{}}"#, "its header has jwk"),
        (r#"{"alg":"EdDSA","x5u":null}"#, "its header has x5u"),
        (r#"{"alg":"EdDSA","x5c":[]}"#, "its header has x5c"),
        (r#"{"alg":"EdDSA","crit":["exp"]}"#, "its header has crit"),
        (r#"{"alg":"EdDSA","kid":7}"#, "its kid is no text of 1 to 256 bytes"),
        (r#"{"alg":"EdDSA","kid":""}"#, "its kid is no text of 1 to 256 bytes"),
        ("x", "its header part is not JSON"),
    ] {
        let token = signer.token(header, CLAIMS);
        assert_eq!(refused(&issuers, &token).await, format!("the token is not valid: {problem}"), "{header}");
    }
    assert_eq!(source.asked(), 0);
}

#[tokio::test]
async fn only_what_was_signed_by_the_issuers_own_key_counts() {
    let (signer, other) = (Signer::ed25519(), Signer::ed25519());
    let p256 = Signer::p256();
    let issuers = with_source(&Source::of(&jwks(&[signer.jwk("e"), p256.jwk("p")])));
    let sound = signer.sound("e");
    let (message, signature) = sound.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    let bob = b64(CLAIMS.replace("ann", "bob").as_bytes());
    for forged in [
        format!("{header}.{bob}.{signature}"),
        format!("{message}.{}", b64(&[0; 64])),
        format!("{message}.AA"),
        format!("{message}."),
        other.sound("e"),
        other.sound("unknown"),
        // The name of one key, and the algorithm of another.
        signer.sound("p"),
        p256.sound("e"),
    ] {
        assert!(refused(&issuers, &forged).await.starts_with("the token is not valid"), "{forged}");
    }
    assert!(person(&issuers, &sound).await.is_ok());
}

#[tokio::test]
async fn tokens_of_others_and_what_is_no_token_are_refused() {
    let signer = Signer::p256();
    let source = Source::of(&jwks(&[signer.jwk("p")]));
    let issuers = with_source(&source);
    let long =
        signer.token(r#"{"alg":"ES256"}"#, &format!(r#"{{"iss":"https://id.example","x":"{}"}}"#, "x".repeat(16_384)));
    let elsewhere = signer.token(r#"{"alg":"ES256"}"#, &CLAIMS.replace("id.example", "other.example"));
    for (token, problem) in [
        ("", "it has no three parts"),
        ("a.b", "it has no three parts"),
        ("a.b.c.d", "its header part is not base64url"),
        ("e30=.e30.e30", "its header part is not base64url"),
        ("/w.e30.e30", "its header part is not base64url"),
        ("_w.e30.e30", "its header part is not UTF-8"),
        (long.as_str(), "it has more than 16384 bytes"),
        (elsewhere.as_str(), r#"its issuer "https://other.example" is not trusted"#),
    ] {
        assert_eq!(refused(&issuers, token).await, format!("the token is not valid: {problem}"), "{token}");
    }
    assert_eq!(source.asked(), 0, "no key is fetched for them");
    let none = nylorun_identity::Issuers::none(crate::support::now);
    assert_eq!(refused(&none, &signer.sound("p")).await, "the token is not valid: no issuer is trusted");
}

#[tokio::test]
async fn expiry_is_told_apart_and_other_claims_are_not() {
    let signer = Signer::ed25519();
    let issuers = with_source(&Source::of(&jwks(&[signer.jwk("e")])));
    let token = |claims: &str| signer.token(r#"{"alg":"EdDSA","kid":"e"}"#, claims);
    let expired = CLAIMS.replace("2000", "970");
    assert_eq!(refused(&issuers, &token(&expired)).await, "the token has expired");
    let in_tolerance = CLAIMS.replace("2000", "970.5");
    assert!(person(&issuers, &token(&in_tolerance)).await.is_ok());
    let other = expired.replace("nylorun", "other");
    assert_eq!(refused(&issuers, &token(&other)).await, "the token is not valid: aud is not nylorun");
    // Who signed nothing learns nothing of its time.
    let forged = Signer::ed25519().token(r#"{"alg":"EdDSA","kid":"e"}"#, &expired);
    assert_eq!(refused(&issuers, &forged).await, "the token is not valid: its signature is wrong");
}

proptest! {
    /// Whatever is sent, reading it gives a refusal and never panics.
    #[test]
    fn noise_is_refused(header in "[ -~]{0,60}", claims in ".{0,60}", rest in "[A-Za-z0-9_.=-]{0,80}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let issuers = with_keys(&[RSA_PEM]);
        for token in [format!("{}.{}.{rest}", b64(header.as_bytes()), b64(claims.as_bytes())), rest.clone()] {
            prop_assert!(runtime.block_on(person(&issuers, &token)).is_err());
        }
    }
}
