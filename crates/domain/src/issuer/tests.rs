//! What claims make of whoever holds a token.

use super::*;
use crate::json::parse;

fn template(text: &str) -> Template {
    Template::parse(text).unwrap()
}

fn rules() -> IssuerRules {
    IssuerRules {
        name: "acme".to_owned(),
        issuer: "https://id.example".to_owned(),
        audience: "nylorun".to_owned(),
        subject: template("{sub}"),
        scopes: ScopeSource::Claim("scope".to_owned()),
        allowed_scopes: TokenScope::DEFAULT.to_vec(),
        agents: AgentSource::All,
        environments: Vec::new(),
    }
}

/// The claims that every token here has, with others in their place or beside them.
fn claims(others: &str) -> Value {
    let base = r#"{"iss":"https://id.example","aud":"nylorun","sub":"ann","exp":1000,"iat":100}"#;
    let (mut base, others) = (parse(base).unwrap(), parse(others).unwrap());
    let Value::Object(members) = &mut base else { unreachable!() };
    for (name, value) in others.as_object().unwrap() {
        members.retain(|(known, _)| known != name);
        members.push((name.clone(), value.clone()));
    }
    base
}

const NOW: Millis = Millis(500_000);

fn refused(rules: &IssuerRules, others: &str) -> String {
    rules.person(&claims(others), NOW).unwrap_err().to_string()
}

