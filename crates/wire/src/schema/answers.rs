//! The schemas of answers, for the OpenAPI documents and for the tests that hold the server to them.

use super::bodies::{LIMIT_TOKENS, LIMIT_USD, PERIOD};
use super::{COUNT, Constant, FILE_HASH, Least, Member, Schema, TEXT, list_of, open, optional, required, strict};

pub(super) const NULLABLE_TEXT: Schema = Schema::Nullable(&TEXT);
const OBJECTS: Schema = list_of(&Schema::AnyObject);

/// The body of every refusal (api 1.8).
pub const REJECTION: Schema = Schema::Object(&open(&[
    required("status", Schema::Words(&["rejected"])),
    required("code", TEXT),
    optional("message", TEXT),
    optional("details", Schema::AnyObject),
    optional("activeTurnId", TEXT),
    optional("requestId", TEXT),
    optional("protocol", PROTOCOL),
]));

const PROTOCOL: Schema =
    Schema::Object(&open(&[required("min", COUNT), required("max", COUNT), required("features", list_of(&TEXT))]));

/// A saved agent.
pub const AGENT_SAVED: Schema = Schema::Object(&open(&[
    required("agentId", TEXT),
    required("manifestHash", TEXT),
    required("implementationVersion", TEXT),
]));

/// The agents. A trusted issuer's token is shown `agentId`, `name` and `description`; a key is shown the rest.
pub const AGENT_LIST: Schema = Schema::Object(&open(&[required("agents", list_of(&AGENT_LISTED))]));

const AGENT_LISTED: Schema = Schema::Object(&open(&[
    required("agentId", TEXT),
    optional("name", TEXT),
    optional("description", TEXT),
    optional("manifest", Schema::AnyObject),
    optional("manifestHash", TEXT),
    optional("implementationVersion", TEXT),
]));

/// Where a session stands.
pub const STATUS: Schema = Schema::Words(&[
    "idle",
    "runnable",
    "running",
    "waiting",
    "paused",
    "uncertain",
    "completed",
    "failed",
    "cancelled",
]);

/// A session (api 2.2).
pub const SESSION_VIEW: Schema = Schema::Object(&strict(&[
    required("id", TEXT),
    required("agentId", TEXT),
    required("ownerUserId", TEXT),
    required("manifestHash", TEXT),
    optional("definitionHash", TEXT),
    required("implementationVersion", TEXT),
    required("status", STATUS),
    required("activeTurnId", NULLABLE_TEXT),
    required("vaultIds", list_of(&TEXT)),
    required("credentialSelections", list_of(&SELECTION)),
    required("sandboxOwnerId", NULLABLE_TEXT),
    optional("sandboxId", TEXT),
    required("sandbox", Schema::Nullable(&Schema::AnyObject)),
    optional("sandboxSource", Schema::Words(&["default", "inline", "shared", "sandbox"])),
    required("mcpSnapshot", Schema::Nullable(&Schema::AnyObject)),
    required("mcpDiagnostics", OBJECTS),
    optional("waits", Schema::Any),
    optional("error", TEXT),
    required("uncertainEffects", list_of(&UNCERTAIN)),
    optional("queue", list_of(&QUEUED)),
]));

const QUEUED: Schema = Schema::Object(&open(&[
    required("id", TEXT),
    required("mode", Schema::Words(&["queue", "steer"])),
    required("requestId", TEXT),
    required("at", TEXT),
    optional("content", TEXT),
    optional("data", Schema::Any),
    optional("parts", OBJECTS),
]));

/// A message that waits no more.
pub const QUEUED_REMOVED: Schema = Schema::Object(&open(&[required("id", TEXT), required("deleted", Schema::Bool)]));

const SELECTION: Schema = Schema::Object(&open(&[required("serverName", TEXT), required("credentialId", TEXT)]));

const UNCERTAIN: Schema = Schema::Object(&open(&[
    required("effectId", TEXT),
    required("turnId", TEXT),
    required("kind", TEXT),
    required("error", NULLABLE_TEXT),
]));

/// The sessions; with `limit`, a page of them.
pub const SESSION_LIST: Schema = Schema::Object(&open(&[
    required("sessions", list_of(&SUMMARY)),
    // Only of a page.
    optional("nextCursor", NULLABLE_TEXT),
]));

const SUMMARY: Schema = Schema::Object(&open(&[
    required("id", TEXT),
    required("agentId", TEXT),
    required("ownerUserId", TEXT),
    required("status", STATUS),
    required("activeTurnId", NULLABLE_TEXT),
    // Only in a page.
    optional("lastTurnId", NULLABLE_TEXT),
    optional("sandboxId", NULLABLE_TEXT),
    optional("createdAt", NULLABLE_TEXT),
    optional("lastEventAt", NULLABLE_TEXT),
]));

/// A session's pinned manifest.
pub const PINNED_MANIFEST: Schema = Schema::Object(&open(&[
    required("sessionId", TEXT),
    required("agentId", TEXT),
    required("manifestHash", TEXT),
    required("implementationVersion", TEXT),
    required("manifest", Schema::AnyObject),
]));

