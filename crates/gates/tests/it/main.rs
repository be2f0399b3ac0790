//! Tests of the gates.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails by panicking, as the test does"
)]

mod chat;
mod fixture;
mod gate;
mod gemini;
mod messages;
mod mock;
mod openrouter;
mod outbound;
mod responses;
mod support;
mod tool_answers;
mod tool_calls;
mod tool_support;
