//! Why a use case refuses or fails, without a transport.

use nylorun_domain::check::{Path, ProblemCode, Problems};
use nylorun_domain::definition_file::FileHash;
use nylorun_domain::id::TurnId;
use nylorun_domain::json::Value;
use nylorun_domain::turn::Refusal;
use nylorun_store::{DbError, Fault, StoreError, WriteError};
use nylorun_wire::code::Code;

/// Why a use case refuses or fails.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The body breaks its rules.
    #[error("{0}")]
    Invalid(Problems),
    /// The request cannot be right.
    #[error("{message}")]
    BadRequest {
        /// What kind of refusal.
        code: Code,
        /// Why, and what would help.
        message: String,
    },
    /// The manifest names definition files that are not stored.
    #[error("the manifest names definition files that are not stored; upload each with PUT /v1/files/HASH first")]
    FilesMissing {
        /// Their names, in order.
        missing: Vec<FileHash>,
    },
    /// The bytes of a definition file are not those of its name.
    #[error("the bytes have the hash {actual}, and the path names {expected}")]
    OtherFile {
        /// The file that was to be stored.
        expected: FileHash,
        /// What came.
        actual: FileHash,
    },
    /// What was sent is larger than it may be.
    #[error("{what} has more than {limit_bytes} bytes")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// The limit.
        limit_bytes: u64,
    },
    /// The bytes that were sent broke off.
    #[error("the body could not be read")]
    BrokenBody,
    /// The tenant is being reset.
    #[error("the tenant is being reset: try again shortly")]
    Resetting,
    /// It is not there, or not the caller's.
    #[error("{message}")]
    NotFound {
        /// What is not there.
        message: String,
    },
    /// It does not go with what is there.
    #[error("{message}")]
    Conflict {
        /// What kind of refusal.
        code: Code,
        /// Why, and what would help.
        message: String,
        /// The turn that is in the way.
        active_turn: Option<TurnId>,
        /// Facts for programs.
        details: Option<Value>,
    },
    /// Another session's turn has the sandbox that both use.
    #[error("{message}")]
    SandboxBusy {
        /// Whose, and what would help.
        message: String,
    },
    /// The caller may not.
    #[error("{message}")]
    Forbidden {
        /// What kind of refusal.
        code: Code,
        /// Why, and what would help.
        message: String,
        /// Facts for programs.
        details: Option<Value>,
    },
    /// Something that this needs does not answer now.
    #[error("{message}")]
    Unavailable {
        /// What, for the log.
        message: String,
    },
    /// A fault of this program.
    #[error("{message}")]
    Internal {
        /// What, for the log; never told to the caller.
        message: String,
    },
}

impl Error {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::BadRequest { code: Code::RequestRejected, message: message.into() }
    }

    /// The path's parameter `name` would name something that no client could reach.
    pub(crate) fn unaddressable(name: &str, id: &str) -> Self {
        let message =
            format!("{id:?} cannot be an id: whoever normalizes a URL takes it for a step; choose another id");
        Self::Invalid(Problems::one(ProblemCode::Custom, &Path::ROOT.name(name), message))
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::NotFound { message: message.into() }
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::Conflict { code: Code::RequestRejected, message: message.into(), active_turn: None, details: None }
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::Forbidden { code: Code::RequestRejected, message: message.into(), details: None }
    }

    /// A person's token sends a member that is for applications.
    pub(crate) fn scope_required(member: &str) -> Self {
        Self::Forbidden {
            code: Code::ScopeRequired,
            message: format!("{member} is for application keys: leave it out with an issuer's token"),
            details: Some(Value::object([("scopes", Value::Array(Vec::new()))])),
        }
    }

    /// The store failed: only what trying again may mend is said to be unavailable.
    fn of_fault(fault: Fault, message: String) -> Self {
        match fault {
            Fault::Passing | Fault::NoWrites => Self::Unavailable { message },
            Fault::ForGood => Self::Internal { message },
        }
    }

    pub(crate) fn session_not_found() -> Self {
        Self::not_found("Session not found")
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::of_fault(error.fault(), error.to_string())
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        // A guard or a key that the caller does not know of is a fault of this program.
        Self::of_fault(error.fault().unwrap_or(Fault::ForGood), error.to_string())
    }
}

impl From<DbError> for Error {
    fn from(error: DbError) -> Self {
        StoreError::from(error).into()
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::Busy { active_turn_id }
            | Refusal::QueueFull { active_turn_id }
            | Refusal::NotAwaiting { active_turn_id } => {
                Self::Conflict { code: Code::RequestRejected, message, active_turn: active_turn_id, details: None }
            }
            Refusal::WorkspaceInUse { active_turn_id } => Self::Conflict {
                code: Code::RequestRejected,
                message,
                active_turn: Some(active_turn_id),
                details: None,
            },
            Refusal::WorkspaceHeld { by: _ } => Self::SandboxBusy { message },
            Refusal::UnknownEffect(_) => Self::NotFound { message },
            Refusal::UnknownInteraction(_)
            | Refusal::Retried(_)
            | Refusal::NotUncertain { .. }
            | Refusal::OnlyRetry(_)
            | Refusal::TurnEnded(_) => Self::conflict(message),
        }
    }
}
