//! Whether an end checks what it sends itself. What it receives is always read strictly.

use nylorun_domain::json::Json;
use nylorun_wire::harness::frame::{ApiError, ErrorCode};
use nylorun_wire::harness::method::{check_message, check_request, check_result};

/// Whether an end of a channel checks what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// Everything is read back before it is sent: for tests.
    On,
    /// Nothing is: what is printed from types follows its shape.
    Off,
}

impl Checks {
    pub(super) fn request(self, method: &str, params: &Json) -> Result<(), ApiError> {
        match self {
            Self::On => check_request(method, params.as_str()).map_err(ApiError::from),
            Self::Off => Ok(()),
        }
    }

    pub(super) fn result(self, method: &str, result: &Json) -> Result<(), ApiError> {
        let wrong = |error| ApiError::new(ErrorCode::Internal, format!("the answer to {method}: {error}"));
        match self {
            Self::On => check_result(method, result.as_str()).map_err(wrong),
            Self::Off => Ok(()),
        }
    }

    pub(super) fn message(self, method: &str, params: &Json) -> Result<(), ApiError> {
        match self {
            Self::On => check_message(method, params.as_str()).map_err(ApiError::from),
            Self::Off => Ok(()),
        }
    }
}
