//! Error codes of the wire and the HTTP statuses that they come with (api 1.8). Codes are never renamed.

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal: $($status:literal)+;)*) => {
        /// What kind of refusal an error body names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// All codes, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The wire's word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The HTTP statuses that may carry the code, the usual one first.
            pub fn statuses(self) -> &'static [u16] {
                match self { $(Self::$variant => &[$($status),+],)* }
            }

            /// The code of this word.
            pub fn from_wire(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.as_str() == word)
            }
        }
    };
}

codes! {
    /// An opaque refusal: Tenant not open, another Tenant named, bad capability link, no protected-resource document.
    NotFound = "not_found": 404;
    /// No credential was sent.
    CredentialRequired = "credential_required": 401;
    /// The credential is unknown, or not readable.
    CredentialInvalid = "credential_invalid": 401;
    /// An issuer's token or a capability link has expired, or the link's key was revoked.
    TokenExpired = "token_expired": 401;
    /// The issuer's keys cannot be fetched.
    IssuerUnavailable = "issuer_unavailable": 401;
    /// `Nylorun-Protocol` is missing, unreadable or outside the range that this server speaks.
    ProtocolUnsupported = "protocol_unsupported": 426;
    /// The `Host` header names a host that this server does not answer for.
    HostRejected = "host_rejected": 421;
    /// A browser's request where none is served.
    OriginRejected = "origin_rejected": 403;
    /// The body is not `application/json`, or is compressed.
    UnsupportedMediaType = "unsupported_media_type": 415;
    /// Subject or scopes headers are wrong; 403 when a management key sends them.
    SubjectInvalid = "subject_invalid": 400 403;
    /// The call needs a person, and the application key names none.
    SubjectRequired = "subject_required": 400;
    /// The caller's scopes do not reach the route, or the member of the body.
    ScopeRequired = "scope_required": 403;
    /// A key of the other API.
    KeyRoleMismatch = "key_role_mismatch": 403;
    /// A size (413) or a number (409) is above the tenant's limit.
    LimitExceeded = "limit_exceeded": 413 409;
    /// Every refusal without a code of its own; the message says why.
    RequestRejected = "request_rejected": 400 403 404 409 413 503;
    /// The request cannot be read, its head is too long (414, 431), or its parts contradict each other.
    InvalidRequest = "invalid_request": 400 414 431;
    /// The token's grants do not reach the session's environment.
    SandboxNotGranted = "sandbox_not_granted": 403;
    /// Another turn holds the environment, or it is being changed.
    SandboxBusy = "sandbox_busy": 409;
    /// The environment was deleted, or its kind is not served here.
    SandboxUnavailable = "sandbox_unavailable": 409;
    /// The environment's volume is gone.
    SandboxLost = "sandbox_lost": 409;
    /// The environment's time is over.
    SandboxExpired = "sandbox_expired": 409;
    /// The tenant's placement excludes the host that is needed.
    PlacementRefused = "placement_refused": 409;
    /// The manifest names files that are not stored.
    DefinitionFilesMissing = "definition_files_missing": 400;
    /// The shell credentials of a session are ambiguous.
    CredentialConflict = "credential_conflict": 409;
    /// An MCP server could not be looked at.
    McpPreviewFailed = "mcp_preview_failed": 502;
    /// A fault of this server; never with a detail.
    InternalError = "internal_error": 500;
    /// A query parameter is unknown or wrong.
    QueryInvalid = "query_invalid": 400;
    /// A cursor cannot be read.
    CursorInvalid = "cursor_invalid": 400;
    /// A cursor of another list or filter.
    CursorMismatch = "cursor_mismatch": 400;
    /// Lists cannot be read now.
    ReadsUnavailable = "reads_unavailable": 503;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Code;

    #[test]
    fn every_word_stands_once_and_reads_back() {
        let words: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        for code in Code::ALL {
            assert_eq!(Code::from_wire(code.as_str()), Some(*code));
        }
        assert_eq!(Code::from_wire("sandbox"), None);
    }
}
