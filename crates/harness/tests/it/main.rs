//! Tests of the harness against a runtime, a model gate and workspaces that do as they are told: by reference, and by
//! the Harness API through checked JSON.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails by panicking, as the test does"
)]

mod aborts;
mod client;
mod commits;
mod fake_blobs;
mod fake_core;
mod fake_gates;
mod fake_http_tools;
mod faults;
mod http_tools;
mod peer;
mod replays;
mod server;
mod skills;
mod support;
