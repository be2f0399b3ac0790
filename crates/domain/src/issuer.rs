//! Trusted issuers: what an issuer's token makes of whoever holds it (api 1.6, trust 3). Pure decisions over claims
//! whose signature somebody else has checked.

mod template;

use crate::caller::Scope;
use crate::grammar::{is_sandbox_grant, is_subject};
use crate::id::{AgentId, UserId};
use crate::json::Value;
use crate::model::words;
use crate::time::Millis;

pub use template::{ClaimRule, MAX_TEMPLATE, Template, Unfilled};

/// How far the clocks of issuer and runtime may differ.
pub const TOLERANCE_MS: i64 = 30_000;

words! {
    /// Scopes that a token may carry.
    TokenScope {
        /// Read agents.
        AgentsRead = "agents:read",
        /// The person's own sessions.
        SessionsOwn = "sessions:own",
        /// Make and change environments.
        SandboxesWrite = "sandboxes:write",
        /// For the console. No route of the Runtime API asks for it.
        Studio = "studio",
    }
}

impl TokenScope {
    /// What an issuer may grant unless its entry says otherwise.
    pub const DEFAULT: &'static [Self] = &[Self::AgentsRead, Self::SessionsOwn, Self::SandboxesWrite];

    /// The scope of the Runtime API that it is.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::AgentsRead => Some(Scope::AgentsRead),
            Self::SessionsOwn => Some(Scope::SessionsOwn),
            Self::SandboxesWrite => Some(Scope::SandboxesWrite),
            Self::Studio => None,
        }
    }
}

/// Where a token's scopes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeSource {
    /// A claim: words divided by spaces, or an array of words.
    Claim(String),
    /// Every token has these.
    Fixed(Vec<TokenScope>),
}

/// Which agents an issuer's tokens reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentSource {
    /// All.
    All,
    /// Those with these ids.
    Only(Vec<Template>),
}

/// What the identity file says of an issuer, its keys left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerRules {
    /// The operator's name for it.
    pub name: String,
    /// What its tokens say in `iss`.
    pub issuer: String,
    /// What they must say in `aud`.
    pub audience: String,
    /// The person.
    pub subject: Template,
    /// What the token lets them do.
    pub scopes: ScopeSource,
    /// What it can let them do at most.
    pub allowed_scopes: Vec<TokenScope>,
    /// The agents that it reaches.
    pub agents: AgentSource,
    /// Grants over environments.
    pub environments: Vec<Template>,
}

/// Agents that a person reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agents {
    /// All.
    All,
    /// Those of these ids.
    Only(Vec<AgentId>),
}

impl Agents {
    /// Whether this agent is among them.
    pub fn hold(&self, agent: &AgentId) -> bool {
        match self {
            Self::All => true,
            Self::Only(agents) => agents.contains(agent),
        }
    }
}

/// A person, as a trusted issuer's token tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The issuer's name in the identity file.
    pub issuer: String,
    /// Who they are to this tenant.
    pub user: UserId,
    /// What they may do.
    pub scopes: Vec<TokenScope>,
    /// What a token of this issuer could let them do.
    pub grantable: Vec<TokenScope>,
    /// The agents that are there for them.
    pub agents: Agents,
    /// Grants over environments; without one they reach none.
    pub environments: Vec<String>,
    /// When the token ends, without tolerance.
    pub expires_at: Millis,
}

impl Person {
    /// The scopes of the Runtime API among theirs.
    pub fn own_scopes(&self) -> Vec<Scope> {
        self.scopes.iter().filter_map(|scope| scope.scope()).collect()
    }

    /// The first of a route's scopes that another token of this issuer could carry.
    pub fn could_ask_for(&self, scopes: &[Scope]) -> Option<Scope> {
        scopes.iter().copied().find(|wanted| self.grantable.iter().any(|scope| scope.scope() == Some(*wanted)))
    }
}

/// Why claims are refused. Logged, and never told to whoever sent them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimRefusal {
    /// The token's time is over.
    #[error("it has expired")]
    Expired,
    /// Not for this runtime, not yet valid, or without a claim that is needed.
    #[error("{0}")]
    Invalid(String),
}

impl ClaimRefusal {
    fn invalid(problem: impl Into<String>) -> Self {
        Self::Invalid(problem.into())
    }
}

