//! A change as data: statements with their parameters and what each must do to be right.

use std::borrow::Cow;
use std::fmt;

use super::error::DbError;
use super::value::Val;

/// The name of a precondition that a write checks, such as an epoch or a revision. The layer above declares its
/// guards as constants and matches on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard(pub &'static str);

impl fmt::Display for Guard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

/// How many rows a statement must change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Any number, none included.
    Any,
    /// Exactly one; otherwise the whole write is rolled back and fails with this guard.
    One(Guard),
}

impl Expect {
    /// Compares with the rows changed; gives the guard that failed.
    pub(crate) fn check(self, changed: u64) -> Result<(), Guard> {
        match self {
            Self::Any => Ok(()),
            Self::One(_) if changed == 1 => Ok(()),
            Self::One(guard) => Err(guard),
        }
    }
}

/// One INSERT, UPDATE or DELETE. Placeholders are `$1`, `$2`, … on both engines; it returns no rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The text; made at run time only for multi-row inserts, since each distinct text is prepared once.
    pub sql: Cow<'static, str>,
    /// The values of `$1`, `$2`, …: exactly as many as the text uses.
    pub params: Vec<Val>,
    /// What it must change.
    pub expect: Expect,
}

impl Statement {
    /// A statement that may change any number of rows.
    pub fn any(sql: impl Into<Cow<'static, str>>, params: Vec<Val>) -> Self {
        Self { sql: sql.into(), params, expect: Expect::Any }
    }

    /// A statement that must change exactly one row.
    pub fn one(sql: impl Into<Cow<'static, str>>, params: Vec<Val>, guard: Guard) -> Self {
        Self { sql: sql.into(), params, expect: Expect::One(guard) }
    }
}

/// Refuses what only one of the engines would take: a NUL character in a text.
pub(super) fn check_params(params: &[Val]) -> Result<(), DbError> {
    let has_nul = |value: &Val| match value {
        Val::Text(text) => text.as_bytes().contains(&0),
        Val::Null | Val::Int(_) | Val::Blob(_) => false,
    };
    match params.iter().position(has_nul) {
        Some(index) => Err(DbError::NulInText { parameter: index + 1 }),
        None => Ok(()),
    }
}

/// The highest number of a `$n` outside of quotes: how many parameters a text takes.
pub(super) fn placeholders(sql: &str) -> usize {
    let mut highest = 0;
    // Every second piece is inside of a literal; a doubled quote gives an empty piece and keeps the count right.
    for piece in sql.split('\'').step_by(2) {
        for after in piece.split('$').skip(1) {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            highest = highest.max(after[..digits].parse().unwrap_or(0));
        }
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_counted_outside_of_literals() {
        assert_eq!(placeholders("SELECT 1"), 0);
        assert_eq!(placeholders("UPDATE t SET a = $2, b = $12 WHERE c = $1"), 12);
        assert_eq!(placeholders("SELECT '$9', 'it''s $8' WHERE a = $1"), 1);
    }
}
