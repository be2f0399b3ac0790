//! Stores of blobs. Each passes the contract suite in `tests/it/contract.rs`.

mod files;

pub use files::FileBlobs;
