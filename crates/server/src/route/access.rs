//! Who calls, and the keys that prove what this runtime signs (api 2.8).

use nylorun_wire::schema::answers;

use super::parts::{NEVER, RUNTIME};
use super::{AnswerKind, Audience, Route, Scope};
use crate::handler::me;

pub(super) const ME: Route = Route {
    path: "/v1/me",
    name: "whoAmI",
    summary: "Show who the caller is",
    tag: "service",
    audience: Audience::Everyone,
    scopes: Scope::ALL,
    answer: AnswerKind::Json(answers::ME),
    handler: |call| Box::pin(me::me(call)),
    ..RUNTIME
};

pub(super) const JWKS: Route = Route {
    path: "/v1/access/jwks",
    name: "listSigningKeys",
    summary: "List the public keys of what this runtime signs",
    tag: "service",
    audience: Audience::Anyone,
    scopes: NEVER,
    answer: AnswerKind::Json(answers::JWKS),
    handler: |call| Box::pin(me::signing_keys(call)),
    ..RUNTIME
};
