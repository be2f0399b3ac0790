//! Rust SDK of the Nylorun runtime (api, client protocol 10).
//!
//! [`Client`] speaks the Runtime API with an application key: agents, sessions, commands and events.
//! [`TenantClient`] speaks the Management API with a management key: the tenant's status, model and keys.
//! Both read `/health` before their first request, once, and refuse a server that lacks the protocol or a required
//! feature.
//!
//! Modules stand in reading order.

mod agent;
mod backoff;
mod client;
mod command;
mod error;
mod event;
mod follow;
mod health;
mod http;
mod id;
mod key;
mod model;
mod sandbox;
mod session;
pub mod sse;
mod tenant;
mod text;
mod usage;

pub use agent::{Agent, SavedAgent};
pub use client::Client;
pub use command::{Accepted, Approval, Command, CommandKind, Content, Settle, Settlement};
pub use error::{Error, Problem, Refusal};
pub use event::{Delta, Event, HistoryPage};
pub use follow::{Deltas, Events, Follow, Reconnect, Update};
pub use health::{Health, PROTOCOL, Protocol, REQUIRED_FEATURES, Ready};
pub use id::uuid_v4;
pub use key::{InvalidKey, Key};
pub use model::{ModelAuth, ModelChoice, ModelView, ProviderModel, ProviderModels, ProviderView, SetModel};
pub use sandbox::SandboxSettings;
pub use session::{
    Effects, Environment, InlineEnvironment, OpenSession, Session, SessionFilter, SessionPage, SessionStatus,
    SessionSummary, SessionView, UncertainEffect,
};
pub use sse::{FrameTooLarge, MAX_FRAME_CHARS};
pub use tenant::{
    ActiveWork, Counts, KeyPut, KeyView, ResetScope, Retention, Seed, SeedAnswer, TenantClient, TenantStatus,
};
pub use usage::{Budget, ModelCall, ModelCallExport, ModelCallPage, SessionUsage, TenantUsage, UsageQuery};
