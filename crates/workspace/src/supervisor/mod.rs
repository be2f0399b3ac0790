//! The supervisor: the process inside a workspace's walls that runs commands and file tools for the manager outside.
//!
//! Both ends speak frames over a byte stream (the child's standard input and output). The host gives every request a
//! number and never sends one twice; a reply carries its request's number, and replies come in any order. Stronger
//! backends put other walls around the same process.

mod frame;
mod handle;
mod link;

pub(crate) use frame::{Body, KilledBy, Op, Reply, Request, read_frame, write_frame};
pub(crate) use handle::SupervisedHandle;
pub(crate) use link::{Link, Start};

use std::time::Duration;

/// The protocol's number, told in [`Body::Hello`].
pub(crate) const PROTOCOL: u32 = 1;

/// How long a command that is to end may take to do so by itself; then it is killed with the process that runs it.
pub(crate) const GRACE: Duration = Duration::from_millis(500);
