//! The schemas of the tenant's settings for workspaces (api 3.6; sandbox-and-definitions a8).

use super::answers::NULLABLE_TEXT;
use super::bodies::{INLINE_SANDBOX, RESOURCES};
use super::{
    Alternative, COUNT, Claim, DURATION, HOST_PATTERN, ID, Member, STOP_GRACE, Schema, TEXT, list_of, open, optional,
    required, strict,
};

/// `PUT /v1/tenant/sandbox` (api 3.6)
pub const PUT_SANDBOX: Schema =
    Schema::Object(&strict(&[optional("requestId", ID), DEFAULT, LIMITS, LIFECYCLE, PLACEMENT]));

/// The same settings in a seed.
pub(super) const SETTINGS: Schema = Schema::Object(&strict(&[DEFAULT, LIMITS, LIFECYCLE, PLACEMENT]));

const DEFAULT: Member = optional(
    "default",
    Schema::FirstOf(&[
        Alternative { claims: Claim::Strings, schema: Schema::Words(&["none", "virtual"]) },
        Alternative { claims: Claim::TheRest, schema: INLINE_SANDBOX },
    ]),
);

const LIMITS: Member = optional(
    "limits",
    Schema::Object(&strict(&[
        optional("network", list_of(&HOST_PATTERN)),
        optional("resources", RESOURCES),
        optional("defaultResources", RESOURCES),
        optional("idle", DURATION),
        optional("sandboxes", Schema::Integer { min: 0, max: 100_000 }),
        optional("ttl", DURATION),
    ])),
);

const LIFECYCLE: Member = optional(
    "lifecycle",
    Schema::Object(&strict(&[
        optional("onExpiry", Schema::Words(&["retain", "delete"])),
        optional("stopGrace", STOP_GRACE),
    ])),
);

const PLACEMENT: Member = optional("placement", Schema::Map(&ALLOWED));

const ALLOWED: Schema = Schema::Object(&strict(&[required(
    "hosts",
    Schema::Array { of: &Schema::Words(&["harness-container", "sandbox"]), min: 1, max: usize::MAX },
)]));

/// The settings for workspaces, and the backends that there are (api 3.6).
pub const SANDBOX_VIEW: Schema = Schema::Object(&open(&[
    required("preference", TEXT),
    required("backend", NULLABLE_TEXT),
    required("isolation", Schema::Nullable(&Schema::Words(&["process", "container"]))),
    required("reason", TEXT),
    required("probes", list_of(&PROBE)),
    required("defaultImage", TEXT),
    required("config", CONFIG),
    required("cluster", Schema::Nullable(&Schema::AnyObject)),
]));

const PROBE: Schema = Schema::Object(&open(&[
    required("name", TEXT),
    required("available", Schema::Bool),
    required("isolation", TEXT),
    optional("reason", TEXT),
    optional("version", TEXT),
]));

const CONFIG: Schema = Schema::Object(&open(&[
    DEFAULT,
    required(
        "limits",
        Schema::Object(&open(&[
            required("network", list_of(&TEXT)),
            required("resources", MAXIMA),
            required("defaultResources", MAXIMA),
            required("idle", TEXT),
            optional("sandboxes", COUNT),
            optional("ttl", TEXT),
        ])),
    ),
    LIFECYCLE,
    PLACEMENT,
]));

const MAXIMA: Schema = Schema::Object(&open(&[required("cpus", COUNT), required("memoryMiB", COUNT)]));
