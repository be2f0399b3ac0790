//! The harness: runs the engine, carries out the effects that it wants, and commits every step with the runtime
//! (engine a, b).
//!
//! Read [`InProcess`] first, then `drive` (the loop of a run), `stop` (what an abort does to it), `executors` (models
//! and tools), `skills` (the two tools that are served here) and `fit` (how much of a tool's result is kept).

mod drive;
mod executors;
mod fit;
mod in_process;
mod skills;
mod stop;

pub use in_process::InProcess;
