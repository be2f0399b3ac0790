//! Made-up input for everything that reads what others write. A target is one function of bytes that holds what is read
//! to properties: what is printed is read back, one form stays that form, a cut of a stream means nothing.
//!
//! The same functions run in three ways: `tests/it` gives each some thousand inputs, the same in every run; `make fuzz`
//! gives one as many as fit into some minutes; `libfuzzer/` gives them to libFuzzer, which looks for new paths.
#![expect(clippy::panic, reason = "a target says what does not hold by panicking, as a test does")]

pub mod corpus;
pub mod mutate;
pub mod random;
pub mod targets;
