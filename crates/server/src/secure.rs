//! Who calls: credentials, subject headers, roles and scopes, in the order of api 1.5.

use hyper::header;
use nylorun_domain::caller::{Caller, Principal, RoleRefusal, Subject, SubjectHeaders};
use nylorun_domain::json::Value;
use nylorun_wire::code::Code;
use nylorun_wire::error::Rejection;

use crate::Server;
use crate::challenge::Challenges;
use crate::handler::refused;
use crate::request::{Head, Sent};
use crate::route::{Audience, Route};

const SUBJECT: &str = "nylorun-subject";
const SCOPES: &str = "nylorun-scopes";

/// Recognizes the caller and checks that a route of this audience takes the credential. `None` when nothing is sent
/// where nothing has to be.
pub(crate) async fn authenticate(
    server: &Server,
    head: &Head,
    audience: Audience,
) -> Result<Option<Caller>, Rejection> {
    let challenges = Challenges::of(server, head, audience);
    let Some(bearer) = bearer(head) else {
        return if audience == Audience::Anyone { Ok(None) } else { Err(challenges.credential_required()) };
    };
    if looks_like_jwt(bearer) {
        let person = server.app.person(bearer).await.map_err(|refusal| challenges.token_refused(&refusal))?;
        refuse_subject_headers(head)?;
        return Ok(Some(Caller::Person(person)));
    }
    if head.sends(header::ORIGIN) {
        let message = "A browser's request is served only with a trusted issuer's token";
        return Err(Rejection::new(403, Code::OriginRejected, message));
    }
    if !looks_like_key(bearer) {
        return Err(challenges.credential_invalid());
    }
    let principal = server.app.principal(bearer).await.map_err(refused)?;
    let principal = principal.ok_or_else(|| challenges.credential_invalid())?;
    caller_of(principal, head, audience).map(Some)
}

/// A token says itself for whom it is.
fn refuse_subject_headers(head: &Head) -> Result<(), Rejection> {
    if head.sends(SUBJECT) || head.sends(SCOPES) {
        let message = "Nylorun-Subject and Nylorun-Scopes are for application keys: a token names its person itself";
        return Err(Rejection::new(403, Code::RequestRejected, message));
    }
    Ok(())
}

fn caller_of(principal: Principal, head: &Head, audience: Audience) -> Result<Caller, Rejection> {
    let (subject, scopes) = (head.header(SUBJECT), head.header(SCOPES));
    let sent = match (subject, scopes) {
        (Sent::Absent, Sent::Absent) => SubjectHeaders::Absent,
        (Sent::Absent | Sent::Once(_) | Sent::Unreadable, Sent::Absent | Sent::Once(_) | Sent::Unreadable) => {
            SubjectHeaders::Sent
        }
    };
    principal.may_call(audience, sent).map_err(role_refused)?;
    let subject = Subject::parse(readable(subject)?, readable(scopes)?);
    let subject = subject.map_err(|refusal| Rejection::new(400, Code::SubjectInvalid, refusal.to_string()))?;
    Ok(Caller::Key { principal, subject })
}

fn readable(sent: Sent<'_>) -> Result<Option<&str>, Rejection> {
    match sent {
        Sent::Absent => Ok(None),
        Sent::Once(text) => Ok(Some(text)),
        Sent::Unreadable => {
            let message = "Nylorun-Subject and Nylorun-Scopes may each be sent once, in printable ASCII";
            Err(Rejection::new(400, Code::SubjectInvalid, message))
        }
    }
}

fn role_refused(refusal: RoleRefusal) -> Rejection {
    let code = match refusal {
        RoleRefusal::NeedsApplicationKey | RoleRefusal::NeedsManagementKey => Code::KeyRoleMismatch,
        RoleRefusal::ManagementWithSubject => Code::SubjectInvalid,
    };
    Rejection::new(403, code, refusal.to_string())
}

