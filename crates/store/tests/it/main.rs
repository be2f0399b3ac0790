//! Integration tests of the store, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails by panicking, as the test does"
)]

mod crossings;
#[cfg(feature = "crash-points")]
mod db_crash;
mod db_migrate;
mod db_postgres;
mod db_schema;
mod db_sqlite;
mod db_support;
mod db_write;
mod plans;
mod reset;
mod retention;
mod session_list;
mod sharing;
mod snapshots;
mod transcripts;
mod usage;
