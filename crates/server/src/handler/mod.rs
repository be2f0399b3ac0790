//! Handlers, one file a resource: read what was sent, ask the application, print what it gives.

pub(crate) mod agent;
pub(crate) mod effect;
pub(crate) mod file;
pub(crate) mod history;
pub(crate) mod key;
pub(crate) mod me;
pub(crate) mod model;
pub(crate) mod retention;
pub(crate) mod sandbox;
pub(crate) mod session;
pub(crate) mod session_list;
pub(crate) mod tenant;
pub(crate) mod usage;
pub(crate) mod workspace;

use nylorun_app::Error;
use nylorun_domain::check::Problems;
use nylorun_domain::json::Value;
use nylorun_wire::code::Code;
use nylorun_wire::error::Rejection;

use crate::upload::too_large;

/// When to try again what another session's turn holds up (api 1.8).
const SANDBOX_RETRY_SECONDS: u32 = 5;

/// The application's refusal as an answer. What went wrong inside is logged and never told.
pub(crate) fn refused(error: Error) -> Rejection {
    let with = |rejection: Rejection, details| match details {
        Some(details) => rejection.with_details(details),
        None => rejection,
    };
    match error {
        Error::Invalid(problems) => Rejection::invalid(&problems),
        Error::BadRequest { code, message } => Rejection::new(400, code, message),
        Error::FilesMissing { missing } => {
            let message = "The manifest names definition files that are not stored: upload each of details.missing \
                           with PUT /v1/files/{file}, then save the agent again";
            let missing = Value::Array(missing.iter().map(|file| Value::from(file.as_str())).collect());
            let details = Value::object([("missing", missing)]);
            Rejection::new(400, Code::DefinitionFilesMissing, message).with_details(details)
        }
        Error::OtherFile { expected, actual } => {
            let message = format!("The bytes have the hash {actual}, and the path names {expected}");
            let details = [("expected", Value::from(expected.as_str())), ("actual", Value::from(actual.as_str()))];
            Rejection::new(400, Code::InvalidRequest, message).with_details(Value::object(details))
        }
        Error::TooLarge { what, limit_bytes } => too_large(what, limit_bytes),
        Error::BrokenBody => Rejection::new(400, Code::InvalidRequest, "The body could not be read"),
        Error::Resetting => {
            let message = "The tenant is being reset: try again shortly";
            Rejection::new(503, Code::RequestRejected, message).with_retry_after(1)
        }
        Error::NotFound { message } => Rejection::missing(message),
        Error::Conflict { code, message, active_turn, details } => {
            let rejection = with(Rejection::new(409, code, message), details);
            match active_turn {
                Some(turn) => rejection.with_active_turn(turn),
                None => rejection,
            }
        }
        Error::SandboxBusy { message } => {
            let details = Value::object([("retryAfterSeconds", Value::from(i64::from(SANDBOX_RETRY_SECONDS)))]);
            Rejection::new(409, Code::SandboxBusy, message)
                .with_details(details)
                .with_retry_after(SANDBOX_RETRY_SECONDS)
        }
        Error::Forbidden { code, message, details } => with(Rejection::new(403, code, message), details),
        Error::Unavailable { message } => {
            tracing::warn!(message, "a request met something unavailable");
            let message = "The server's storage does not answer now: try again shortly";
            Rejection::new(503, Code::RequestRejected, message).with_retry_after(1)
        }
        Error::Internal { message } => {
            tracing::error!(message, "a request failed inside");
            Rejection::internal()
        }
    }
}

/// Problems that only the reader of a body finds.
pub(crate) fn unreadable(problems: Problems) -> Rejection {
    Rejection::invalid(&problems)
}