/// Whether the caller reaches the route with the scopes that it has.
pub(crate) fn check_scopes(server: &Server, head: &Head, caller: &Caller, route: &Route) -> Result<(), Rejection> {
    if caller.reaches(route.audience, route.scopes) {
        return Ok(());
    }
    let rejection = scope_required(caller, route);
    let could_ask_for = match (caller.person(), route.audience) {
        (Some(person), Audience::Runtime) => person.could_ask_for(route.scopes),
        (Some(_) | None, _) => None,
    };
    Err(match could_ask_for {
        Some(scope) => Challenges::of(server, head, route.audience).insufficient_scope(rejection, scope),
        None => rejection,
    })
}

fn scope_required(caller: &Caller, route: &Route) -> Rejection {
    let names: Vec<_> = match (caller, route.audience) {
        (Caller::Person(_), Audience::RuntimeByKey) => Vec::new(),
        (Caller::Person(_) | Caller::Key { .. }, _) => route.scopes.iter().map(|scope| scope.as_str()).collect(),
    };
    let message = match (&names[..], route.audience) {
        ([], Audience::Management) => "No scope reaches this route: call it with a management key".to_owned(),
        ([], _) => "No scope reaches this route: call it with an application key as itself".to_owned(),
        (names, _) => format!("This route needs one of these scopes: {}", names.join(", ")),
    };
    let names = Value::Array(names.into_iter().map(Value::from).collect());
    Rejection::new(403, Code::ScopeRequired, message).with_details(Value::object([("scopes", names)]))
}

/// The bearer of `^bearer +(\S+) *$`, scheme in any case. Any other form is no credential.
fn bearer(head: &Head) -> Option<&str> {
    let Sent::Once(value) = head.header(header::AUTHORIZATION) else { return None };
    parse_bearer(value)
}

fn parse_bearer(value: &str) -> Option<&str> {
    let (scheme, rest) = value.split_at_checked("bearer".len())?;
    if !scheme.eq_ignore_ascii_case("bearer") || !rest.starts_with(' ') {
        return None;
    }
    let token = rest.trim_matches(' ');
    (!token.is_empty() && !token.contains(char::is_whitespace)).then_some(token)
}

fn looks_like_jwt(bearer: &str) -> bool {
    let parts: Vec<_> = bearer.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| !part.is_empty())
}

/// Keys are 64 lower-case hexadecimal digits; nothing else is looked up.
fn looks_like_key(bearer: &str) -> bool {
    bearer.len() == 64 && bearer.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use nylorun_domain::caller::Subject;
    use nylorun_wire::protocol::Version;

    use super::{looks_like_jwt, looks_like_key, parse_bearer};

    /// Seeded noise: whatever a client sends, reading its headers gives a value or a refusal, and never panics.
    #[test]
    fn noise_in_headers_never_panics() {
        let mut state = 0xd1b5_4a32_d192_ed03_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let pieces =
            ["Bearer", "bearer", " ", "\t", ".", "10", "sessions:own", "a", "\u{e9}", "\u{1f600}", "0", ";", "host"];
        for _ in 0..5_000 {
            let length = next() % 8;
            let text: String = (0..length).map(|_| pieces[(next() % pieces.len() as u64) as usize]).collect();
            if let Some(token) = parse_bearer(&text) {
                assert!(!token.is_empty() && !token.contains(char::is_whitespace), "{text:?}");
                let _ = (looks_like_jwt(token), looks_like_key(token));
            }
            if let Ok(Some(subject)) = Subject::parse(Some(&text), Some("sessions:own")) {
                assert_eq!(subject.user.as_str(), text);
            }
            let _ = Subject::parse(Some("ann"), Some(&text));
            if let Some(version) = Version::parse(&text) {
                assert!((4..=10).contains(&version.number()), "{text:?}");
            }
        }
    }

    #[test]
    fn reads_bearers() {
        for (header, bearer) in [
            ("Bearer x", Some("x")),
            ("bEARER   x  ", Some("x")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Bearerx", None),
            ("Bearer\tx", None),
            ("Bearer x y", None),
            ("Basic x", None),
            (" Bearer x", None),
            ("\u{e9}\u{e9}\u{e9}\u{e9}", None),
            ("", None),
        ] {
            assert_eq!(parse_bearer(header), bearer, "{header:?}");
        }
    }
}
