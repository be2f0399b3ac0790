//! Identity files, tokens and key sets, over the public interface.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking, as the test does")]

mod file;
mod fixtures;
mod key_sets;
mod support;
mod tokens;
