//! The project's own checks: what a reviewer would otherwise have to look for by hand (docs/style.md).

pub mod tidy;
