//! Gates: the only code that talks to the outside on a tenant's behalf, and so the only code that holds credentials.
//!
//! Modules stand in reading order.

mod models;

pub mod catalogue;
pub mod fixture;
pub mod key_sets;
pub mod outbound;
pub mod recorded;

mod count;
mod failure;
mod prompt;
mod providers;
mod sse;
mod tools;

pub use models::{CallSettings, Models};
pub use tools::HttpToolGate;
