//! Failures of model calls: from what a provider said to one of the codes (engine b.10).

use std::time::Duration;

use nylorun_domain::model::{ModelFailureCode, Usage};

/// Longest message that is kept of what a provider said, in characters.
const MAX_MESSAGE: usize = 500;
/// A secret shorter than this is not looked for: it would redact ordinary words (engine e.11).
const MIN_SECRET: usize = 8;

/// What went wrong with one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The code that it amounts to.
    pub(crate) code: ModelFailureCode,
    /// What happened, in the provider's words or ours.
    pub(crate) message: String,
    /// Whether another attempt may do better.
    pub(crate) retryable: bool,
    /// How long the provider asked to wait.
    pub(crate) retry_after: Option<Duration>,
    /// Tokens that it reported all the same.
    pub(crate) usage: Option<Usage>,
    /// What the provider found fault with.
    pub(crate) with: With,
}

/// What a provider found fault with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum With {
    /// The call.
    Call,
    /// The reasoning of earlier answers that the call sent back: it belongs to another account, say.
    Replay,
}

impl Fault {
    /// A fault of this code, retryable when its kind may pass.
    pub(crate) fn new(code: ModelFailureCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: may_pass(code),
            retry_after: None,
            usage: None,
            with: With::Call,
        }
    }

    /// A fault that may pass: a broken connection, say.
    pub(crate) fn transient(message: impl Into<String>) -> Self {
        Self::new(ModelFailureCode::Transient, message)
    }

    /// An answer that cannot be read.
    pub(crate) fn unreadable(message: impl Into<String>) -> Self {
        Self::new(ModelFailureCode::InvalidOutput, message)
    }

    /// The fault that a provider's words amount to. `status` is absent for an error inside a stream; `kind` is the
    /// provider's own code.
    pub(crate) fn said(status: Option<u16>, kind: &str, message: &str) -> Self {
        let words = format!("{kind} {message}").to_lowercase();
        let (code, retryable) = classify(status, &words);
        let replay = code == ModelFailureCode::InvalidRequest && REPLAY.iter().any(|word| words.contains(word));
        let message = if message.is_empty() { kind } else { message };
        let status = status.map(|status| format!("HTTP {status}"));
        let message = Some(clipped(message)).filter(|message| !message.is_empty());
        let message = [status, message].into_iter().flatten().collect::<Vec<_>>().join(": ");
        Self { retryable, with: if replay { With::Replay } else { With::Call }, ..Self::new(code, message) }
    }

    /// The fault without the secret, should the provider have echoed it.
    pub(crate) fn without(mut self, secret: &str) -> Self {
        if secret.len() >= MIN_SECRET {
            self.message = self.message.replace(secret, "[redacted]");
        }
        self
    }
}

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

/// The order of engine b.10: the first that fits decides.
fn classify(status: Option<u16>, words: &str) -> (ModelFailureCode, bool) {
    let says = |list: &[&str]| list.iter().any(|word| words.contains(word));
    let is = |list: &[u16]| status.is_some_and(|status| list.contains(&status));
    let limited = is(&[429]) || says(RATE_LIMIT);
    let code = if !limited && says(OVERFLOW) {
        ModelFailureCode::ContextOverflow
    } else if limited || is(&[402]) || says(QUOTA) {
        return (ModelFailureCode::RateLimited, limited && !says(QUOTA));
    } else if is(&[503, 529]) || says(OVERLOADED) {
        ModelFailureCode::Overloaded
    } else if is(&[408, 504, 524]) || says(TIMEOUT) {
        ModelFailureCode::Timeout
    } else if says(CONTENT_POLICY) {
        ModelFailureCode::ContentPolicy
    } else if is(&[401, 403]) || says(AUTH) {
        ModelFailureCode::Auth
    } else if status.is_some_and(|status| status >= 500 || status == 425) || says(TRANSIENT) {
        ModelFailureCode::Transient
    } else {
        ModelFailureCode::InvalidRequest
    };
    (code, may_pass(code))
}

