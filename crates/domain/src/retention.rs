//! How long the tenant keeps what nobody works with any more (`docs/guide/retention.md`).

use crate::grammar::{parse_duration_ms, print_duration};
use crate::time::Millis;

/// What is removed, and when. Nothing is, unless the operator says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Sessions go whole when nothing has happened in them for so long.
    pub sessions: Option<Keep>,
    /// Events go when they are so old; their sessions stay.
    pub events: Option<Keep>,
}

/// How long something is kept: above 0 milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep(i64);

impl Keep {
    /// Reads `90d`, `12h` and the like: a whole number above 0 and `ms`, `s`, `m`, `h` or `d`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        parse_duration_ms(text).map(Self)
    }

    /// As [`parse`](Self::parse) reads it, with the largest unit that divides it.
    pub fn print(self) -> String {
        print_duration(self.0)
    }

    /// What happened before this time is too old.
    pub fn cutoff(self, now: Millis) -> Millis {
        now.plus(-self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Keep;
    use crate::time::Millis;

    #[test]
    fn what_is_older_than_the_time_is_too_old() {
        let keep = Keep::parse("36h").unwrap();
        assert_eq!((keep.print().as_str(), keep.cutoff(Millis(36 * 3_600_000 + 7))), ("36h", Millis(7)));
        assert_eq!(Keep::parse("48h").unwrap().print(), "2d");
        for wrong in ["", "0d", "-1d", "90", "1 d", "d", "1w"] {
            assert!(Keep::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
