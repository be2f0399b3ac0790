//! Keys of callers on the wire (api 3).

use nylorun_domain::json::Value;
use nylorun_domain::time::Millis;

/// One key of the list. The key itself is never shown again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyListed {
    /// Its name.
    pub id: String,
    /// `application`, `management` or `studio`.
    pub role: String,
    /// When it was made or last rotated.
    pub created_at: Millis,
}

/// `{keys:[{id, role, createdAt}]}`, in the order given.
pub fn list(keys: &[KeyListed]) -> Value {
    let keys = keys.iter().map(|key| {
        Value::object([
            ("id", Value::from(key.id.as_str())),
            ("role", Value::from(key.role.as_str())),
            ("createdAt", Value::from(key.created_at.to_iso())),
        ])
    });
    Value::object([("keys", Value::Array(keys.collect()))])
}

/// A key that was just made: the only answer that shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMade {
    /// Its name.
    pub id: String,
    /// When it was made.
    pub created_at: Millis,
    /// The key: 64 lower-case hexadecimal digits.
    pub key: String,
    /// Whether it takes the place of an older one.
    pub rotated: bool,
}

impl KeyMade {
    /// The answer's body; the role is always `application`.
    pub fn to_value(&self) -> Value {
        Value::object([
            ("id", Value::from(self.id.as_str())),
            ("role", Value::from("application")),
            ("createdAt", Value::from(self.created_at.to_iso())),
            ("key", Value::from(self.key.as_str())),
            ("rotated", Value::from(self.rotated)),
        ])
    }
}

impl std::fmt::Debug for KeyMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyMade({})", self.id)
    }
}

/// `{id, deleted: true}`
pub fn deleted(id: &str) -> Value {
    Value::object([("id", Value::from(id)), ("deleted", Value::from(true))])
}
