//! What an identity file may say.

use std::sync::Arc;

use nylorun_domain::issuer::{Agents, TokenScope};
use nylorun_domain::json::{parse, quoted};
use nylorun_identity::IdentityFile;
use nylorun_ports::issuers::TrustedIssuers as _;
use nylorun_ports::key_sets::KeySets;

use crate::fixtures::{ED25519_PEM, P256_PEM, P384_PEM, RSA_PEM, RSA_PKCS1_PEM, SHORT_RSA_PEM};
use crate::support::{Signer, Source, issuers_of, jwks, now, person};

/// An entry with these members beside a name, an issuer and an audience.
fn file(members: &str) -> String {
    format!(r#"{{"issuers":[{{"name":"acme","issuer":"https://id.example","audience":"nylorun",{members}}}]}}"#)
}

fn read(text: &str) -> Result<IdentityFile, Vec<String>> {
    let source: Arc<dyn KeySets> = Source::of("");
    IdentityFile::read(&parse(text).unwrap(), &source, now)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn problems(text: &str) -> Vec<String> {
    read(text).err().unwrap_or_default()
}

#[test]
fn keys_are_rsa_p256_or_ed25519_in_pem() {
    for pem in [RSA_PEM, P256_PEM, ED25519_PEM, &format!("\n{ED25519_PEM}\n")] {
        assert_eq!(problems(&file(&format!(r#""keys":[{}]"#, quoted(pem)))), Vec::<String>::new(), "{pem}");
    }
    for (pem, problem) in [
        (SHORT_RSA_PEM, "an RSA key has 2048 to 8192 bits"),
        (P384_PEM, "expected RSA, P-256 or Ed25519"),
        (RSA_PKCS1_PEM, "expected PEM that begins with -----BEGIN PUBLIC KEY-----"),
        ("hunter2", "expected a key in PEM"),
        ("", "expected a key in PEM"),
    ] {
        let found = problems(&file(&format!(r#""keys":[{}]"#, quoted(pem))));
        assert_eq!(found, [format!("issuers.0.keys.0: Invalid key: {problem}")], "{pem}");
    }
}

#[test]
fn every_problem_is_named_at_once() {
    let bad = r#"{"issuers":[
        {"name":"Acme","issuer":"urn:nylorun:tenant:x","audience":"","subject":"all","scopes":{"claim":"s","fixed":[]},
         "allowedScopes":["agents:write"],"agents":"some","sandboxes":["*"]},
        {"name":"b","issuer":"https://b.example","audience":"x","jwks":"http://b.example/k","keys":[]}]}"#;
    let names: Vec<_> =
        problems(bad).iter().map(|problem| problem.split(':').next().unwrap_or_default().to_owned()).collect();
    let expected = [
        "issuers.0.name",
        "issuers.0.issuer",
        "issuers.0.audience",
        "issuers.0",
        "issuers.0.subject",
        "issuers.0.scopes",
        "issuers.0.allowedScopes.0",
        "issuers.0.agents",
        "issuers.0.sandboxes.0",
        "issuers.1",
        "issuers.1.jwks",
        "issuers.1.keys",
    ];
    assert_eq!(names, expected);
    assert_eq!(problems("[]"), ["Invalid input: expected object, received array"]);
    assert_eq!(problems("{}"), ["issuers: Invalid input: required, received undefined"]);
}

#[test]
fn a_star_among_agents_is_explained() {
    let found = problems(&file(r#""jwks":"https://id.example/k","agents":["a","*"]"#));
    assert_eq!(found, [r#"issuers.0.agents.1: Invalid agent: for all agents write agents: "*", without a list"#]);
    assert_eq!(problems(&file(r#""jwks":"https://id.example/k","agents":"*""#)), Vec::<String>::new());
}

#[test]
fn plain_http_reaches_this_machine_only() {
    for url in ["https://id.example/k", "http://127.0.0.1:8/k", "http://localhost/k", "http://[::1]:8/k"] {
        assert_eq!(problems(&file(&format!(r#""jwks":"{url}""#))), Vec::<String>::new(), "{url}");
    }
    for url in ["http://id.example/k", "http://10.0.0.1/k", "ftp://id.example", "id.example", "https://a:b@id.example"]
    {
        assert_eq!(problems(&file(&format!(r#""jwks":"{url}""#))).len(), 1, "{url}");
    }
}

#[test]
fn an_issuer_and_a_name_have_one_entry() {
    let entry = |name: &str, issuer: &str| {
        format!(r#"{{"name":"{name}","issuer":"{issuer}","audience":"x","jwks":"https://id.example/k"}}"#)
    };
    let two = |first: String, second: String| problems(&format!(r#"{{"issuers":[{first},{second}]}}"#));
    assert_eq!(two(entry("a", "a"), entry("b", "b")), Vec::<String>::new());
    assert_eq!(two(entry("a", "a"), entry("a", "b")), ["issuers: two issuers have the name a; give each its own"]);
    assert_eq!(two(entry("a", "a"), entry("b", "a")), ["issuers: a stands there twice; an issuer has one entry"]);
}

#[test]
fn unknown_names_are_told_and_not_refused() {
    let read = read(&file(r#""jwks":"https://id.example/k","color":"red","scopes":{"claim":"s","also":1}"#)).unwrap();
    assert_eq!(read.unknown, ["issuers.0.color", "issuers.0.scopes.also"]);
    assert_eq!(read.issuers.identifiers(), ["https://id.example"]);
}

#[tokio::test]
async fn an_entry_says_who_a_token_is() {
    let signer = Signer::ed25519();
    let source = Source::of(&jwks(&[signer.jwk("e")]));
    let text = file(
        r#""jwks":"https://id.example/keys","subject":"acme-{sub}","scopes":{"fixed":["sessions:own","studio"]},
           "allowedScopes":["sessions:own","studio"],"agents":["helper","{team}-bot"],"sandboxes":["{team}/*"]"#,
    );
    let issuers = issuers_of(&text, &source);
    assert_eq!(issuers.grantable(), [TokenScope::SessionsOwn, TokenScope::Studio]);
    let claims = r#"{"iss":"https://id.example","aud":["nylorun"],"sub":"ann","team":"red","exp":2000}"#;
    let person = person(&issuers, &signer.token(r#"{"alg":"EdDSA","kid":"e"}"#, claims)).await.unwrap();
    assert_eq!(person.user.as_str(), "acme-ann");
    assert_eq!(person.scopes, [TokenScope::SessionsOwn, TokenScope::Studio]);
    let Agents::Only(agents) = person.agents else { panic!("all agents") };
    assert_eq!(agents.iter().map(|agent| agent.as_str()).collect::<Vec<_>>(), ["helper", "red-bot"]);
    assert_eq!(person.environments, ["red/*"]);
}
