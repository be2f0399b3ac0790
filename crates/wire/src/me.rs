//! Who the caller is, on the wire (api 7.5).

use nylorun_domain::json::Value;

/// `GET /v1/me`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Me {
    /// The person for whom the caller acts.
    pub subject: Option<String>,
    /// What it may do.
    pub scopes: Vec<&'static str>,
    /// The only agents that are there for it; `None` for all.
    pub agents: Option<Vec<String>>,
    /// Its grants over environments; only a trusted issuer's token has some.
    pub sandboxes: Option<Vec<String>>,
    /// `application:<id>`, `management:<id>`, `subject`, `issuer:<name>`.
    pub via: String,
}

impl Me {
    /// The answer's body.
    pub fn to_value(&self) -> Value {
        let subject = self.subject.iter().map(|subject| ("subject", Value::from(subject.as_str())));
        let scopes = self.scopes.iter().map(|scope| Value::from(*scope)).collect();
        let sandboxes = self.sandboxes.iter().map(|grants| ("sandboxes", texts(grants)));
        let agents = self.agents.as_ref().map_or_else(|| Value::from("*"), |agents| texts(agents));
        let always = [("scopes", Value::Array(scopes)), ("agents", agents)];
        let via = [("via", Value::from(self.via.as_str()))];
        Value::object(subject.chain(always).chain(sandboxes).chain(via))
    }
}

fn texts(texts: &[String]) -> Value {
    Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect())
}