const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "exceed_context_size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "prompt too long",
    "input token count",
    "maximum prompt length",
    "reduce the length of the messages",
    "request_too_large",
];
const RATE_LIMIT: &[&str] =
    &["rate limit", "rate_limit", "ratelimit", "too many requests", "tokens per minute", "resource_exhausted"];
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "quota",
    "billing",
    "credit balance",
    "insufficient balance",
    "insufficient credits",
    "payment required",
    "spend limit",
    "usage limit",
];
const OVERLOADED: &[&str] = &["overloaded", "at capacity", "over capacity", "service unavailable", "slow_down"];
const TIMEOUT: &[&str] = &["timeout", "timed out"];
const CONTENT_POLICY: &[&str] = &[
    "content_filter",
    "content filter",
    "content_policy",
    "content policy",
    "content management policy",
    "moderation",
    "usage polic",
    "safety system",
    "prohibited_content",
];
const AUTH: &[&str] = &[
    "invalid_api_key",
    "invalid api key",
    "incorrect api key",
    "api key not valid",
    "invalid x-api-key",
    "authentication",
    "unauthorized",
    "permission_error",
];
/// What providers call the reasoning that they want back.
const REPLAY: &[&str] = &[
    "encrypted_content",
    "encrypted content",
    "thought signature",
    "thought_signature",
    "thoughtsignature",
    "thinking block",
    "redacted_thinking",
    "`thinking`",
    "reasoning_details",
    "remove the reasoning_content",
    "of type 'reasoning'",
];
const TRANSIENT: &[&str] = &["internal server error", "server_error", "api_error", "internal_error"];

/// The beginning of a message, for it may be a whole page.
pub(crate) fn clipped(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::ModelFailureCode::*;
    use super::*;

    #[test]
    fn the_first_class_that_fits_decides() {
        let table = [
            (
                Some(400),
                "invalid_request_error",
                "prompt is too long: 210000 tokens > 200000 maximum",
                ContextOverflow,
                false,
            ),
            (
                Some(400),
                "context_length_exceeded",
                "This model's maximum context length is 8192",
                ContextOverflow,
                false,
            ),
            (Some(413), "request_too_large", "Request exceeds the maximum size", ContextOverflow, false),
            (Some(429), "rate_limit_error", "too large for the context window tokens per minute", RateLimited, true),
            (Some(429), "insufficient_quota", "You exceeded your current quota", RateLimited, false),
            (Some(429), "", "", RateLimited, true),
            (Some(400), "", "Your credit balance is too low to access the API", RateLimited, false),
            (Some(402), "", "Payment needed", RateLimited, false),
            (Some(529), "overloaded_error", "Overloaded", Overloaded, true),
            (Some(503), "", "", Overloaded, true),
            (None, "overloaded_error", "Overloaded", Overloaded, true),
            (Some(504), "", "", Timeout, true),
            (Some(400), "content_policy_violation", "rejected by safety system", ContentPolicy, false),
            (Some(401), "", "", Auth, false),
            (Some(403), "permission_error", "no access", Auth, false),
            (Some(400), "", "API key not valid. Please pass a valid API key.", Auth, false),
            (Some(500), "", "", Transient, true),
            (None, "api_error", "Internal server error", Transient, true),
            (Some(400), "invalid_request_error", "messages: at least one message is required", InvalidRequest, false),
            (Some(404), "not_found_error", "model: nope", InvalidRequest, false),
        ];
        for (status, kind, message, code, retryable) in table {
            let fault = Fault::said(status, kind, message);
            assert_eq!((fault.code, fault.retryable), (code, retryable), "{status:?} {kind} {message}");
        }
    }

    #[test]
    fn a_refusal_of_earlier_reasoning_is_told_apart() {
        let with = |status, kind: &str, message: &str| Fault::said(status, kind, message).with;
        let refused = "The encrypted content for item rs_1 could not be verified.";
        assert_eq!(with(Some(400), "invalid_encrypted_content", refused), With::Replay);
        let refused = "messages.1.content.0: Invalid `signature` in `thinking` block";
        assert_eq!(with(Some(400), "invalid_request_error", refused), With::Replay);
        assert_eq!(with(Some(400), "INVALID_ARGUMENT", "Corrupted thought signature."), With::Replay);
        assert_eq!(with(Some(400), "invalid_request_error", "thinking.type.disabled is not supported"), With::Call);
        assert_eq!(with(Some(529), "overloaded_error", "thinking blocks everywhere"), With::Call);
    }

    #[test]
    fn messages_are_bounded_and_hold_no_secret() {
        assert_eq!(clipped(&"é".repeat(501)).chars().count(), 501);
        let fault = Fault::said(Some(401), "", "bad key sk-canary-123456").without("sk-canary-123456");
        assert_eq!(fault.message, "HTTP 401: bad key [redacted]");
    }
}
