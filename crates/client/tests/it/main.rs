//! The client against a small server that answers as it is told, and cuts connections where it is told.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a helper of a test fails by panicking, as the test does")]

mod follow;
mod requests;
mod stub;
