//! Crash points, in test builds only (feature `crash-points`): the process ends itself, without any cleaning up, at a
//! chosen write. A test runs a scenario once with `NYLORUN_CRASH_POINT=count` to learn how many writes there are
//! (`counts().writes`), then once for each of them with `N:before` and `N:after`.

use super::error::OpenError;

/// Where the process ends itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CrashPoint {
    /// Nowhere.
    Never,
    /// Before the n-th write is applied.
    Before(u64),
    /// After the n-th write is durable and before its caller hears of it.
    After(u64),
}

impl CrashPoint {
    /// Reads the environment in a build with crash points; `Never` in all others.
    pub(super) fn from_env() -> Result<Self, OpenError> {
        if !cfg!(feature = "crash-points") {
            return Ok(Self::Never);
        }
        match std::env::var("NYLORUN_CRASH_POINT") {
            Ok(text) => Self::parse(&text).ok_or(OpenError::CrashPoint),
            Err(_) => Ok(Self::Never),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "count" {
            return Some(Self::Never);
        }
        let (number, place) = text.split_once(':')?;
        let number = number.parse().ok()?;
        match place {
            "before" => Some(Self::Before(number)),
            "after" => Some(Self::After(number)),
            _ => None,
        }
    }

    /// Called with the number of a write that is about to be applied.
    pub(super) fn before(self, write: u64) {
        if self == Self::Before(write) {
            std::process::abort();
        }
    }

    /// Called with the number of a write that is durable.
    pub(super) fn after(self, write: u64) {
        if self == Self::After(write) {
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CrashPoint;

    #[test]
    fn reads_the_three_forms() {
        assert_eq!(CrashPoint::parse("count"), Some(CrashPoint::Never));
        assert_eq!(CrashPoint::parse("3:before"), Some(CrashPoint::Before(3)));
        assert_eq!(CrashPoint::parse("12:after"), Some(CrashPoint::After(12)));
        for wrong in ["", "3", "3:", "x:after", "3:during"] {
            assert_eq!(CrashPoint::parse(wrong), None, "{wrong}");
        }
    }
}
