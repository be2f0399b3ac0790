//! The identity file (api 1.6).

use std::sync::Arc;

use nylorun_domain::check::{Place, ProblemCode, Problems, TextRule, check};
use nylorun_domain::grammar::{is_key_id, is_sandbox_grant};
use nylorun_domain::issuer::{AgentSource, IssuerRules, ScopeSource, Template, TokenScope};
use nylorun_domain::json::Value;
use nylorun_domain::time::Millis;
use nylorun_ports::key_sets::KeySets;
use url::{Host, Url};

use crate::Issuers;
use crate::issuer::{Issuer, Keys};
use crate::key::PublicKey;
use crate::key_set::{KeySet, RemoteKeys};

/// Most issuers of a file.
const MAX_ISSUERS: usize = 32;
/// Most keys that stand in the file for an issuer (api 1.6).
const MAX_FILE_KEYS: usize = 16;
/// Most grant templates of an issuer (api 1.6).
const MAX_GRANTS: usize = 16;
/// Most agents of an issuer.
const MAX_AGENTS: usize = 1_000;
/// What the runtime's own tokens say in `iss` begins so.
const OWN_ISSUER: &str = "urn:nylorun:";

const MEMBERS: [&str; 10] =
    ["name", "issuer", "audience", "jwks", "keys", "subject", "scopes", "allowedScopes", "agents", "sandboxes"];
const NAME: TextRule = TextRule::ANY
    .matching(is_key_id, "a lower-case letter, then up to 31 lower-case letters, digits or '-', such as acme");

/// What a file says.
pub struct IdentityFile {
    /// Its issuers.
    pub issuers: Issuers,
    /// Names that mean nothing here, with their places: `issuers.0.color`.
    pub unknown: Vec<String>,
}

impl IdentityFile {
    /// Reads the file's document. Key sets will be fetched by `source` when the first token needs them.
    ///
    /// # Errors
    /// Everything that is wrong, each with its place.
    pub fn read(document: &Value, source: &Arc<dyn KeySets>, now: fn() -> Millis) -> Result<Self, Problems> {
        let issuers = check(document, |place| {
            let file = place.object()?;
            file.required("issuers", |place| {
                let issuers = place.list_of(0..=MAX_ISSUERS, |place| issuer(place, source))?;
                refuse_twice(place, &issuers);
                Some(issuers)
            })
        })?;
        Ok(Self { issuers: Issuers::new(issuers, now), unknown: unknown(document) })
    }
}

fn refuse_twice(place: Place<'_>, issuers: &[Issuer]) {
    for (at, issuer) in issuers.iter().enumerate() {
        let before = || issuers[..at].iter();
        if before().any(|other| other.rules.name == issuer.rules.name) {
            place.custom(format!("two issuers have the name {}; give each its own", issuer.rules.name));
        }
        if before().any(|other| other.rules.issuer == issuer.rules.issuer) {
            place.custom(format!("{} stands there twice; an issuer has one entry", issuer.rules.issuer));
        }
    }
}

fn issuer(place: Place<'_>, source: &Arc<dyn KeySets>) -> Option<Issuer> {
    let entry = place.object()?;
    let name = entry.required_string("name", NAME);
    let issuer = entry.required("issuer", issuer_identifier);
    let audience = entry.required_string("audience", TextRule::NON_EMPTY);
    let keys = entry.exactly_one_of(&["jwks", "keys"]);
    let url = entry.optional("jwks", |place| place.parsed(key_set_url));
    let given = entry.optional("keys", |place| place.list_of(1..=MAX_FILE_KEYS, |key| key.parsed(PublicKey::from_pem)));
    let subject = read_or(entry.get("subject"), default_subject(), subject);
    let scopes = read_or(entry.get("scopes"), Some(ScopeSource::Claim("scope".to_owned())), scopes);
    let allowed = read_or(entry.get("allowedScopes"), Some(TokenScope::DEFAULT.to_vec()), token_scopes);
    let agents = read_or(entry.get("agents"), Some(AgentSource::All), agents);
    let grants = read_or(entry.get("sandboxes"), Some(Vec::new()), |place| place.list_of(0..=MAX_GRANTS, grant));
    let name = name?;
    let keys = match keys? {
        "jwks" => Keys::Remote(RemoteKeys::new(&name, url?.as_str(), Arc::clone(source))),
        _ => Keys::Given(KeySet::of(given?)),
    };
    let rules = IssuerRules {
        name,
        issuer: issuer?,
        audience: audience?,
        subject: subject?,
        scopes: scopes?,
        allowed_scopes: allowed?,
        agents: agents?,
        environments: grants?,
    };
    Some(Issuer { rules, keys })
}