impl IssuerRules {
    /// The person whom these claims, signed by this issuer, describe at the time `now`.
    ///
    /// # Errors
    /// Expired only for claims that would do otherwise: a client may answer to it by getting a new token.
    pub fn person(&self, claims: &Value, now: Millis) -> Result<Person, ClaimRefusal> {
        if claims.as_object().is_none() {
            return Err(ClaimRefusal::invalid("its claims are no JSON object"));
        }
        if claims.get("iss").and_then(Value::as_str) != Some(self.issuer.as_str()) {
            return Err(ClaimRefusal::invalid("iss is another issuer"));
        }
        if !self.is_audience(claims.get("aud")) {
            return Err(ClaimRefusal::invalid(format!("aud is not {}", self.audience)));
        }
        for name in ["iat", "nbf"] {
            if time_claim(claims, name)?.is_some_and(|from| now.plus(TOLERANCE_MS) < from) {
                return Err(ClaimRefusal::invalid(format!("{name} is in the future")));
            }
        }
        let expires_at = time_claim(claims, "exp")?.ok_or_else(|| ClaimRefusal::invalid("exp is missing"))?;
        let person = Person {
            issuer: self.name.clone(),
            user: self.user(claims)?,
            scopes: self.scopes(claims)?,
            grantable: self.allowed_scopes.clone(),
            agents: self.agents(claims)?,
            environments: self.environments(claims)?,
            expires_at,
        };
        if expires_at.plus(TOLERANCE_MS) <= now {
            return Err(ClaimRefusal::Expired);
        }
        Ok(person)
    }

    fn is_audience(&self, claim: Option<&Value>) -> bool {
        let is = |value: &Value| value.as_str() == Some(self.audience.as_str());
        claim.is_some_and(|claim| claim.as_array().map_or_else(|| is(claim), |all| all.iter().any(is)))
    }

    fn user(&self, claims: &Value) -> Result<UserId, ClaimRefusal> {
        let subject = fill("subject", &self.subject, claims, ClaimRule::Any)?;
        let user = UserId::parse(&subject).ok().filter(|_| is_subject(&subject));
        user.ok_or_else(|| ClaimRefusal::invalid("subject: what it gives is no subject: 1 to 200 printable characters"))
    }

    fn scopes(&self, claims: &Value) -> Result<Vec<TokenScope>, ClaimRefusal> {
        let named = match &self.scopes {
            ScopeSource::Fixed(scopes) => scopes.clone(),
            ScopeSource::Claim(name) => scope_words(name, claims.get(name))?,
        };
        // In the order of this list, each once.
        let allowed = TokenScope::ALL.iter().copied().filter(|scope| self.allowed_scopes.contains(scope));
        Ok(allowed.filter(|scope| named.contains(scope)).collect())
    }

    fn agents(&self, claims: &Value) -> Result<Agents, ClaimRefusal> {
        let templates = match &self.agents {
            AgentSource::All => return Ok(Agents::All),
            AgentSource::Only(templates) => templates,
        };
        let ids = templates.iter().map(|template| {
            let id = fill("agents", template, claims, ClaimRule::Segment)?;
            AgentId::parse(&id).map_err(|_| ClaimRefusal::invalid("agents: what a template gives is no agent's id"))
        });
        Ok(Agents::Only(ids.collect::<Result<_, _>>()?))
    }

    fn environments(&self, claims: &Value) -> Result<Vec<String>, ClaimRefusal> {
        let grants = self.environments.iter().map(|template| {
            let grant = fill("sandboxes", template, claims, ClaimRule::Segment)?;
            let known = Some(grant).filter(|grant| is_sandbox_grant(grant));
            known.ok_or_else(|| ClaimRefusal::invalid("sandboxes: what a template gives is no grant"))
        });
        grants.collect()
    }
}

fn fill(member: &str, template: &Template, claims: &Value, rule: ClaimRule) -> Result<String, ClaimRefusal> {
    template.fill(claims, rule).map_err(|unfilled| ClaimRefusal::invalid(format!("{member}: {unfilled}")))
}

/// The scopes that a claim names. Words that mean nothing here are other services'.
fn scope_words(name: &str, claim: Option<&Value>) -> Result<Vec<TokenScope>, ClaimRefusal> {
    let wrong = || ClaimRefusal::invalid(format!("{name} is neither a text nor a list of texts"));
    let words: Vec<&str> = match claim {
        None => Vec::new(),
        Some(Value::Array(words)) => words.iter().map(Value::as_str).collect::<Option<_>>().ok_or_else(wrong)?,
        Some(text) => text.as_str().ok_or_else(wrong)?.split(' ').collect(),
    };
    Ok(words.into_iter().filter_map(TokenScope::from_wire).collect())
}

/// Seconds since 1970, perhaps with a fraction.
fn time_claim(claims: &Value, name: &str) -> Result<Option<Millis>, ClaimRefusal> {
    /// The year 9999: what lies beyond is no time that anybody means.
    const MAX_SECONDS: f64 = 253_402_300_799.0;
    let Some(claim) = claims.get(name) else { return Ok(None) };
    let seconds = claim.as_f64().filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds));
    let seconds = seconds.ok_or_else(|| ClaimRefusal::invalid(format!("{name} is no time in seconds since 1970")))?;
    #[expect(clippy::cast_possible_truncation, reason = "within the bounds above")]
    Ok(Some(Millis((seconds * 1_000.0) as i64)))
}

#[cfg(test)]
mod tests;
