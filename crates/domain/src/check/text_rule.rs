//! Length and grammar of a string.

use super::{Complaint, ProblemCode};
use crate::id::MAX_ID_LEN;
use crate::json::Text;

/// What a string must be like. Lengths are in UTF-16 units.
#[derive(Clone, Copy, Debug)]
pub struct TextRule {
    min: usize,
    max: usize,
    grammar: Option<Grammar>,
}

#[derive(Clone, Copy, Debug)]
struct Grammar {
    follows: fn(&str) -> bool,
    expected: &'static str,
}

impl TextRule {
    /// Any string.
    pub const ANY: Self = Self { min: 0, max: usize::MAX, grammar: None };
    /// At least one character.
    pub const NON_EMPTY: Self = Self { min: 1, ..Self::ANY };
    /// An id: 1 to 512 characters without control characters or lone surrogates.
    pub const ID: Self =
        Self::length(1, MAX_ID_LEN).matching(has_no_control_character, "a string without control characters");

    /// From `min` to `max` UTF-16 units.
    pub const fn length(min: usize, max: usize) -> Self {
        Self { min, max, grammar: None }
    }

    /// This rule, and a grammar; `expected` ends the message "expected …". Lone surrogates follow no grammar.
    #[must_use]
    pub const fn matching(self, follows: fn(&str) -> bool, expected: &'static str) -> Self {
        Self { grammar: Some(Grammar { follows, expected }), ..self }
    }

    /// What is wrong with `text` under this rule.
    pub fn complaint(&self, text: &Text) -> Option<Complaint> {
        let length = text.utf16_len();
        if length < self.min {
            let message = format!("Too small: expected string to have >={} characters", self.min);
            return Some(Complaint { code: ProblemCode::TooSmall, message });
        }
        if length > self.max {
            let message = format!("Too big: expected string to have <={} characters", self.max);
            return Some(Complaint { code: ProblemCode::TooBig, message });
        }
        let grammar = self.grammar?;
        let follows = text.as_str().is_some_and(grammar.follows);
        (!follows).then(|| Complaint::from(format!("Invalid string: expected {}", grammar.expected)))
    }
}

fn has_no_control_character(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
