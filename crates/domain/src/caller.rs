//! Who calls, and what they may do (api 1.5, trust 3): pure decisions over a principal and the subject that it acts
//! for.

use std::fmt;

use crate::grammar::is_subject;
use crate::id::{AgentId, UserId};
use crate::issuer::Person;
use crate::model::words;

/// Whether a text has the form of a caller's key: 64 lower-case hexadecimal characters (api 1.5).
pub fn is_key(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

words! {
    /// What a key is for.
    Role {
        /// The Runtime API.
        Application = "application",
        /// The Management API.
        Management = "management",
        /// Both, for the console.
        Studio = "studio",
    }
}

words! {
    /// What a subject may do. An application key without a subject may do all of it.
    Scope {
        /// Read agents.
        AgentsRead = "agents:read",
        /// Save agents.
        AgentsWrite = "agents:write",
        /// The subject's own sessions.
        SessionsOwn = "sessions:own",
        /// Make and change environments.
        SandboxesWrite = "sandboxes:write",
    }
}

/// Scopes that older clients send. They are tolerated and grant nothing.
const RETIRED_SCOPES: [&str; 2] = ["vaults:own", "tenant:settings"];

/// A key that was recognized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The key's name.
    pub key_id: String,
    /// SHA-256 of the key, lower-case hexadecimal: another one after a rotation, which keeps the name.
    pub key_hash: String,
    /// What it is for.
    pub role: Role,
}

/// A person for whom an application acts. This only narrows what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The person.
    pub user: UserId,
    /// What the application lets them do.
    pub scopes: Vec<Scope>,
}

/// The caller of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Whoever holds a key.
    Key {
        /// The key.
        principal: Principal,
        /// The person for whom it acts.
        subject: Option<Subject>,
    },
    /// Whoever holds a token of a trusted issuer.
    Person(Person),
}

/// Which API a route belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The Runtime API: application keys, as themselves or for a subject, and tokens of trusted issuers.
    Runtime,
    /// The Runtime API, application keys only, as themselves or for a subject: what is answered is not for a person's
    /// eyes.
    RuntimeByKey,
    /// The Runtime API, application keys as themselves only: no scope reaches the route.
    RuntimeAlone,
    /// The Management API.
    Management,
    /// Every key and token.
    Everyone,
    /// Whoever asks; a credential that is sent is checked all the same.
    Anyone,
}

/// Why a key may not call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleRefusal {
    /// A management key on a route of the Runtime API.
    NeedsApplicationKey,
    /// An application key on a route of the Management API.
    NeedsManagementKey,
    /// A management key that sends a subject.
    ManagementWithSubject,
}

/// Why subject headers are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectRefusal {
    /// Scopes without a subject.
    ScopesWithoutSubject,
    /// The subject breaks its grammar, or is reserved.
    BadSubject,
    /// A subject without scopes.
    NoScopes,
    /// A scope that nobody knows.
    UnknownScope,
}

impl fmt::Display for RoleRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeedsApplicationKey => {
                "This route of the Runtime API takes an application key; a management key reaches /v1/tenant"
            }
            Self::NeedsManagementKey => {
                "This route of the Management API takes a management key; an application key reaches the Runtime API"
            }
            Self::ManagementWithSubject => "A management key acts only as itself: send no Nylorun-Subject",
        })
    }
}

impl fmt::Display for SubjectRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ScopesWithoutSubject => "Nylorun-Scopes needs Nylorun-Subject",
            Self::BadSubject => {
                "Nylorun-Subject must be 1 to 200 printable ASCII characters; host and installation are reserved"
            }
            Self::NoScopes => "Nylorun-Subject needs Nylorun-Scopes with at least one scope",
            Self::UnknownScope => {
                "Nylorun-Scopes may hold agents:read, agents:write, sessions:own, sandboxes:write, divided by spaces"
            }
        })
    }
}

