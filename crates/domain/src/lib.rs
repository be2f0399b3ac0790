//! The nouns of Nylorun and its pure decisions: no async runtime, no SQL, no HTTP, no clock, no randomness.
//!
//! Modules stand in reading order.

pub mod budget;
pub mod caller;
pub mod change;
pub mod check;
pub mod checkpoint;
pub mod compaction;
pub mod definition_file;
pub mod direct_call;
pub mod effect;
pub mod event;
pub mod grammar;
pub mod hash;
pub mod id;
pub mod image;
pub mod issuer;
pub mod json;
pub mod manifest;
pub mod model;
pub mod queue;
pub mod retention;
pub mod sandbox;
pub mod segment;
pub mod session;
pub mod spending;
pub mod time;
pub mod tool;
pub mod transcript;
pub mod turn;
pub mod usage;
pub mod workspace;
