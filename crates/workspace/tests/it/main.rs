//! Tests of workspaces through the manager, with the real child process.

mod contract;
mod escapes;
mod manager;
mod measure;
mod selection;
mod shell;
mod support;
mod tools;
