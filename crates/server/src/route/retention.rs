//! Routes of the tenant's retention.

use nylorun_wire::schema::{answers, bodies};

use super::parts::{MANAGEMENT, rejected};
use super::{AnswerKind, BodyKind, Route, Verb};
use crate::handler::retention;

/// How long what is kept.
pub(super) const VIEW: Route = Route {
    path: "/v1/tenant/retention",
    name: "getRetention",
    summary: "Show how long idle sessions and old events are kept",
    answer: AnswerKind::Json(answers::RETENTION),
    handler: |call| Box::pin(retention::view(call)),
    ..MANAGEMENT
};

/// Setting it.
pub(super) const PUT: Route = Route {
    method: Verb::Put,
    path: "/v1/tenant/retention",
    name: "putRetention",
    summary: "Set how long idle sessions and old events are kept; what is left out or null is kept for ever",
    body: BodyKind::Json(bodies::PUT_RETENTION),
    answer: AnswerKind::Json(answers::RETENTION),
    errors: &[rejected(400, "a time is no duration above 0")],
    handler: |call| Box::pin(retention::put(call)),
    ..MANAGEMENT
};
