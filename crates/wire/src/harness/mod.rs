//! The Harness API, version 2: frames, methods and shapes, printed and strictly read (engine a.1, a.3, a.4).
//!
//! Objects are closed: an unknown member is refused. Content (a tool's input, a turn's output) stands as its author
//! wrote it, lone surrogates and NUL included. What this build adds to the API stands where the API leaves room: in
//! `checkpoint`, `state`, `context` and the `value` of outcomes.
//!
//! Read [`frame`] first, then [`method`], which names every shape.

pub mod effect;
pub mod event;
pub mod frame;
pub mod hello;
pub mod lease;
pub mod method;
pub mod outcome;
pub mod output;
pub mod session;
pub mod shape;
pub mod start;
pub mod transcript;
pub mod workspace;

#[cfg(test)]
mod tests;

/// The version of the API.
pub const API: i64 = 2;
