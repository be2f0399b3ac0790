//! Advancing turns: who takes a session, how its steps are committed, what happens when a process dies.
//!
//! Modules stand in reading order. Absent here, on purpose: rules (`domain::turn` decides) and engines (a harness runs
//! them).

mod advance;
mod begun;
mod budgets;
mod clock;
mod committer;
mod core;
mod crossing_log;
mod direct_call;
mod for_good;
mod live;
mod load;
mod log;
mod scheduler;
mod sweep;
mod transcripts;
mod workspace_log;

pub use budgets::StoreBudgets;
pub use clock::{fresh_key, now, stamp, ulid, uuid};
pub use committer::{CommitError, Committer, Updated};
pub use crossing_log::StoreCrossings;
pub use live::{Heard, Live, LiveDelta, Observer, Shared};
pub use scheduler::{Scheduler, SchedulerConfig};
pub use sweep::{Maintenance, run_sweeps};
pub use workspace_log::StoreWorkspaceLog;
