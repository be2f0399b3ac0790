//! Routes of the tenant's settings for workspaces (api 3.6).

use nylorun_wire::schema::sandbox::{PUT_SANDBOX, SANDBOX_VIEW};

use super::parts::{MANAGEMENT, rejected};
use super::{AnswerKind, BodyKind, Route, Verb};
use crate::handler::sandbox;

/// The settings that hold.
pub(super) const VIEW: Route = Route {
    path: "/v1/tenant/sandbox",
    name: "getSandboxSettings",
    summary: "Show the settings for workspaces with their defaults, and which backends work here",
    answer: AnswerKind::Json(SANDBOX_VIEW),
    handler: |call| Box::pin(sandbox::view(call)),
    ..MANAGEMENT
};

/// Replacing them.
pub(super) const PUT: Route = Route {
    method: Verb::Put,
    path: "/v1/tenant/sandbox",
    name: "putSandboxSettings",
    summary: "Replace the settings for workspaces; what is left out has its default. Open sessions keep theirs",
    body: BodyKind::Json(PUT_SANDBOX),
    answer: AnswerKind::Json(SANDBOX_VIEW),
    errors: &[rejected(400, "the settings contradict themselves")],
    handler: |call| Box::pin(sandbox::put(call)),
    ..MANAGEMENT
};
