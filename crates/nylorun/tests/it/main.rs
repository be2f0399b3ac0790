//! The real binary, used as its users use it: started, killed and started again, over HTTP.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test's helper fails by panicking, as the test does; what is skipped is said"
)]

mod approvals;
mod asks;
mod background;
mod budgets;
mod chat;
mod cli;
mod compaction;
mod crash_points;
mod crash_points_http;
mod database;
mod direct_calls;
mod doubt;
mod drill;
mod harness_api;
mod home;
mod http;
mod http_tools;
mod issuers;
mod kills;
mod log;
mod orders;
mod pages;
mod queue;
mod raw;
mod refusals;
mod reset;
mod retention;
mod sandbox_settings;
mod scripts;
mod server;
mod sharing;
mod skills;
mod snapshots;
mod stream_client;
mod streams;
mod told;
mod unreadable;