/// A command that was accepted.
pub const ACCEPTED: Schema = Schema::Object(&open(&[
    required("status", Schema::Words(&["accepted"])),
    required("turnId", NULLABLE_TEXT),
    required("cursor", NULLABLE_TEXT),
    required("requestId", TEXT),
]));

/// An event of the record (api 4.1).
pub const EVENT: Schema = Schema::Object(&open(EVENT_MEMBERS));

const EVENT_MEMBERS: &[Member] = &[
    required("schema", Schema::Words(&["nylorun.event/2"])),
    required("eventId", TEXT),
    required("tenantId", TEXT),
    required("sessionId", TEXT),
    required("runId", Schema::Nullable(&TEXT)),
    required("turnId", NULLABLE_TEXT),
    required("incarnation", COUNT),
    required("epoch", COUNT),
    required("seq", COUNT),
    required("cursor", TEXT),
    required("time", TEXT),
    required("schemaVersion", COUNT),
    required("source", Schema::Object(&open(&[required("kind", TEXT), required("id", TEXT)]))),
    required("evidence", TEXT),
    required("visibility", TEXT),
    required("retention", TEXT),
    required("type", TEXT),
    required("payload", Schema::AnyObject),
];

/// A page of history (api 2.3).
pub const HISTORY: Schema = Schema::Object(&open(&[
    required("items", list_of(&EVENT)),
    required("cursor", NULLABLE_TEXT),
    optional("tail", Schema::Bool),
]));

const COST: Schema = Schema::Number(Least::Zero);

/// What a session or one of its turns used (api 2.3).
pub const SESSION_USAGE: Schema = Schema::Object(&open(&[
    required("sessionId", TEXT),
    required("turnId", NULLABLE_TEXT),
    required("asOf", TEXT),
    required("inputTokens", COUNT),
    required("outputTokens", COUNT),
    required("totalTokens", COUNT),
    required("cachedTokens", COUNT),
    required("cacheWriteTokens", COUNT),
    required("reasoningTokens", COUNT),
    required("costUsd", COST),
    required("calls", COUNT),
    required("duplicates", COUNT),
    required("unpricedCalls", COUNT),
    required("unreportedCalls", COUNT),
    required("unknownQualityCalls", COUNT),
]));

const MODEL_CALL: Schema = Schema::Object(&open(&[
    required("id", TEXT),
    required("sessionId", TEXT),
    required("turnId", TEXT),
    required("agentId", TEXT),
    required("provider", NULLABLE_TEXT),
    required("model", NULLABLE_TEXT),
    required("at", TEXT),
    required("outcome", Schema::Words(&["completed", "failed"])),
    required("usage", Schema::Nullable(&CALL_USAGE)),
]));

const CALL_USAGE: Schema = Schema::Object(&open(&[
    required("inputTokens", COUNT),
    required("outputTokens", COUNT),
    required("totalTokens", COUNT),
    required("cachedTokens", COUNT),
    required("cacheWriteTokens", COUNT),
    required("reasoningTokens", COUNT),
    required("costUsd", COST),
    required("duplicate", Schema::Bool),
    required("tokensReported", Schema::Nullable(&Schema::Bool)),
    required("costKnown", Schema::Nullable(&Schema::Bool)),
]));

/// A page of a session's model calls (api 1.10).
pub const SESSION_CALLS: Schema = Schema::Object(&open(&[
    required("calls", list_of(&MODEL_CALL)),
    required("nextCursor", NULLABLE_TEXT),
    required("asOf", TEXT),
]));

/// A page of the tenant's export of model calls (api 1.10).
pub const EXPORTED_CALLS: Schema = Schema::Object(&open(&[
    required("calls", list_of(&MODEL_CALL)),
    required("next", TEXT),
    required("caughtUp", Schema::Bool),
    required("asOf", TEXT),
]));

/// What the tenant, an agent or a turn spent (api 3).
pub const TENANT_USAGE: Schema = Schema::Object(&open(&[
    required("scope", USAGE_SCOPE),
    optional("id", TEXT),
    required("period", USAGE_PERIOD),
    optional("since", TEXT),
    required("calls", COUNT),
    required("tokens", COUNT),
    required("costUsd", COST),
]));

/// Whose usage is told.
pub const USAGE_SCOPE: Schema = Schema::Words(&["tenant", "agent", "turn"]);
/// Of which time.
pub const USAGE_PERIOD: Schema = Schema::Words(&["day", "month", "total"]);

/// How long what is kept.
pub const RETENTION: Schema =
    Schema::Object(&open(&[required("sessions", NULLABLE_TEXT), required("events", NULLABLE_TEXT)]));

/// The budgets (api 3.2).
pub const BUDGETS: Schema = Schema::Object(&open(&[required("budgets", list_of(&BUDGET))]));

const BUDGET: Schema = Schema::Tagged {
    tag: "scope",
    cases: &[
        ("tenant", open(&[required("period", PERIOD), LIMIT_USD, LIMIT_TOKENS])),
        ("agent", open(&[required("id", TEXT), required("period", PERIOD), LIMIT_USD, LIMIT_TOKENS])),
        ("turn", open(&[LIMIT_USD, LIMIT_TOKENS])),
    ],
};

