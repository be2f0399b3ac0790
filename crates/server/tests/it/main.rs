//! The server over HTTP, with the real application on a database of its own and a harness that never ends a turn.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod bad_input;
mod client;
mod deadline;
mod events;
mod files;
mod given_back;
mod listener;
mod matrix;
mod memory_blobs;
mod openapi;
mod pipeline;
mod routes;
mod world;
