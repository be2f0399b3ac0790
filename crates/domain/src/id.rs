//! Identifiers, one type each, so that they cannot be mixed up (api 1.12).

use std::fmt;
use std::sync::Arc;

use crate::json::utf16_len;

/// Longest id that a caller may choose, in UTF-16 units (decisions, Text and JSON).
pub const MAX_ID_LEN: usize = 512;

/// Why a text is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdError {
    /// No character at all.
    Empty,
    /// More than [`MAX_ID_LEN`] UTF-16 units.
    TooLong,
    /// NUL or another control character.
    ControlCharacter,
}

impl IdError {
    /// What is wrong, in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "must not be empty",
            Self::TooLong => "must have at most 512 characters",
            Self::ControlCharacter => "must not hold control characters",
        }
    }
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for IdError {}

/// Whether a URL can carry this id as a segment of its path. `.` and `..` are steps to whoever reads or normalizes a
/// URL, also when they are percent-encoded, so that no client could reach what is named like this.
pub fn is_addressable(id: &str) -> bool {
    !matches!(id, "." | "..")
}

fn check(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        Err(IdError::Empty)
    } else if text.chars().any(char::is_control) {
        Err(IdError::ControlCharacter)
    } else if utf16_len(text) > MAX_ID_LEN {
        Err(IdError::TooLong)
    } else {
        Ok(())
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks an id that a caller chose.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                check(text)?;
                Ok(Self(text.into()))
            }

            /// Takes an id that this server made, or that was checked before it was stored.
            pub fn from_trusted(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// A tenant: `tn_` and 26 Crockford characters.
    TenantId;
    /// An agent's definition.
    AgentId;
    /// A session.
    SessionId;
    /// A turn: a UUID.
    TurnId;
    /// A journaled effect: `<turnId>:<segment>:<kind>:<identity>` (engine b.2).
    EffectId;
    /// One call of a model or a tool, the same across replays (engine b.2).
    InvocationId;
    /// A tool call as the model named it.
    CallId;
    /// A question of a turn to a person: `<turnId>:<segment>:interaction:<invocationId>` (engine b.2).
    InteractionId;
    /// A message that waits: a UUID. A turn that it begins has the same id.
    MessageId;
    /// An event of the record: a UUID.
    EventId;
    /// A process that runs turns: `worker-<host>-<pid>-<8 hex>` (engine b.4).
    WorkerId;
    /// A person, as the application names them.
    UserId;
}

#[cfg(test)]
mod tests {
    use super::{IdError, SessionId, is_addressable};

    #[test]
    fn an_id_is_short_text_without_control_characters() {
        let longest = "😀".repeat(256);
        for (text, refused) in [
            ("", Some(IdError::Empty)),
            ("a/b c é 😀", None),
            ("a\0", Some(IdError::ControlCharacter)),
            ("a\u{7f}", Some(IdError::ControlCharacter)),
            ("a\u{85}", Some(IdError::ControlCharacter)),
            (&longest, None),
            (&format!("{longest}x"), Some(IdError::TooLong)),
        ] {
            assert_eq!(SessionId::parse(text).map(|id| id.as_str().to_owned()).err(), refused, "{text}");
        }
    }

    #[test]
    fn an_id_that_is_a_step_of_a_path_cannot_be_addressed() {
        for (id, addressable) in [(".", false), ("..", false), ("...", true), ("a/..", true), (".a", true)] {
            assert_eq!(is_addressable(id), addressable, "{id}");
        }
    }
}
