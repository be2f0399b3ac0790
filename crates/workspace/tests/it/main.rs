//! Tests of workspaces through the manager, with the real child process.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails by panicking, as the test does")]

mod contract;
mod escapes;
mod manager;
mod measure;
mod quota;
mod running;
mod selection;
mod shell;
mod support;
mod tools;
