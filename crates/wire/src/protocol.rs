//! The versions of the client protocol and the features that are advertised (api 1.2; decisions, Compatibility).

use nylorun_domain::json::Value;

/// The oldest version that is served.
pub const MIN: u32 = 4;
/// The newest version that is served.
pub const MAX: u32 = 10;

/// Features, in the order in which they are advertised. The required four are the floor without which no existing
/// client connects; an optional one stands here only when all of it works.
pub const FEATURES: &[&str] = &[
    // Older names, kept for clients that look for them.
    "runtime-tenants",
    "admin-status",
    // Required by every client.
    "studio-principal",
    "artifacts",
    "management-api",
    "resource-server",
    // Optional ones that work in full.
    "tenant-fixture-model",
    "subject-headers",
    "trusted-issuers",
    "session-reads",
    "calls-export",
    // Beyond the existing implementation.
    "message-deltas",
];

/// A version of the protocol that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u32);

impl Version {
    /// The newest.
    pub const NEWEST: Self = Self(MAX);

    /// The version that a `Nylorun-Protocol` header names, when it is served: digits only, within the range.
    pub fn parse(header: &str) -> Option<Self> {
        let digits = !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit());
        let number = header.parse().ok().filter(|_| digits)?;
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }

    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// `{min, max, features}`
pub fn to_value() -> Value {
    let features = FEATURES.iter().map(|feature| Value::from(*feature)).collect();
    Value::object([
        ("min", Value::from(i64::from(MIN))),
        ("max", Value::from(i64::from(MAX))),
        ("features", Value::Array(features)),
    ])
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn reads_versions_in_range() {
        for (header, number) in [("4", 4), ("10", 10), ("007", 7)] {
            assert_eq!(Version::parse(header).map(Version::number), Some(number));
        }
        for wrong in ["", "3", "11", "+5", "5.0", " 5", "5 ", "v5", "99999999999999999999", "-5"] {
            assert_eq!(Version::parse(wrong), None, "{wrong:?}");
        }
    }
}
