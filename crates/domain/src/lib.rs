//! The nouns of Nylorun and its pure decisions: no async runtime, no SQL, no HTTP, no clock, no randomness.
//!
//! Modules stand in reading order.

pub mod json;
pub mod hash;
pub mod check;
pub mod id;
pub mod time;
pub mod manifest;
pub mod model;
pub mod tool;
pub mod effect;
pub mod transcript;
pub mod workspace;
