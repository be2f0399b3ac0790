//! What rows of the table of routes have in common.

use nylorun_wire::code::Code;
use nylorun_wire::schema::{Schema, TEXT};

use super::{AnswerKind, Answering, Audience, BodyKind, Pages, QueryParam, Refusal, Route, Scope, Verb, Work};
use crate::request::Call;

pub(super) const AGENTS: &[Scope] = &[Scope::AgentsRead, Scope::AgentsWrite];
pub(super) const AGENTS_WRITE: &[Scope] = &[Scope::AgentsWrite];
pub(super) const SESSIONS: &[Scope] = &[Scope::SessionsOwn];
pub(super) const NEVER: &[Scope] = &[];

pub(super) const NO_SESSION: Refusal = rejected(404, "no such session, or not the caller's");
pub(super) const BUSY: Refusal = rejected(409, "a turn is active");
/// Its answer has `Retry-After`, and the same seconds in `details.retryAfterSeconds`.
pub(super) const SHARED_BUSY: Refusal = Refusal {
    status: 409,
    code: Code::SandboxBusy,
    when: "another session's turn has the workspace that both use; details.retryAfterSeconds says when to try again",
};

/// Why a session is not opened.
pub(super) const NOT_OPENED: &[Refusal] = &[
    rejected(400, "the workspace breaks the tenant's limits, or the session that is to share its own has none"),
    rejected(403, "the owner is not the subject, or not that of the session whose workspace is to be shared"),
    rejected(404, "no such agent, or no such session to share a workspace with"),
    rejected(409, "the session was opened otherwise"),
    Refusal {
        status: 409,
        code: Code::PlacementRefused,
        when: "the tenant's placement does not let the session run where it has to; details has harness, host, allowed",
    },
];

pub(super) const BAD_PAGE_CURSOR: Refusal =
    Refusal { status: 400, code: Code::CursorInvalid, when: "a page's cursor cannot be read" };
pub(super) const OTHER_PAGE_CURSOR: Refusal =
    Refusal { status: 400, code: Code::CursorMismatch, when: "a page's cursor belongs to other pages" };

pub(super) const UNREADABLE_PAGE: Refusal =
    Refusal { status: 503, code: Code::ReadsUnavailable, when: "a page cannot be read now" };

pub(super) const PAGED: &str = "Answer a page of at most so many, with nextCursor; a page may hold fewer, and is the \
     last one when nextCursor is null. Without it all sessions are answered, and of the other parameters only agentId \
     counts";

pub(super) const AFTER: QueryParam = QueryParam {
    name: "cursor",
    schema: TEXT,
    summary: "Begin after the event of this cursor; wins over Last-Event-ID",
};

pub(super) const fn rejected(status: u16, when: &'static str) -> Refusal {
    Refusal { status, code: Code::RequestRejected, when }
}

/// A route of the Runtime API without a body; what differs is named beside it.
pub(super) const RUNTIME: Route = Route {
    method: Verb::Get,
    path: "",
    name: "",
    summary: "",
    tag: "sessions",
    audience: Audience::Runtime,
    scopes: SESSIONS,
    query: &[],
    body: BodyKind::None,
    answer: AnswerKind::Json(Schema::Any),
    errors: &[],
    work: Work::None,
    pages: Pages::Never,
    handler: unrouted,
};

/// A route of the Management API without a body.
pub(super) const MANAGEMENT: Route = Route { audience: Audience::Management, scopes: NEVER, tag: "tenant", ..RUNTIME };

fn unrouted(_: Call) -> Answering {
    Box::pin(async { Err(nylorun_wire::error::Rejection::internal()) })
}
