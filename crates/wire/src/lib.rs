//! The JSON of both APIs.

pub mod candidate;
pub mod outcome;
pub mod transcript;
