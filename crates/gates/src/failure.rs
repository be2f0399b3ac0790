//! Failures of model calls (engine b.10).

use nylorun_domain::model::ModelFailureCode;

/// Whether a failure of this kind may pass by itself.
pub(crate) fn may_pass(code: ModelFailureCode) -> bool {
    match code {
        ModelFailureCode::RateLimited
        | ModelFailureCode::Overloaded
        | ModelFailureCode::Timeout
        | ModelFailureCode::Transient => true,
        ModelFailureCode::ContextOverflow
        | ModelFailureCode::ContentPolicy
        | ModelFailureCode::Auth
        | ModelFailureCode::InvalidRequest
        | ModelFailureCode::InvalidOutput
        | ModelFailureCode::BudgetExhausted => false,
    }
}
