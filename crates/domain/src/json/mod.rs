//! JSON that round-trips exactly (decisions, Text and JSON).
//!
//! Ordinary string types refuse lone surrogates, and databases refuse NUL in text, yet a message that
//! holds them must be kept as it was written. So what a caller wrote is kept as [`Json`], validated raw
//! text, and looked into as a [`Value`], whose strings are [`Text`], or in its place as a [`Document`].

mod canonical;
mod document;
mod locate;
mod parse;
mod raw;
mod text;
mod value;

pub use document::{Document, Node};
pub use locate::{element_of, elements_of, member_of, members_of};
pub use parse::{JsonError, MAX_DEPTH, parse, parse_envelope};
pub use raw::Json;
pub use text::{Text, utf16_len, utf16_prefix, write_quoted};
pub use value::{Number, Value, quoted};
