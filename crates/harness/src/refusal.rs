//! Refusals of a run's calls, on their way and back.

use nylorun_domain::id::EffectId;
use nylorun_ports::abort::AbortKind;
use nylorun_ports::run::CoreError;
use nylorun_wire::harness::frame::{ApiError, ErrorCode};
use nylorun_wire::harness::lease::CancelReason;

/// How a run is told that its call is refused.
pub(crate) fn to_api(error: &CoreError) -> ApiError {
    let code = match error {
        CoreError::OwnershipLost => ErrorCode::OwnershipLost,
        CoreError::TurnCancelled => ErrorCode::TurnCancelled,
        CoreError::EffectDrift(_) => ErrorCode::EffectDrift,
        CoreError::Unavailable(_) => ErrorCode::Unavailable,
        CoreError::Refused(_) => ErrorCode::Internal,
    };
    ApiError::new(code, error.to_string())
}

/// What a refusal means to a run; `effect` is what it asked about.
pub(crate) fn from_api(error: ApiError, effect: Option<&EffectId>) -> CoreError {
    match (error.code, effect) {
        (ErrorCode::RunNotHeld | ErrorCode::OwnershipLost, _) => CoreError::OwnershipLost,
        (ErrorCode::TurnCancelled, _) => CoreError::TurnCancelled,
        (ErrorCode::EffectDrift, Some(effect)) => CoreError::EffectDrift(effect.clone()),
        (ErrorCode::Internal, _) => CoreError::Refused(error.message),
        (ErrorCode::EffectDrift, None) | (ErrorCode::Invalid | ErrorCode::Unavailable, _) => {
            CoreError::Unavailable(error.to_string())
        }
    }
}

/// Why a run is to end, as a harness is told.
pub(crate) fn reason_of(kind: AbortKind) -> CancelReason {
    match kind {
        AbortKind::Shutdown => CancelReason::Shutdown,
        AbortKind::Deadline => CancelReason::Deadline,
        AbortKind::Cancel => CancelReason::Cancel,
        AbortKind::OwnershipLost => CancelReason::OwnershipLost,
    }
}

/// Why a run is to end, as its driver is told.
pub(crate) fn kind_of(reason: CancelReason) -> AbortKind {
    match reason {
        CancelReason::Shutdown => AbortKind::Shutdown,
        CancelReason::Deadline => AbortKind::Deadline,
        CancelReason::Cancel => AbortKind::Cancel,
        CancelReason::OwnershipLost => AbortKind::OwnershipLost,
    }
}
