//! When key sets are fetched (api 1.6). Time stands still but for what a test lets pass.

use std::time::Duration;

use nylorun_ports::issuers::TokenRefusal;
use tokio::time::advance;

use crate::support::{Signer, Source, jwks, person, refused, with_source};

const UNKNOWN: &str = "the token is not valid: no key of its issuer has signed it";

#[tokio::test(start_paused = true)]
async fn a_set_is_fetched_once_for_all_who_wait() {
    let signer = Signer::ed25519();
    let source = Source::of(&jwks(&[signer.jwk("e")]));
    let issuers = with_source(&source);
    let token = signer.sound("e");
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let (issuers, token) = (issuers.clone(), token.clone());
            tokio::spawn(async move { person(&issuers, &token).await })
        })
        .collect();
    for one in waiting {
        assert!(one.await.unwrap().is_ok());
    }
    assert_eq!(source.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_key_asks_again_at_most_once_a_minute() {
    let (old, new) = (Signer::ed25519(), Signer::ed25519());
    let source = Source::of(&jwks(&[old.jwk("old")]));
    let issuers = with_source(&source);
    assert!(person(&issuers, &old.sound("old")).await.is_ok());
    source.answer(Ok(&jwks(&[old.jwk("old"), new.jwk("new")])));
    advance(Duration::from_secs(59)).await;
    for _ in 0..10 {
        assert_eq!(refused(&issuers, &new.sound("new")).await, UNKNOWN);
    }
    assert_eq!(source.asked(), 1);
    advance(Duration::from_secs(1)).await;
    assert!(person(&issuers, &new.sound("new")).await.is_ok());
    for _ in 0..10 {
        assert_eq!(refused(&issuers, &new.sound("nobody's")).await, UNKNOWN);
    }
    assert_eq!(source.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_old_set_is_fetched_beside_the_request_and_keeps_working() {
    let (old, new) = (Signer::ed25519(), Signer::ed25519());
    let source = Source::of(&jwks(&[old.jwk("e")]));
    let issuers = with_source(&source);
    assert!(person(&issuers, &old.sound("e")).await.is_ok());
    // Its issuer replaced the key and kept the name.
    source.answer(Ok(&jwks(&[new.jwk("e")])));
    advance(Duration::from_secs(599)).await;
    assert!(person(&issuers, &old.sound("e")).await.is_ok());
    assert_eq!(source.asked(), 1);
    advance(Duration::from_secs(1)).await;
    assert!(person(&issuers, &old.sound("e")).await.is_ok(), "this request does not wait for the new set");
    while source.asked() < 2 {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    assert!(person(&issuers, &new.sound("e")).await.is_ok());
    assert!(person(&issuers, &old.sound("e")).await.is_err());
    source.answer(Err("it is down"));
    advance(Duration::from_secs(600)).await;
    for _ in 0..5 {
        assert!(person(&issuers, &new.sound("e")).await.is_ok());
        tokio::task::yield_now().await;
    }
    advance(Duration::from_secs(3_600)).await;
    assert!(person(&issuers, &new.sound("e")).await.is_ok(), "cached keys keep working");
}

#[tokio::test(start_paused = true)]
async fn without_any_set_the_issuer_is_unavailable() {
    let signer = Signer::p256();
    let set = jwks(&[signer.jwk("p")]);
    let source = Source::of("");
    let issuers = with_source(&source);
    let many = format!(r#"{{"keys":[{}]}}"#, vec!["{}"; 65].join(","));
    for broken in [Err("connection refused"), Ok("<html>"), Ok("{}"), Ok(r#"{"keys":{}}"#), Ok(many.as_str())] {
        source.answer(broken);
        assert_eq!(person(&issuers, &signer.sound("p")).await, Err(TokenRefusal::Unavailable), "{broken:?}");
        let asked = source.asked();
        assert_eq!(person(&issuers, &signer.sound("p")).await, Err(TokenRefusal::Unavailable));
        assert_eq!(source.asked(), asked, "not at every request");
        advance(Duration::from_secs(1)).await;
    }
    source.answer(Ok(&set));
    assert!(person(&issuers, &signer.sound("p")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn keys_for_other_uses_are_left_out() {
    let signer = Signer::p256();
    let sound = signer.jwk("p");
    for other in [
        sound.replace(r#""use":"sig""#, r#""use":"enc""#),
        sound.replace(r#""use":"sig""#, r#""alg":"ES384""#),
        sound.replace("P-256", "P-384"),
        sound.replace("EC", "oct"),
        sound.replace(r#""x":""#, r#""x":"AA"#),
        "{}".to_owned(),
        "[]".to_owned(),
        r#"{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"p"}"#.to_owned(),
    ] {
        let issuers = with_source(&Source::of(&jwks(std::slice::from_ref(&other))));
        assert_eq!(refused(&issuers, &signer.sound("p")).await, UNKNOWN, "{other}");
        let beside = with_source(&Source::of(&jwks(&[other.clone(), sound.clone()])));
        assert!(person(&beside, &signer.sound("p")).await.is_ok(), "{other}");
    }
}
