//! Keys: the vault key of the host, secrets sealed with it, and the keys of callers (trust 1, 3; engine e.8).
//!
//! Modules stand in reading order.

pub mod kek;

pub mod envelope;

pub mod caller;

pub mod model;

mod random;