/// What a workspace tool gave.
pub const TOOL_OUTCOME: Schema = Schema::Tagged {
    tag: "kind",
    cases: &[
        ("completed", open(&[required("output", Schema::Any)])),
        ("failed", open(&[required("code", TEXT), required("message", TEXT)])),
    ],
};

/// Who the caller is.
pub const ME: Schema = Schema::Object(&open(&[
    optional("subject", TEXT),
    required("scopes", list_of(&TEXT)),
    required("agents", Schema::Any),
    optional("sandboxes", list_of(&TEXT)),
    required("via", TEXT),
]));

/// Public keys of what the runtime signs (api 7.4).
pub const JWKS: Schema = Schema::Object(&open(&[required("keys", OBJECTS)]));

/// The tenant's status (api 3.1).
pub const TENANT: Schema = Schema::Object(&open(&[
    required(
        "tenant",
        Schema::Object(&open(&[
            required("id", TEXT),
            required("name", TEXT),
            required("createdAt", TEXT),
            required("updatedAt", TEXT),
            required("schemaVersion", COUNT),
        ])),
    ),
    required("path", TEXT),
    required(
        "checks",
        Schema::Object(&open(&[
            required("store", Schema::Bool),
            required("scheduler", Schema::Bool),
            required("model", Schema::Bool),
            required("schema", Schema::Bool),
        ])),
    ),
    required("model", MODEL_VIEW),
    required("agents", list_of(&Schema::Object(&open(&[required("agentId", TEXT)])))),
    required(
        "counts",
        Schema::Object(&open(&[
            required("sessions", COUNT),
            required("runningSessions", COUNT),
            required("uncertainEffects", COUNT),
        ])),
    ),
    required("sandbox", Schema::Object(&open(&[required("backend", NULLABLE_TEXT), required("retained", COUNT)]))),
]));

/// A definition file that is stored.
pub const FILE_STORED: Schema = Schema::Object(&open(&[required("sha256", FILE_HASH), required("size", COUNT)]));

/// A reset that is done.
pub const RESET_DONE: Schema = Schema::Object(&open(&[required("ok", Schema::Constant(Constant::True))]));

/// What a seed wrote and kept.
pub const SEEDED: Schema =
    Schema::Object(&open(&[required("applied", list_of(&TEXT)), required("kept", list_of(&TEXT))]));

/// The keys.
pub const KEY_LIST: Schema = Schema::Object(&open(&[required(
    "keys",
    list_of(&Schema::Object(&open(&[required("id", TEXT), required("role", TEXT), required("createdAt", TEXT)]))),
)]));

/// A key that was made.
pub const KEY_MADE: Schema = Schema::Object(&open(&[
    required("id", TEXT),
    required("role", Schema::Words(&["application"])),
    required("createdAt", TEXT),
    required("key", TEXT),
    required("rotated", Schema::Bool),
]));

/// A key that was deleted.
pub const KEY_DELETED: Schema = Schema::Object(&open(&[required("id", TEXT), required("deleted", Schema::Bool)]));

/// The tenant's model.
pub const MODEL_VIEW: Schema = Schema::Object(&open(&[
    required("configured", Schema::Bool),
    optional("provider", TEXT),
    optional("model", TEXT),
    optional("authType", Schema::Words(&["api_key", "oauth"])),
    optional("baseUrl", TEXT),
    optional("settings", Schema::AnyObject),
]));

/// The model catalogue.
pub const CATALOGUE: Schema = Schema::Object(&open(&[required(
    "providers",
    list_of(&Schema::Object(&open(&[
        required("id", TEXT),
        required("name", TEXT),
        required("models", list_of(&Schema::Object(&open(&[required("id", TEXT), required("name", TEXT)])))),
    ]))),
)]));

/// The providers that have a credential.
pub const PROVIDERS: Schema = Schema::Object(&open(&[required(
    "providers",
    list_of(&Schema::Object(&open(&[
        required("id", TEXT),
        required("name", TEXT),
        required("model", TEXT),
        required("authType", TEXT),
        optional("baseUrl", TEXT),
        optional("settings", Schema::AnyObject),
        required("lastUpdated", TEXT),
        required("active", Schema::Bool),
    ]))),
)]));

/// `/health` (api 7.1)
pub const HEALTH: Schema = Schema::Object(&open(&[
    required("status", Schema::Words(&["ok"])),
    required("service", Schema::Words(&["nylorun-runtime"])),
    required("version", TEXT),
    required("protocol", PROTOCOL),
    required("coreVersion", TEXT),
    required("hostId", TEXT),
    required("pid", COUNT),
]));

/// `/ready` (api 7.2)
pub const READY: Schema = Schema::Object(&open(&[
    required("status", Schema::Words(&["ready", "not_ready"])),
    required("service", Schema::Words(&["nylorun-runtime"])),
    required("checks", Schema::Map(&Schema::Bool)),
]));