impl Principal {
    /// Whether a route of this audience takes the key, which sends subject headers or does not.
    pub fn may_call(&self, audience: Audience, subject: SubjectHeaders) -> Result<(), RoleRefusal> {
        let acts_as_management = match (self.role, audience) {
            (Role::Application, _) => false,
            (Role::Management, _) | (Role::Studio, Audience::Management) => true,
            (
                Role::Studio,
                Audience::Runtime
                | Audience::RuntimeByKey
                | Audience::RuntimeAlone
                | Audience::Everyone
                | Audience::Anyone,
            ) => false,
        };
        let wanted = match audience {
            Audience::Runtime | Audience::RuntimeByKey | Audience::RuntimeAlone => Some(false),
            Audience::Management => Some(true),
            Audience::Everyone | Audience::Anyone => None,
        };
        match (acts_as_management, wanted) {
            (true, Some(false)) => Err(RoleRefusal::NeedsApplicationKey),
            (true, Some(true) | None) if subject == SubjectHeaders::Sent => Err(RoleRefusal::ManagementWithSubject),
            (false, Some(true)) => Err(RoleRefusal::NeedsManagementKey),
            (true, Some(true) | None) | (false, Some(false) | None) => Ok(()),
        }
    }
}

/// Whether a request carries subject headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectHeaders {
    /// At least one of them.
    Sent,
    /// None.
    Absent,
}

impl Subject {
    /// The subject that the two headers name, if they do.
    pub fn parse(subject: Option<&str>, scopes: Option<&str>) -> Result<Option<Self>, SubjectRefusal> {
        let Some(subject) = subject else {
            return if scopes.is_some() { Err(SubjectRefusal::ScopesWithoutSubject) } else { Ok(None) };
        };
        if !is_subject(subject) {
            return Err(SubjectRefusal::BadSubject);
        }
        let user = UserId::parse(subject).map_err(|_| SubjectRefusal::BadSubject)?;
        Ok(Some(Self { user, scopes: parse_scopes(scopes.unwrap_or_default())? }))
    }
}

fn parse_scopes(header: &str) -> Result<Vec<Scope>, SubjectRefusal> {
    let mut scopes = Vec::new();
    let mut named = false;
    for word in header.split(' ').filter(|word| !word.is_empty()) {
        named = true;
        match Scope::from_wire(word) {
            Some(scope) if !scopes.contains(&scope) => scopes.push(scope),
            Some(_) => {}
            None if RETIRED_SCOPES.contains(&word) => {}
            None => return Err(SubjectRefusal::UnknownScope),
        }
    }
    if named { Ok(scopes) } else { Err(SubjectRefusal::NoScopes) }
}

impl Caller {
    /// A key that acts as itself.
    pub fn alone(principal: Principal) -> Self {
        Self::Key { principal, subject: None }
    }

    /// Whether the caller reaches a route of this audience that asks for one of these scopes. A key that acts as itself
    /// is not asked for any.
    pub fn reaches(&self, audience: Audience, scopes: &[Scope]) -> bool {
        match (self, audience) {
            (_, Audience::Everyone | Audience::Anyone) | (Self::Key { subject: None, .. }, _) => true,
            (Self::Key { subject: Some(subject), .. }, _) => has_one_of(&subject.scopes, scopes),
            (Self::Person(_), Audience::RuntimeByKey | Audience::RuntimeAlone | Audience::Management) => false,
            (Self::Person(person), Audience::Runtime) => has_one_of(&person.own_scopes(), scopes),
        }
    }

    /// Whether what belongs to `owner` is there for this caller. What is not is answered as if it were missing.
    pub fn sees_owner(&self, owner: &UserId) -> bool {
        self.only_owner().is_none_or(|only| only == owner)
    }

    /// The owner to whom a list is narrowed.
    pub fn only_owner(&self) -> Option<&UserId> {
        match self {
            Self::Key { subject, .. } => subject.as_ref().map(|subject| &subject.user),
            Self::Person(person) => Some(&person.user),
        }
    }

