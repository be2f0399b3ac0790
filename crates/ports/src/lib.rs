//! The seams of Nylorun, as traits over domain types. Each has more than one implementation, or keeps a crate from a
//! secret.
//!
//! A trait here is small, has no default bodies, and has one contract suite that every adapter passes.

pub mod abort;
pub mod backends;
pub mod blobs;
pub mod budgets;
pub mod crossings;
pub mod frames;
pub mod http_tools;
pub mod issuers;
pub mod key_sets;
pub mod model_vault;
pub mod models;
pub mod run;
pub mod secret;
pub mod workspaces;

/// A boxed future: what a trait that is used as an object answers with.
pub type BoxFuture<'a, T> = futures_util::future::BoxFuture<'a, T>;
