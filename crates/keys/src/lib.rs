//! Keys: the vault key of the host and secrets sealed with it (trust 1, engine e.8).
//!
//! Modules stand in reading order.

pub mod kek;

pub mod envelope;

pub mod sealed;

pub mod model;

mod random;