    /// Whether this agent is there for this caller.
    pub fn sees_agent(&self, agent: &AgentId) -> bool {
        self.person().is_none_or(|person| person.agents.hold(agent))
    }

    /// The person whose token this is.
    pub fn person(&self) -> Option<&Person> {
        match self {
            Self::Key { .. } => None,
            Self::Person(person) => Some(person),
        }
    }

    /// The scopes that the caller has, as `/v1/me` tells them.
    pub fn scopes(&self) -> Vec<&'static str> {
        let words = |scopes: &[Scope]| scopes.iter().map(|scope| scope.as_str()).collect();
        match self {
            Self::Key { subject: Some(subject), .. } => words(&subject.scopes),
            Self::Key { principal, subject: None } => match principal.role {
                Role::Application | Role::Studio => words(Scope::ALL),
                Role::Management => Vec::new(),
            },
            Self::Person(person) => person.scopes.iter().map(|scope| scope.as_str()).collect(),
        }
    }

    /// `application:<id>`, `management:<id>`, `subject` or `issuer:<name>`. The studio key counts as an application's.
    pub fn via(&self) -> String {
        match self {
            Self::Key { subject: Some(_), .. } => "subject".to_owned(),
            Self::Key { principal: Principal { key_id, role, .. }, subject: None } => match role {
                Role::Application | Role::Studio => format!("application:{key_id}"),
                Role::Management => format!("management:{key_id}"),
            },
            Self::Person(person) => format!("issuer:{}", person.issuer),
        }
    }
}

