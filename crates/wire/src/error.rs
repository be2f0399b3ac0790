//! The body of a refusal: `{status:"rejected", code, message, details?, activeTurnId?, requestId?}` (api 1.8).

use nylorun_domain::check::Problems;
use nylorun_domain::id::TurnId;
use nylorun_domain::json::Value;

use crate::code::Code;

/// A refusal, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The HTTP status; one of [`Code::statuses`].
    pub status: u16,
    /// What kind of refusal.
    pub code: Code,
    /// Why, and what would help; `None` only for a protocol that is not supported.
    pub message: Option<String>,
    /// What few refusals have. Boxed, since refusals travel in every `Result`.
    rest: Option<Box<Rest>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rest {
    details: Option<Value>,
    active_turn: Option<TurnId>,
    request_id: Option<String>,
    protocol: Option<Value>,
    retry_after: Option<u32>,
    challenge: Option<String>,
}

impl Rejection {
    /// A refusal without details.
    pub fn new(status: u16, code: Code, message: impl Into<String>) -> Self {
        Self { status, code, message: Some(message.into()), rest: None }
    }

    /// `426 protocol_unsupported`: no message, but the versions and features that this server has.
    pub fn protocol_unsupported(protocol: Value) -> Self {
        let rest = Rest { protocol: Some(protocol), ..Rest::default() };
        Self { status: 426, code: Code::ProtocolUnsupported, message: None, rest: Some(Box::new(rest)) }
    }

    /// `400 request_rejected`
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, Code::RequestRejected, message)
    }

    /// `400 request_rejected` whose message is the JSON list of all problems.
    pub fn invalid(problems: &Problems) -> Self {
        Self::bad_request(problems.to_json_text())
    }

    /// `404 request_rejected`: a resource that is not there, or not the caller's.
    pub fn missing(message: impl Into<String>) -> Self {
        Self::new(404, Code::RequestRejected, message)
    }

    /// `404 not_found`: an opaque refusal, which says nothing of what is there.
    pub fn opaque() -> Self {
        Self::new(404, Code::NotFound, "Not found")
    }

    /// `500 internal_error`, which never says more.
    pub fn internal() -> Self {
        Self::new(500, Code::InternalError, "Internal error")
    }

    /// The same with facts for programs.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.rest().details = Some(details);
        self
    }

    /// The same, naming the turn that is in the way.
    #[must_use]
    pub fn with_active_turn(mut self, turn: TurnId) -> Self {
        self.rest().active_turn = Some(turn);
        self
    }

    /// The same, echoing the `requestId` of the refused body.
    #[must_use]
    pub fn with_request_id(mut self, request_id: impl Into<String>) -> Self {
        self.rest().request_id = Some(request_id.into());
        self
    }

    /// The same with the seconds after which a repeat may help: `Retry-After`.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.rest().retry_after = Some(seconds);
        self
    }

    /// Seconds after which a repeat may help.
    pub fn retry_after(&self) -> Option<u32> {
        self.rest.as_ref().and_then(|rest| rest.retry_after)
    }

    /// The same with a challenge that says how to do better: `WWW-Authenticate` (api 1.7).
    #[must_use]
    pub fn with_challenge(mut self, challenge: impl Into<String>) -> Self {
        self.rest().challenge = Some(challenge.into());
        self
    }

    /// How to do better.
    pub fn challenge(&self) -> Option<&str> {
        self.rest.as_ref().and_then(|rest| rest.challenge.as_deref())
    }

    fn rest(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }

    /// The body.
    pub fn to_value(&self) -> Value {
        let mut members = vec![("status", Value::from("rejected")), ("code", Value::from(self.code.as_str()))];
        if let Some(message) = &self.message {
            members.push(("message", Value::from(message.as_str())));
        }
        if let Some(rest) = &self.rest {
            rest.push_members(&mut members);
        }
        Value::object(members)
    }
}

impl Rest {
    fn push_members(&self, members: &mut Vec<(&'static str, Value)>) {
        if let Some(protocol) = &self.protocol {
            members.push(("protocol", protocol.clone()));
        }
        if let Some(details) = &self.details {
            members.push(("details", details.clone()));
        }
        if let Some(turn) = &self.active_turn {
            members.push(("activeTurnId", Value::from(turn.as_str())));
        }
        if let Some(request_id) = &self.request_id {
            members.push(("requestId", Value::from(request_id.as_str())));
        }
    }
}

#[cfg(test)]
mod tests {
    use nylorun_domain::id::TurnId;
    use nylorun_domain::json::Value;

    use super::{Code, Rejection};

    #[test]
    fn prints_what_is_there() {
        let rejection = Rejection::new(409, Code::RequestRejected, "busy");
        assert_eq!(
            rejection.to_value().to_json().as_str(),
            r#"{"status":"rejected","code":"request_rejected","message":"busy"}"#
        );
        let rejection = rejection
            .with_active_turn(TurnId::from_trusted("t"))
            .with_request_id("r")
            .with_details(Value::object([("max", Value::from(1))]));
        assert_eq!(
            rejection.to_value().to_json().as_str(),
            concat!(
                r#"{"status":"rejected","code":"request_rejected","message":"busy","#,
                r#""details":{"max":1},"activeTurnId":"t","requestId":"r"}"#
            )
        );
    }
}
