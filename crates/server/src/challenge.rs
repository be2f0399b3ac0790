//! Challenges: how a caller that is refused could do better (api 1.7, RFC 9728).

use hyper::header;
use nylorun_app::TokenRefusal;
use nylorun_domain::caller::{Audience, Scope};
use nylorun_domain::json::Value;
use nylorun_wire::code::Code;
use nylorun_wire::error::Rejection;

use crate::Server;
use crate::request::{Head, Sent};

/// Where the protected-resource document is.
pub(crate) const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";

/// The refusals of one request's credential, each with its challenge.
pub(crate) struct Challenges {
    /// The protected-resource document's URL, where the route takes tokens and an issuer is trusted.
    metadata: Option<String>,
}

impl Challenges {
    pub(crate) fn of(server: &Server, head: &Head, audience: Audience) -> Self {
        let takes_tokens = match audience {
            Audience::Runtime
            | Audience::RuntimeByKey
            | Audience::RuntimeAlone
            | Audience::Everyone
            | Audience::Anyone => true,
            Audience::Management => false,
        };
        let known = takes_tokens && !server.app.trusted_issuers().is_empty();
        Self { metadata: known.then(|| metadata_url(server, head)) }
    }

    pub(crate) fn credential_required(&self) -> Rejection {
        let message = "Send a credential: Authorization: Bearer <key>";
        self.challenged(Rejection::new(401, Code::CredentialRequired, message), &[])
    }

    pub(crate) fn credential_invalid(&self) -> Rejection {
        let rejection = Rejection::new(401, Code::CredentialInvalid, "The credential is not valid");
        self.challenged(rejection, &[("error", "invalid_token")])
    }

    pub(crate) fn token_refused(&self, refusal: &TokenRefusal) -> Rejection {
        match refusal {
            TokenRefusal::Invalid(_) => self.credential_invalid(),
            TokenRefusal::Expired => {
                let message = "The token has expired: send a new one";
                let error = [("error", "invalid_token"), ("error_description", "The access token expired")];
                self.challenged(Rejection::new(401, Code::TokenExpired, message), &error)
            }
            TokenRefusal::Unavailable => {
                let message = "The keys of the token's issuer cannot be fetched now: try again shortly";
                self.challenged(Rejection::new(401, Code::IssuerUnavailable, message), &[])
            }
        }
    }

    /// A person's token reaches the route with another scope.
    pub(crate) fn insufficient_scope(&self, rejection: Rejection, scope: Scope) -> Rejection {
        self.challenged(rejection, &[("error", "insufficient_scope"), ("scope", scope.as_str())])
    }

    fn challenged(&self, rejection: Rejection, params: &[(&str, &str)]) -> Rejection {
        let metadata = self.metadata.iter().map(|url| ("resource_metadata", url.as_str()));
        let params: Vec<_> =
            params.iter().copied().chain(metadata).map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let challenge = if params.is_empty() { "Bearer".to_owned() } else { format!("Bearer {}", params.join(", ")) };
        rejection.with_challenge(challenge)
    }
}

/// The protected-resource document; `None` without a trusted issuer (api 7.6).
pub(crate) fn resource_metadata(server: &Server, head: &Head) -> Option<Value> {
    let issuers = server.app.trusted_issuers();
    let list = |texts: Vec<&str>| Value::Array(texts.into_iter().map(Value::from).collect());
    // The console's scope is not for others to ask for: no route of the Runtime API needs it.
    let scopes = server.app.token_scopes().into_iter().filter(|scope| scope.scope().is_some());
    (!issuers.is_empty()).then(|| {
        Value::object([
            ("resource", Value::from(resource(server, head))),
            ("authorization_servers", list(issuers.iter().map(String::as_str).collect())),
            ("scopes_supported", list(scopes.map(|scope| scope.as_str()).collect())),
            ("bearer_methods_supported", list(vec!["header"])),
            ("resource_name", Value::from("Nylorun Runtime API")),
        ])
    })
}

/// What clients call this server: its public URL, or the origin that the request names. `Host` is one of ours: others
/// were refused.
fn resource(server: &Server, head: &Head) -> String {
    match (&server.config.public_url, head.header(header::HOST)) {
        (Some(url), _) => url.clone(),
        (None, Sent::Once(host)) => format!("http://{}", host.trim()),
        (None, Sent::Absent | Sent::Unreadable) => "http://localhost".to_owned(),
    }
}

/// The document's URL: the well-known path stands between the resource's origin and its own path (RFC 9728, 3.1).
fn metadata_url(server: &Server, head: &Head) -> String {
    well_known(&resource(server, head))
}

fn well_known(resource: &str) -> String {
    let path_at = resource.find("://").map_or(0, |at| at + 3);
    let path_at = resource[path_at..].find('/').map_or(resource.len(), |at| path_at + at);
    let (origin, path) = resource.split_at(path_at);
    format!("{origin}{RESOURCE_METADATA}{}", path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::well_known;

    #[test]
    fn the_well_known_path_stands_before_the_resources_own() {
        for (resource, url) in [
            ("https://a.example", "https://a.example/.well-known/oauth-protected-resource"),
            ("http://localhost:4000", "http://localhost:4000/.well-known/oauth-protected-resource"),
            ("https://a.example/x/y", "https://a.example/.well-known/oauth-protected-resource/x/y"),
        ] {
            assert_eq!(well_known(resource), url);
        }
    }
}
