//! Who the caller is, on the wire (api 7.5).

use nylorun_domain::json::Value;

/// `GET /v1/me`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Me {
    /// The person for whom the caller acts.
    pub subject: Option<String>,
    /// What it may do.
    pub scopes: Vec<&'static str>,
    /// `application:<id>`, `management:<id>`, `subject`.
    pub via: String,
}

impl Me {
    /// The answer's body. Without trusted issuers a caller reaches every agent.
    pub fn to_value(&self) -> Value {
        let subject = self.subject.iter().map(|subject| ("subject", Value::from(subject.as_str())));
        let scopes = self.scopes.iter().map(|scope| Value::from(*scope)).collect();
        Value::object(subject.chain([
            ("scopes", Value::Array(scopes)),
            ("agents", Value::from("*")),
            ("via", Value::from(self.via.as_str())),
        ]))
    }
}