#[test]
fn plain_claims_give_a_person() {
    let person = rules().person(&claims(r#"{"scope":"openid sessions:own agents:read studio"}"#), NOW).unwrap();
    assert_eq!((person.issuer.as_str(), person.user.as_str()), ("acme", "ann"));
    assert_eq!(person.scopes, [TokenScope::AgentsRead, TokenScope::SessionsOwn]);
    assert_eq!((person.agents, person.environments, person.expires_at), (Agents::All, vec![], Millis(1_000_000)));
}

#[test]
fn issuer_audience_and_times_are_exact_within_the_tolerance() {
    let rules = rules();
    for (aud, taken) in [
        (r#""nylorun""#, true),
        (r#"["x","nylorun"]"#, true),
        (r#""nylorun ""#, false),
        (r#"["x"]"#, false),
        ("[]", false),
        ("null", false),
        ("1", false),
    ] {
        let claims = claims(&format!(r#"{{"aud":{aud}}}"#));
        assert_eq!(rules.person(&claims, NOW).is_ok(), taken, "{aud}");
    }
    for (others, problem) in [
        (r#"{"iss":"https://id.example/"}"#, "iss is another issuer"),
        (r#"{"exp":"1000"}"#, "exp is no time in seconds since 1970"),
        (r#"{"exp":-1}"#, "exp is no time in seconds since 1970"),
        (r#"{"exp":1e999}"#, "exp is no time in seconds since 1970"),
        (r#"{"exp":null}"#, "exp is no time in seconds since 1970"),
        (r#"{"iat":531}"#, "iat is in the future"),
        (r#"{"nbf":531}"#, "nbf is in the future"),
        (r#"{"exp":470}"#, "it has expired"),
        (r#"{"exp":470,"aud":"x"}"#, "aud is not nylorun"),
        (r#"{"exp":470,"sub":""}"#, "subject: the claim sub is no text, number or boolean, or is empty"),
    ] {
        assert_eq!(refused(&rules, others), problem, "{others}");
    }
    for others in [r#"{"iat":530}"#, r#"{"nbf":530}"#, r#"{"exp":470.001}"#] {
        assert!(rules.person(&claims(others), NOW).is_ok(), "{others}");
    }
    let without = parse(r#"{"iss":"https://id.example","aud":"nylorun","sub":"ann"}"#).unwrap();
    assert_eq!(rules.person(&without, NOW).unwrap_err().to_string(), "exp is missing");
    assert_eq!(rules.person(&Value::Null, NOW).unwrap_err().to_string(), "its claims are no JSON object");
}

#[test]
fn scopes_come_from_a_claim_or_are_fixed_and_never_more_than_allowed() {
    let of = |rules: &IssuerRules, others: &str| rules.person(&claims(others), NOW).map(|person| person.scopes);
    let from_claim = IssuerRules { scopes: ScopeSource::Claim("roles".to_owned()), ..rules() };
    assert_eq!(of(&from_claim, r#"{"roles":["sessions:own","x","sessions:own"]}"#), Ok(vec![TokenScope::SessionsOwn]));
    assert_eq!(of(&from_claim, r#"{"scope":"sessions:own"}"#), Ok(vec![]));
    assert!(of(&from_claim, r#"{"roles":[1]}"#).is_err() && of(&from_claim, r#"{"roles":{}}"#).is_err());
    let narrow = IssuerRules {
        scopes: ScopeSource::Fixed(TokenScope::ALL.to_vec()),
        allowed_scopes: vec![TokenScope::Studio, TokenScope::AgentsRead],
        ..rules()
    };
    assert_eq!(of(&narrow, r#"{"scope":"sessions:own"}"#), Ok(vec![TokenScope::AgentsRead, TokenScope::Studio]));
}

#[test]
fn templates_are_filled_with_scalar_claims() {
    for (text, others, user) in [
        ("u-{sub}", "{}", Some("u-ann")),
        ("{tid}:{sub}", r#"{"tid":7}"#, Some("7:ann")),
        ("{https://x.example/id}", r#"{"https://x.example/id":true}"#, Some("true")),
        ("{tid}", "{}", None),
        ("{tid}", r#"{"tid":["a"]}"#, None),
        ("{tid}", r#"{"tid":""}"#, None),
        ("{tid}", r#"{"tid":null}"#, None),
        ("{sub}", r#"{"sub":"host"}"#, None),
        ("{sub}", r#"{"sub":"\u00e9"}"#, None),
        ("{sub}", r#"{"sub":"a\nb"}"#, None),
    ] {
        let rules = IssuerRules { subject: template(text), ..rules() };
        let found = rules.person(&claims(others), NOW).ok().map(|person| person.user.as_str().to_owned());
        assert_eq!(found.as_deref(), user, "{text} {others}");
    }
}

#[test]
fn agents_and_grants_take_one_segment_a_claim() {
    let rules = IssuerRules {
        agents: AgentSource::Only(vec![template("helper"), template("team-{team}")]),
        environments: vec![template("{team}/*"), template("home/{sub}")],
        ..rules()
    };
    let person = rules.person(&claims(r#"{"team":"red"}"#), NOW).unwrap();
    assert_eq!(person.agents, Agents::Only(["helper", "team-red"].map(AgentId::from_trusted).to_vec()));
    assert_eq!(person.environments, ["red/*", "home/ann"]);
    for team in ["a/b", "*", "..", "", "a b", ".a"] {
        assert!(rules.person(&claims(&format!(r#"{{"team":"{team}"}}"#)), NOW).is_err(), "{team}");
    }
}

#[test]
fn templates_have_braces_around_names_only() {
    let long = "x".repeat(201);
    for bad in ["", "{", "}", "a}", "{}", "{a", "{a{b}}", "{a}}", long.as_str()] {
        assert!(Template::parse(bad).is_err(), "{bad}");
    }
    assert!(!template("plain").names_a_claim() && template("a{b}").names_a_claim());
    assert_eq!(template("a{b}c{d}").sample("x"), "axcx");
}

#[test]
fn what_could_be_asked_for_is_what_the_issuer_may_grant() {
    let rules = IssuerRules { allowed_scopes: vec![TokenScope::SessionsOwn], ..rules() };
    let person = rules.person(&claims("{}"), NOW).unwrap();
    assert_eq!(person.could_ask_for(&[Scope::AgentsRead, Scope::SessionsOwn]), Some(Scope::SessionsOwn));
    assert_eq!(person.could_ask_for(&[Scope::AgentsRead, Scope::AgentsWrite]), None);
}
