//! The table of routes.

use nylorun_domain::definition_file::MAX_FILE_BYTES;
use nylorun_wire::code::Code;
use nylorun_wire::schema::{ID, SANDBOX_ID, Schema, TEXT, answers, bodies};

use super::parts::{
    AFTER, AGENTS, AGENTS_WRITE, BAD_PAGE_CURSOR, BUSY, MANAGEMENT, NEVER, NO_SESSION, NOT_OPENED, OTHER_PAGE_CURSOR,
    PAGED, RUNTIME, SHARED_BUSY, UNREADABLE_PAGE, rejected,
};
use super::{
    AnswerKind, Audience, BodyKind, Pages, QueryParam, Refusal, Route, Verb, Work, access, retention, sandbox, usage,
};
use crate::handler::{agent, effect, file, history, key, model, session, session_list, tenant, workspace};
use crate::request::MAX_LIMIT;

/// Every route, in the order of the documents.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/v1/agents",
        name: "listAgents",
        summary: "List the agents",
        tag: "agents",
        scopes: AGENTS,
        answer: AnswerKind::Json(answers::AGENT_LIST),
        handler: |call| Box::pin(agent::list(call)),
        ..RUNTIME
    },
    Route {
        method: Verb::Put,
        path: "/v1/agents/{agentId}",
        name: "saveAgent",
        summary: "Save an agent's definition; open sessions keep theirs",
        tag: "agents",
        scopes: AGENTS_WRITE,
        body: BodyKind::Json(bodies::SAVE_AGENT),
        answer: AnswerKind::Json(answers::AGENT_SAVED),
        errors: &[
            rejected(400, "the manifest is wrong, or its id is not the path's"),
            Refusal {
                status: 400,
                code: Code::DefinitionFilesMissing,
                when: "the manifest names files that are not stored",
            },
        ],
        handler: |call| Box::pin(agent::save(call)),
        ..RUNTIME
    },
    Route {
        method: Verb::Put,
        path: "/v1/files/{file}",
        name: "putFile",
        summary: "Store a definition file, named by the SHA-256 of its bytes",
        tag: "agents",
        audience: Audience::RuntimeAlone,
        scopes: NEVER,
        body: BodyKind::Bytes { what: "a definition file", limit_bytes: MAX_FILE_BYTES },
        answer: AnswerKind::Stored(answers::FILE_STORED),
        errors: &[
            Refusal {
                status: 400,
                code: Code::InvalidRequest,
                when: "the bytes have another hash (details.expected and details.actual), or Content-Type is none",
            },
            Refusal { status: 413, code: Code::LimitExceeded, when: "it has more than details.limitBytes" },
            Refusal { status: 415, code: Code::UnsupportedMediaType, when: "the body is compressed" },
        ],
        handler: |call| Box::pin(file::put(call)),
        ..RUNTIME
    },
    Route {
        method: Verb::Head,
        path: "/v1/files/{file}",
        name: "hasFile",
        summary: "Whether a definition file is stored",
        tag: "agents",
        audience: Audience::RuntimeAlone,
        scopes: NEVER,
        answer: AnswerKind::Empty,
        errors: &[rejected(404, "no such file")],
        handler: |call| Box::pin(file::head(call)),
        ..RUNTIME
    },
    Route {
        path: "/v1/sessions",
        name: "listSessions",
        summary: "List the sessions that the caller sees, newest first; in pages with limit",
        query: &[
            QueryParam { name: "limit", schema: Schema::Integer { min: 1, max: MAX_LIMIT }, summary: PAGED },
            QueryParam { name: "cursor", schema: TEXT, summary: "The nextCursor of the page before, with its filters" },
            QueryParam { name: "agentId", schema: ID, summary: "Only this agent's" },
            QueryParam { name: "status", schema: answers::STATUS, summary: "Only those in this status" },
            QueryParam { name: "sandboxId", schema: SANDBOX_ID, summary: "Only those in this sandbox" },
            QueryParam {
                name: "ownerUserId",
                schema: ID,
                summary: "Only this person's; for an application key as itself",
            },
            QueryParam {
                name: "uncertain",
                schema: Schema::Bool,
                summary: "Only those with an effect of which nobody knows whether it happened, of whatever turn",
            },
        ],
        answer: AnswerKind::Json(answers::SESSION_LIST),
        errors: &[
            Refusal { status: 400, code: Code::QueryInvalid, when: "a parameter is unknown or has a wrong value" },
            BAD_PAGE_CURSOR,
            OTHER_PAGE_CURSOR,
            rejected(403, "a subject asks for a person's sessions"),
            UNREADABLE_PAGE,
        ],
        pages: Pages::WithLimit,
        handler: |call| Box::pin(session_list::list(call)),
        ..RUNTIME
    },
    Route {
        method: Verb::Put,
        path: "/v1/sessions/{id}",
        name: "openSession",
        summary: "Open a session, or attach vaults to an open one",
        body: BodyKind::Json(bodies::OPEN_SESSION),
        answer: AnswerKind::Json(answers::SESSION_VIEW),
        errors: NOT_OPENED,
        handler: |call| Box::pin(session::open(call)),
        ..RUNTIME
    },
    Route {
        path: "/v1/sessions/{id}",
        name: "getSession",
        summary: "Show a session",
        answer: AnswerKind::Json(answers::SESSION_VIEW),
        errors: &[NO_SESSION],
        handler: |call| Box::pin(session::view(call)),
        ..RUNTIME
    },
    Route {
        path: "/v1/sessions/{id}/manifest",
        name: "getSessionManifest",
        summary: "Show the manifest that a session pinned",
        audience: Audience::RuntimeByKey,
        scopes: AGENTS,
        answer: AnswerKind::Json(answers::PINNED_MANIFEST),
        errors: &[NO_SESSION],
        handler: |call| Box::pin(session::manifest(call)),
        ..RUNTIME
    },
    Route {
        method: Verb::Post,
        path: "/v1/sessions/{id}/commands",
        name: "sendCommand",
        summary: "Send a message, answer an interaction, or cancel the turn",
        body: BodyKind::Json(bodies::COMMAND),
        answer: AnswerKind::Json(answers::ACCEPTED),
        errors: &[
            NO_SESSION,
            rejected(
                409,
                "a turn is active and whenBusy is reject, nothing is awaited, too many messages wait, \
                 or the idempotency key came with another body",
            ),
            SHARED_BUSY,
            rejected(503, "the server is being stopped"),
        ],
        work: Work::Begins,
        handler: |call| Box::pin(session::command(call)),
        ..RUNTIME
    },
    Route {
        method: Verb::Delete,
        path: "/v1/sessions/{id}/queue/{messageId}",
        name: "removeQueuedMessage",
        summary: "Take back a message that waits",
        answer: AnswerKind::Json(answers::QUEUED_REMOVED),
        errors: &[rejected(404, "no such session, or the message does not wait in it")],
        handler: |call| Box::pin(session::remove_queued(call)),
        ..RUNTIME
    },
    Route {
        path: "/v1/sessions/{id}/events",
        name: "followSession",
        summary: "Follow a session's events",
        query: &[
            AFTER,
            QueryParam {
                name: "deltas",
                schema: Schema::Bool,
                summary: "Also send pieces of answers that are being made, as message.delta frames without an id",
            },
        ],
        answer: AnswerKind::Events(answers::EVENT),
        errors: &[
            rejected(400, "the cursor is not one of this session"),
            Refusal { status: 400, code: Code::QueryInvalid, when: "a parameter has a wrong value" },
            NO_SESSION,
        ],
        handler: |call| Box::pin(history::follow(call)),
        ..RUNTIME
    },
    Route {
        path: "/v1/sessions/{id}/items",
        name: "readSession",
        summary: "Read a session's events",
        query: &[
            AFTER,
            QueryParam { name: "agent", schema: ID, summary: "Only the work of this agent used as a tool" },
            QueryParam {
                name: "limit",
                schema: Schema::Integer { min: 1, max: MAX_LIMIT },
                summary: "Read one page of at most so many records",
            },
        ],
        answer: AnswerKind::Json(answers::HISTORY),
        errors: &[
            rejected(400, "the cursor is not one of this session"),
            Refusal { status: 400, code: Code::QueryInvalid, when: "a parameter has a wrong value" },
            BAD_PAGE_CURSOR,
            OTHER_PAGE_CURSOR,
            NO_SESSION,
        ],
        handler: |call| Box::pin(history::read(call)),
        ..RUNTIME
    },
    usage::OF_SESSION,
    usage::SESSION_CALLS,
    Route {
        method: Verb::Post,
        path: "/v1/sessions/{id}/sandbox/{tool}",
        name: "callSandboxTool",
        summary: "Run a tool in a session's workspace",
        scopes: NEVER,
        audience: Audience::RuntimeAlone,
        body: BodyKind::OptionalJson(bodies::TOOL_INPUT),
        answer: AnswerKind::Json(answers::TOOL_OUTCOME),
        errors: &[rejected(400, "unknown tool"), NO_SESSION, BUSY, SHARED_BUSY],
        work: Work::Begins,
        handler: |call| Box::pin(workspace::call(call)),
        ..RUNTIME
    },
    Route {
        method: Verb::Post,
        path: "/v1/sessions/{id}/effects/{effectId}/settle",
        name: "settleEffect",
        summary: "Say what an uncertain effect gave",
        scopes: NEVER,
        audience: Audience::RuntimeAlone,
        body: BodyKind::Json(bodies::SETTLE),
        answer: AnswerKind::Json(answers::ACCEPTED),
        errors: &[
            rejected(404, "no such session or effect"),
            rejected(409, "the effect is not uncertain, or is to run again although its turn has ended"),
        ],
        work: Work::Begins,
        handler: |call| Box::pin(effect::settle(call)),
        ..RUNTIME
    },
    access::ME,
    access::JWKS,
    Route {
        path: "/v1/tenant",
        name: "getTenant",
        summary: "Show the tenant's state",
        answer: AnswerKind::Json(answers::TENANT),
        handler: |call| Box::pin(tenant::status(call)),
        ..MANAGEMENT
    },
    Route {
        method: Verb::Put,
        path: "/v1/tenant/config/seed",
        name: "seedTenant",
        summary: "Write settings that are not set yet",
        body: BodyKind::Json(bodies::SEED),
        answer: AnswerKind::Json(answers::SEEDED),
        errors: &[rejected(400, "a setting is wrong")],
        handler: |call| Box::pin(tenant::seed(call)),
        ..MANAGEMENT
    },
    Route {
        method: Verb::Post,
        path: "/v1/tenant/reset",
        name: "resetTenant",
        summary: "Remove sessions, workspaces or both; agents, keys, model and settings stay",
        body: BodyKind::Json(bodies::RESET),
        answer: AnswerKind::Json(answers::RESET_DONE),
        errors: &[rejected(409, "work still runs after 30 s of draining, or another reset runs")],
        work: Work::Begins,
        handler: |call| Box::pin(tenant::reset(call)),
        ..MANAGEMENT
    },
    Route {
        path: "/v1/tenant/keys",
        name: "listKeys",
        summary: "List the keys, without the keys themselves",
        tag: "keys",
        answer: AnswerKind::Json(answers::KEY_LIST),
        handler: |call| Box::pin(key::list(call)),
        ..MANAGEMENT
    },
    Route {
        method: Verb::Put,
        path: "/v1/tenant/keys/{keyId}",
        name: "putKey",
        summary: "Make or rotate an application key; it is shown once",
        tag: "keys",
        answer: AnswerKind::Json(answers::KEY_MADE),
        errors: &[
            Refusal { status: 400, code: Code::InvalidRequest, when: "the key's name breaks its grammar" },
            rejected(400, "the name is reserved"),
        ],
        handler: |call| Box::pin(key::put(call)),
        ..MANAGEMENT
    },
    Route {
        method: Verb::Delete,
        path: "/v1/tenant/keys/{keyId}",
        name: "deleteKey",
        summary: "Delete an application key",
        tag: "keys",
        answer: AnswerKind::Json(answers::KEY_DELETED),
        errors: &[
            Refusal { status: 400, code: Code::InvalidRequest, when: "the key's name breaks its grammar" },
            rejected(400, "the name is reserved"),
            rejected(404, "no such key"),
        ],
        handler: |call| Box::pin(key::delete(call)),
        ..MANAGEMENT
    },
    Route {
        path: "/v1/tenant/models",
        name: "listModels",
        summary: "List the models that are known",
        tag: "model",
        answer: AnswerKind::Json(answers::CATALOGUE),
        handler: |call| Box::pin(model::catalogue(call)),
        ..MANAGEMENT
    },
    Route {
        path: "/v1/tenant/providers",
        name: "listProviders",
        summary: "List the providers that have a credential",
        tag: "model",
        answer: AnswerKind::Json(answers::PROVIDERS),
        handler: |call| Box::pin(model::providers(call)),
        ..MANAGEMENT
    },
    Route {
        path: "/v1/tenant/model",
        name: "getModel",
        summary: "Show the tenant's model",
        tag: "model",
        answer: AnswerKind::Json(answers::MODEL_VIEW),
        handler: |call| Box::pin(model::view(call)),
        ..MANAGEMENT
    },
    Route {
        method: Verb::Put,
        path: "/v1/tenant/model",
        name: "putModel",
        summary: "Set the tenant's model and its provider's credential",
        tag: "model",
        body: BodyKind::Json(bodies::PUT_MODEL),
        answer: AnswerKind::Json(answers::MODEL_VIEW),
        errors: &[
            rejected(400, "unknown provider or model, or a baseUrl where none belongs"),
            rejected(409, "the idempotency key came with another body"),
        ],
        handler: |call| Box::pin(model::put(call)),
        ..MANAGEMENT
    },
    Route {
        method: Verb::Put,
        path: "/v1/tenant/model/selection",
        name: "selectModel",
        summary: "Choose another model of a provider that has a credential",
        tag: "model",
        body: BodyKind::Json(bodies::SELECT_MODEL),
        answer: AnswerKind::Json(answers::MODEL_VIEW),
        errors: &[
            rejected(400, "unknown provider or model"),
            rejected(409, "the provider has no credential, or the idempotency key came with another body"),
        ],
        handler: |call| Box::pin(model::select(call)),
        ..MANAGEMENT
    },
    usage::OF_TENANT,
    usage::BUDGETS,
    usage::PUT_BUDGETS,
    usage::EXPORT,
    sandbox::VIEW,
    sandbox::PUT,
    retention::VIEW,
    retention::PUT,
];
