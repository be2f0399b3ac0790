//! Every store of blobs against the same contract.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod files;
