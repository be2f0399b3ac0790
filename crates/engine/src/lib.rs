//! The agent loop, as a state machine without I/O (engine b.6).
//!
//! A [`Run`] is one segment of a turn. It says which effects it wants, is told what each gave, and ends with an
//! output. The same start and the same outcomes give the same effects with the same ids and the same output, whatever
//! the order in which the outcomes of parallel tools arrive: that is what makes a turn durable. There is no clock, no
//! randomness and no async here.

mod calls;
mod compact;
mod compaction;
mod conversation;
mod estimate;
mod history;
mod item_form;
mod plan;
mod repair;
mod request;
mod resume;
mod run;
mod toolbox;
mod turn_output;

pub use run::{MAX_STEPS, ResolveError, Run, Start};
pub use toolbox::Toolbox;