/// What the member says, or what stands for it where it is missing.
fn read_or<'a, T>(
    member: Option<Place<'a>>,
    missing: Option<T>,
    read: impl FnOnce(Place<'a>) -> Option<T>,
) -> Option<T> {
    match member {
        Some(place) => read(place),
        None => missing,
    }
}

fn issuer_identifier(place: Place<'_>) -> Option<String> {
    place.parsed(|text| match text {
        "" => Err("must not be empty"),
        own if own.starts_with(OWN_ISSUER) => Err("urn:nylorun: is for the runtime's own tokens; name another issuer"),
        other => Ok(other.to_owned()),
    })
}

/// `https`, or `http` to this machine (decisions, `agents` of a trusted issuer).
fn key_set_url(text: &str) -> Result<Url, &'static str> {
    const WRONG: &str = "Invalid URL: expected https://…, or http:// with localhost, 127.0.0.1 or [::1], without a \
                         user's name";
    let url = Url::parse(text).map_err(|_| WRONG)?;
    let to_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let scheme_fits = match url.scheme() {
        "https" => true,
        "http" => to_loopback,
        _ => false,
    };
    let plain = url.username().is_empty() && url.password().is_none();
    if scheme_fits && plain { Ok(url) } else { Err(WRONG) }
}

fn default_subject() -> Option<Template> {
    Template::parse("{sub}").ok()
}

fn subject(place: Place<'_>) -> Option<Template> {
    place.parsed(|text| {
        let template = Template::parse(text)?;
        let of_a_person = template.names_a_claim();
        of_a_person
            .then_some(template)
            .ok_or("Invalid template: without a claim such as {sub} all tokens are one person")
    })
}

fn scopes(place: Place<'_>) -> Option<ScopeSource> {
    let object = place.object()?;
    match object.exactly_one_of(&["claim", "fixed"])? {
        "claim" => object.required_string("claim", TextRule::NON_EMPTY).map(ScopeSource::Claim),
        _ => object.required("fixed", token_scopes).map(ScopeSource::Fixed),
    }
}

fn token_scopes(place: Place<'_>) -> Option<Vec<TokenScope>> {
    place.list_of(0..=TokenScope::ALL.len(), |scope| scope.one_of(TokenScope::ALL, TokenScope::as_str))
}

fn agents(place: Place<'_>) -> Option<AgentSource> {
    match place.value() {
        Value::String(_) if place.value().as_str() == Some("*") => Some(AgentSource::All),
        Value::Array(_) => place.list_of(0..=MAX_AGENTS, |id| id.parsed(agent_id)).map(AgentSource::Only),
        _ => {
            place.problem(ProblemCode::InvalidType, "Invalid input: expected \"*\" or a list of agents' ids");
            None
        }
    }
}

/// `*` in a list would be an agent of that name, and nobody means one.
fn agent_id(text: &str) -> Result<Template, &'static str> {
    match text {
        "*" => Err("Invalid agent: for all agents write agents: \"*\", without a list"),
        id => Template::parse(id),
    }
}

fn grant(place: Place<'_>) -> Option<Template> {
    place.parsed(|text| {
        let template = Template::parse(text)?;
        let is_grant = is_sandbox_grant(&template.sample("x"));
        is_grant.then_some(template).ok_or("Invalid grant: expected a sandbox id, or one and /*, such as team/{team}/*")
    })
}

/// Members that nobody reads: they may be a later version's, or slips of the pen.
fn unknown(document: &Value) -> Vec<String> {
    let names = |value: &Value, known: &[&str]| -> Vec<String> {
        let members = value.as_object().unwrap_or_default().iter();
        members.map(|(name, _)| name.lossy().into_owned()).filter(|name| !known.contains(&name.as_str())).collect()
    };
    let mut unknown = names(document, &["issuers"]);
    let issuers = document.get("issuers").and_then(Value::as_array).unwrap_or_default();
    for (at, issuer) in issuers.iter().enumerate() {
        unknown.extend(names(issuer, &MEMBERS).into_iter().map(|name| format!("issuers.{at}.{name}")));
        let scopes = issuer.get("scopes").map(|scopes| names(scopes, &["claim", "fixed"]));
        unknown.extend(scopes.into_iter().flatten().map(|name| format!("issuers.{at}.scopes.{name}")));
    }
    unknown
}
