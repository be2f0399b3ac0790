//! Routes of what model calls used, and of budgets (api 1.10, 2.3, 3).

use nylorun_wire::code::Code;
use nylorun_wire::schema::{ID, Schema, TEXT, answers, bodies};

use super::parts::{
    BAD_PAGE_CURSOR, MANAGEMENT, NEVER, NO_SESSION, OTHER_PAGE_CURSOR, RUNTIME, UNREADABLE_PAGE, rejected,
};
use super::{AnswerKind, Audience, BodyKind, Pages, QueryParam, Refusal, Route, Verb};
use crate::handler::usage;
use crate::request::MAX_LIMIT;

const BAD_QUERY: Refusal =
    Refusal { status: 400, code: Code::QueryInvalid, when: "a parameter is unknown or has a wrong value" };

const OF_TURN: QueryParam = QueryParam { name: "turnId", schema: ID, summary: "Only this turn's calls" };

/// Most elements of a page of the export (api 1.10).
const MAX_EXPORT: i64 = 1_000;

/// What a session used.
pub(super) const OF_SESSION: Route = Route {
    path: "/v1/sessions/{id}/usage",
    name: "getSessionUsage",
    summary: "Show what a session's model calls used",
    tag: "usage",
    scopes: NEVER,
    audience: Audience::RuntimeAlone,
    query: &[OF_TURN],
    answer: AnswerKind::Json(answers::SESSION_USAGE),
    errors: &[BAD_QUERY, NO_SESSION],
    handler: |call| Box::pin(usage::of_session(call)),
    ..RUNTIME
};

/// A session's calls.
pub(super) const SESSION_CALLS: Route = Route {
    path: "/v1/sessions/{id}/calls/model",
    name: "listSessionModelCalls",
    summary: "List a session's model calls in pages, the oldest first",
    tag: "usage",
    scopes: NEVER,
    audience: Audience::RuntimeAlone,
    query: &[
        OF_TURN,
        QueryParam {
            name: "limit",
            schema: Schema::Integer { min: 1, max: MAX_LIMIT },
            summary: "Answer at most so many; 50 without it",
        },
        QueryParam { name: "cursor", schema: TEXT, summary: "The nextCursor of the page before, with its filters" },
    ],
    answer: AnswerKind::Json(answers::SESSION_CALLS),
    errors: &[BAD_QUERY, BAD_PAGE_CURSOR, OTHER_PAGE_CURSOR, NO_SESSION, UNREADABLE_PAGE],
    pages: Pages::Always,
    handler: |call| Box::pin(usage::session_calls(call)),
    ..RUNTIME
};

/// What somebody spent.
pub(super) const OF_TENANT: Route = Route {
    path: "/v1/tenant/usage",
    name: "getTenantUsage",
    summary: "Show what the tenant, an agent or a turn spent on model calls",
    tag: "usage",
    query: &[
        QueryParam { name: "scope", schema: answers::USAGE_SCOPE, summary: "Whose; tenant without it" },
        QueryParam { name: "id", schema: ID, summary: "The agent or the turn" },
        QueryParam {
            name: "period",
            schema: answers::USAGE_PERIOD,
            summary: "Since the beginning of this day or month, UTC; total without it",
        },
    ],
    answer: AnswerKind::Json(answers::TENANT_USAGE),
    errors: &[Refusal {
        status: 400,
        code: Code::QueryInvalid,
        when: "a parameter is unknown or has a wrong value, or an id is missing or has no place",
    }],
    handler: |call| Box::pin(usage::of_tenant(call)),
    ..MANAGEMENT
};

/// The budgets.
pub(super) const BUDGETS: Route = Route {
    path: "/v1/tenant/budgets",
    name: "listBudgets",
    summary: "List the budgets of model calls",
    tag: "usage",
    answer: AnswerKind::Json(answers::BUDGETS),
    handler: |call| Box::pin(usage::budgets(call)),
    ..MANAGEMENT
};

/// Replacing the budgets.
pub(super) const PUT_BUDGETS: Route = Route {
    method: Verb::Put,
    path: "/v1/tenant/budgets",
    name: "putBudgets",
    summary: "Replace all budgets; each process heeds them from its next model call on",
    tag: "usage",
    body: BodyKind::Json(bodies::PUT_BUDGETS),
    answer: AnswerKind::Json(answers::BUDGETS),
    errors: &[rejected(400, "a budget has no limit, or there are two for one scope and id")],
    handler: |call| Box::pin(usage::put_budgets(call)),
    ..MANAGEMENT
};

/// All calls.
pub(super) const EXPORT: Route = Route {
    path: "/v1/tenant/calls/model",
    name: "exportModelCalls",
    summary: "Export all model calls in pages; a reader that goes on by next misses none",
    tag: "usage",
    query: &[
        QueryParam { name: "after", schema: TEXT, summary: "The next of the page before" },
        QueryParam {
            name: "limit",
            schema: Schema::Integer { min: 1, max: MAX_EXPORT },
            summary: "Answer at most so many; 200 without it",
        },
    ],
    answer: AnswerKind::Json(answers::EXPORTED_CALLS),
    errors: &[BAD_QUERY, BAD_PAGE_CURSOR, OTHER_PAGE_CURSOR, UNREADABLE_PAGE],
    pages: Pages::Always,
    handler: |call| Box::pin(usage::export(call)),
    ..MANAGEMENT
};