fn has_one_of(own: &[Scope], wanted: &[Scope]) -> bool {
    wanted.iter().any(|scope| own.contains(scope))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issuer::{Agents, TokenScope};
    use crate::time::Millis;

    fn key(role: Role) -> Principal {
        Principal { key_id: "k".to_owned(), key_hash: "0".repeat(64), role }
    }

    #[test]
    fn every_role_on_every_audience() {
        use RoleRefusal::{ManagementWithSubject as Subject, NeedsApplicationKey as App, NeedsManagementKey as Manage};
        let audiences = [
            Audience::Runtime,
            Audience::RuntimeByKey,
            Audience::RuntimeAlone,
            Audience::Management,
            Audience::Everyone,
            Audience::Anyone,
        ];
        for (role, headers, expected) in [
            (Role::Application, SubjectHeaders::Absent, [Ok(()), Ok(()), Ok(()), Err(Manage), Ok(()), Ok(())]),
            (Role::Application, SubjectHeaders::Sent, [Ok(()), Ok(()), Ok(()), Err(Manage), Ok(()), Ok(())]),
            (Role::Management, SubjectHeaders::Absent, [Err(App), Err(App), Err(App), Ok(()), Ok(()), Ok(())]),
            (
                Role::Management,
                SubjectHeaders::Sent,
                [Err(App), Err(App), Err(App), Err(Subject), Err(Subject), Err(Subject)],
            ),
            (Role::Studio, SubjectHeaders::Absent, [Ok(()), Ok(()), Ok(()), Ok(()), Ok(()), Ok(())]),
            (Role::Studio, SubjectHeaders::Sent, [Ok(()), Ok(()), Ok(()), Err(Subject), Ok(()), Ok(())]),
        ] {
            assert_eq!(
                audiences.map(|audience| key(role).may_call(audience, headers)),
                expected,
                "{role:?} {headers:?}"
            );
        }
    }

    #[test]
    fn knows_the_form_of_a_key() {
        let key = "0123456789abcdef".repeat(4);
        assert!(is_key(&key));
        for other in [&key[1..], &key.to_uppercase(), &format!("{key}0"), &"g".repeat(64), &"é".repeat(32)] {
            assert!(!is_key(other), "{other}");
        }
    }

    #[test]
    fn reads_subject_headers() {
        let parse = |subject, scopes| Subject::parse(subject, scopes).map(|found| found.map(|subject| subject.scopes));
        assert_eq!(parse(None, None), Ok(None));
        assert_eq!(
            parse(Some("ann"), Some(" sessions:own  agents:read sessions:own ")),
            Ok(Some(vec![Scope::SessionsOwn, Scope::AgentsRead]))
        );
        assert_eq!(parse(Some("ann"), Some("vaults:own")), Ok(Some(vec![])));
        assert_eq!(parse(None, Some("agents:read")), Err(SubjectRefusal::ScopesWithoutSubject));
        assert_eq!(parse(Some("ann"), None), Err(SubjectRefusal::NoScopes));
        assert_eq!(parse(Some("ann"), Some("  ")), Err(SubjectRefusal::NoScopes));
        assert_eq!(parse(Some("ann"), Some("sessions:all")), Err(SubjectRefusal::UnknownScope));
        assert_eq!(parse(Some("ann"), Some("sessions:own\tagents:read")), Err(SubjectRefusal::UnknownScope));
        let long = "a".repeat(201);
        for bad in ["", " ann", "ann ", "host", "installation", "\u{e9}", "a\u{0}b", long.as_str()] {
            assert_eq!(parse(Some(bad), Some("agents:read")), Err(SubjectRefusal::BadSubject), "{bad:?}");
        }
    }

    #[test]
    fn a_subject_only_narrows() {
        let alone = Caller::alone(key(Role::Application));
        let subject = Subject { user: UserId::from_trusted("ann"), scopes: vec![Scope::AgentsRead] };
        let acting = Caller::Key { principal: key(Role::Application), subject: Some(subject) };
        let (ann, bob) = (UserId::from_trusted("ann"), UserId::from_trusted("bob"));
        let reaches = |caller: &Caller, scopes: &[Scope]| caller.reaches(Audience::Runtime, scopes);
        assert!(reaches(&alone, &[]) && alone.sees_owner(&bob));
        assert!(reaches(&acting, &[Scope::AgentsWrite, Scope::AgentsRead]) && acting.sees_owner(&ann));
        assert!(!reaches(&acting, &[Scope::SessionsOwn]) && !reaches(&acting, &[]) && !acting.sees_owner(&bob));
        assert!(acting.sees_agent(&AgentId::from_trusted("any")));
        assert_eq!((alone.via(), acting.via()), ("application:k".to_owned(), "subject".to_owned()));
        assert_eq!((alone.scopes().len(), acting.scopes()), (Scope::ALL.len(), vec!["agents:read"]));
    }

    #[test]
    fn a_person_reaches_what_a_token_may_carry() {
        let person = Person {
            issuer: "acme".to_owned(),
            user: UserId::from_trusted("ann"),
            scopes: vec![TokenScope::AgentsRead, TokenScope::Studio],
            grantable: TokenScope::DEFAULT.to_vec(),
            agents: Agents::Only(vec![AgentId::from_trusted("a")]),
            environments: Vec::new(),
            expires_at: Millis(0),
        };
        let caller = Caller::Person(person);
        for (audience, scopes, reached) in [
            (Audience::Runtime, &[Scope::AgentsRead, Scope::AgentsWrite][..], true),
            (Audience::Runtime, &[Scope::SessionsOwn], false),
            (Audience::Runtime, &[], false),
            (Audience::RuntimeByKey, &[Scope::AgentsRead], false),
            (Audience::RuntimeAlone, &[], false),
            (Audience::Management, &[], false),
            (Audience::Everyone, &[], true),
        ] {
            assert_eq!(caller.reaches(audience, scopes), reached, "{audience:?} {scopes:?}");
        }
        assert!(caller.sees_agent(&AgentId::from_trusted("a")) && !caller.sees_agent(&AgentId::from_trusted("b")));
        assert!(!caller.sees_owner(&UserId::from_trusted("bob")));
        assert_eq!((caller.scopes(), caller.via()), (vec!["agents:read", "studio"], "issuer:acme".to_owned()));
    }
}
