//! What tests and benchmarks share. Never part of the binary.

pub mod provider;
