//! Who calls, and what they may do (api 1.5, trust 3): pure decisions over a principal and the subject that it acts
//! for.

use std::fmt;

use crate::grammar::is_subject;
use crate::id::UserId;
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
pub struct Caller {
    /// The key.
    pub principal: Principal,
    /// The person for whom it acts.
    pub subject: Option<Subject>,
}

/// Which API a route belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The Runtime API: application keys, as themselves or for a subject.
    Runtime,
    /// The Runtime API, application keys as themselves only: no scope reaches the route.
    RuntimeAlone,
    /// The Management API.
    Management,
    /// Every key.
    Everyone,
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
            (Role::Studio, Audience::Runtime | Audience::RuntimeAlone | Audience::Everyone) => false,
        };
        let wanted = match audience {
            Audience::Runtime | Audience::RuntimeAlone => Some(false),
            Audience::Management => Some(true),
            Audience::Everyone => None,
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
    /// A caller without a subject.
    pub fn alone(principal: Principal) -> Self {
        Self { principal, subject: None }
    }

    /// Whether the caller has one of a route's scopes. Without a subject none is asked for.
    pub fn has_one_of(&self, scopes: &[Scope]) -> bool {
        self.subject.as_ref().is_none_or(|subject| scopes.iter().any(|scope| subject.scopes.contains(scope)))
    }

    /// Whether what belongs to `owner` is there for this caller. What is not is answered as if it were missing.
    pub fn sees_owner(&self, owner: &UserId) -> bool {
        self.subject.as_ref().is_none_or(|subject| subject.user == *owner)
    }

    /// The owner to whom a list is narrowed.
    pub fn only_owner(&self) -> Option<&UserId> {
        self.subject.as_ref().map(|subject| &subject.user)
    }

    /// The scopes that the caller has, as `/v1/me` tells them.
    pub fn scopes(&self) -> &[Scope] {
        match (&self.subject, self.principal.role) {
            (Some(subject), _) => &subject.scopes,
            (None, Role::Application | Role::Studio) => Scope::ALL,
            (None, Role::Management) => &[],
        }
    }

    /// `application:<id>`, `management:<id>` or `subject`. The studio key counts as an application's.
    pub fn via(&self) -> String {
        let id = &self.principal.key_id;
        match (&self.subject, self.principal.role) {
            (Some(_), _) => "subject".to_owned(),
            (None, Role::Application | Role::Studio) => format!("application:{id}"),
            (None, Role::Management) => format!("management:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(role: Role) -> Principal {
        Principal { key_id: "k".to_owned(), key_hash: "0".repeat(64), role }
    }

    #[test]
    fn every_role_on_every_audience() {
        use RoleRefusal::{ManagementWithSubject as Subject, NeedsApplicationKey as App, NeedsManagementKey as Manage};
        let audiences = [Audience::Runtime, Audience::RuntimeAlone, Audience::Management, Audience::Everyone];
        for (role, headers, expected) in [
            (Role::Application, SubjectHeaders::Absent, [Ok(()), Ok(()), Err(Manage), Ok(())]),
            (Role::Application, SubjectHeaders::Sent, [Ok(()), Ok(()), Err(Manage), Ok(())]),
            (Role::Management, SubjectHeaders::Absent, [Err(App), Err(App), Ok(()), Ok(())]),
            (Role::Management, SubjectHeaders::Sent, [Err(App), Err(App), Err(Subject), Err(Subject)]),
            (Role::Studio, SubjectHeaders::Absent, [Ok(()), Ok(()), Ok(()), Ok(())]),
            (Role::Studio, SubjectHeaders::Sent, [Ok(()), Ok(()), Err(Subject), Ok(())]),
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
        let acting = Caller { subject: Some(subject), ..alone.clone() };
        let (ann, bob) = (UserId::from_trusted("ann"), UserId::from_trusted("bob"));
        assert!(alone.has_one_of(&[]) && alone.sees_owner(&bob));
        assert!(acting.has_one_of(&[Scope::AgentsWrite, Scope::AgentsRead]) && acting.sees_owner(&ann));
        assert!(!acting.has_one_of(&[Scope::SessionsOwn]) && !acting.has_one_of(&[]) && !acting.sees_owner(&bob));
        assert_eq!((alone.via(), acting.via()), ("application:k".to_owned(), "subject".to_owned()));
        assert_eq!((alone.scopes(), acting.scopes()), (Scope::ALL, &[Scope::AgentsRead][..]));
    }
}
