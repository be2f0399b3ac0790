//! The harness: runs the engine, carries out the effects that it wants, and commits every step with the runtime
//! (engine a, b).
//!
//! Read [`InProcess`] first, then `drive` (the loop of a run), `stop` (what an abort does to it), `executors` (models
//! and tools), `skills` (the two tools that are served here) and `fit` (how much of a tool's result is kept). A harness
//! that is elsewhere is reached by the Harness API: `channel` (requests over a connection), [`HarnessServer`] (core's
//! end, in the place of a harness) and [`HarnessClient`] (the harness's end, with [`InProcess`] behind it).

mod channel;
mod client;
mod drive;
mod executors;
mod fit;
mod in_process;
mod refusal;
mod server;
mod skills;
mod start;
mod stop;

pub use channel::Checks;
pub use client::{HarnessClient, HarnessClientConfig};
pub use in_process::InProcess;
pub use server::{HarnessServer, HarnessServerConfig};
