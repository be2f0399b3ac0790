//! Tests of the gates.

mod fixture;
mod support;
