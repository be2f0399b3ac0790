//! The HTTP side: one constant table of routes, from which matching, authentication, scope checks and the OpenAPI
//! documents come; the request pipeline; server-sent events; the listener.
//!
//! Modules stand in the order in which a request meets them.

pub mod cases;
mod challenge;
pub mod config;
mod handler;
mod host;
mod listen;
mod openapi;
mod path;
mod pipeline;
mod reply;
mod request;
pub mod route;
mod secure;
mod sse;
mod stage;
mod stall;
mod unreadable;
mod upload;

pub use config::{Limits, ServerConfig, loopback_hosts};
pub use listen::{ServeError, serve};
pub use openapi::{management_document, runtime_document};
pub use stage::{Stage, StageHandle, Stages, stages};

use std::sync::Arc;

use nylorun_app::App;

/// What every request is served with.
pub(crate) struct Server {
    app: App,
    config: ServerConfig,
    stages: Stages,
    bodies: Arc<tokio::sync::Semaphore>,
}
