//! Tests of the engine through its public face.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails by panicking, as the test does"
)]

mod compaction;
mod loops;
mod replay;
mod segments;
mod support;
mod turns;
