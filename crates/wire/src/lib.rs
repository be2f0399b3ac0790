//! The JSON of both APIs: request bodies read, answers printed, error codes, schemas, cursors, and the table of older
//! and newer names.
//!
//! Only this crate knows how a domain value looks on the wire.

pub mod agent;
pub mod body;
pub mod budget;
pub mod candidate;
pub mod checkpoint;
pub mod code;
pub mod command;
pub mod cursor;
pub mod effect;
pub mod error;
pub mod event;
pub mod file;
pub mod harness;
pub mod history;
pub mod key;
pub mod me;
pub mod model;
pub mod names;
pub mod outcome;
pub mod protocol;
pub mod raw;
pub mod retention;
pub mod sandbox;
pub mod schema;
pub mod session;
pub mod stream;
pub mod tenant;
pub mod transcript;
pub mod usage;
pub mod workspace;
mod writer;
