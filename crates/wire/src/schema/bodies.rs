//! The schemas of request bodies, by resource (api 2, 3; decisions, Settling).

use super::{
    Alternative, Claim, Constant, DURATION, HOST_PATTERN, HTTP_URL, ID, IDEMPOTENCY_KEY, Least, MAX_SAFE, Member,
    Others, PLAIN, PROVIDER, SANDBOX_ID, SIZE, Schema, Shape, TEXT, list_of, optional, required, strict,
};
use super::{CONTENT, COUNT};
use crate::tenant::{ActiveWork, ResetScope};
use nylorun_domain::budget::MAX_BUDGETS;

/// `PUT /v1/agents/{agentId}`
pub const SAVE_AGENT: Schema = Schema::Object(&strict(&[
    required("requestId", ID),
    required("manifest", Schema::AgentManifest),
    required("implementationVersion", ID),
]));

/// `PUT /v1/sessions/{id}`
pub const OPEN_SESSION: Schema = Schema::Object(&strict(&[
    required("requestId", ID),
    required("agentId", ID),
    required("ownerUserId", ID),
    optional("info", Schema::AnyObject),
    optional("vaultIds", list_of(&ID)),
    optional("credentialSelections", list_of(&SELECTION)),
    optional("sandbox", SANDBOX),
]));

const SELECTION: Schema = Schema::Object(&strict(&[required("serverName", ID), required("credentialId", ID)]));

const SANDBOX: Schema = Schema::FirstOf(&[
    Alternative { claims: Claim::Booleans, schema: Schema::Constant(Constant::False) },
    Alternative { claims: Claim::ObjectsWith("id"), schema: Schema::Object(&strict(&[required("id", SANDBOX_ID)])) },
    Alternative { claims: Claim::ObjectsWith("session"), schema: Schema::Object(&strict(&[required("session", ID)])) },
    Alternative { claims: Claim::TheRest, schema: INLINE_SANDBOX },
]);

/// A workspace described where it is asked for.
pub(super) const INLINE_SANDBOX: Schema = Schema::Object(&strict(&[
    optional("image", ID),
    optional("network", Schema::Object(&strict(&[optional("allow", list_of(&HOST_PATTERN))]))),
    optional("resources", RESOURCES),
]));

pub(super) const RESOURCES: Schema =
    Schema::Object(&strict(&[optional("cpus", Schema::Integer { min: 1, max: 64 }), optional("memory", SIZE)]));

/// `POST /v1/sessions/{id}/commands`
pub const COMMAND: Schema = Schema::Tagged {
    tag: "type",
    cases: &[
        ("message", Shape { members: MESSAGE, exactly_one: &[&["content", "data", "parts"]], others: Others::Refused }),
        (
            "approve",
            strict(&[
                required("requestId", ID),
                required("idempotencyKey", IDEMPOTENCY_KEY),
                required("interactionId", ID),
                required("approved", Schema::Bool),
            ]),
        ),
        (
            "respond",
            strict(&[
                required("requestId", ID),
                required("idempotencyKey", IDEMPOTENCY_KEY),
                required("interactionId", ID),
                required("value", Schema::Any),
            ]),
        ),
        (
            "cancel",
            strict(&[required("requestId", ID), required("idempotencyKey", IDEMPOTENCY_KEY), optional("reason", TEXT)]),
        ),
    ],
};

const MESSAGE: &[Member] = &[
    required("requestId", ID),
    required("idempotencyKey", IDEMPOTENCY_KEY),
    optional("content", CONTENT),
    optional("data", Schema::Any),
    optional("parts", Schema::Array { of: &PART, min: 1, max: 32 }),
    optional("manifest", Schema::AnyObject),
    optional("whenBusy", Schema::Words(&["reject", "queue", "steer"])),
];

const PART: Schema = Schema::Tagged {
    tag: "type",
    cases: &[
        ("text", strict(&[required("text", CONTENT)])),
        ("file", strict(&[required("artifactId", ID), optional("version", Schema::Integer { min: 1, max: MAX_SAFE })])),
    ],
};

/// `POST /v1/sessions/{id}/effects/{effectId}/settle`
pub const SETTLE: Schema = Schema::Object(&strict(&[
    required("requestId", ID),
    required("idempotencyKey", IDEMPOTENCY_KEY),
    required("outcome", SETTLED_OUTCOME),
]));

const SETTLED_OUTCOME: Schema = Schema::Object(&Shape {
    members: &[
        optional("value", Schema::Any),
        optional("error", PLAIN),
        optional("retry", Schema::Constant(Constant::True)),
    ],
    exactly_one: &[&["value", "error", "retry"]],
    others: Others::Refused,
});

/// `PUT /v1/tenant/model`
pub const PUT_MODEL: Schema = Schema::Object(&strict(&[
    required("requestId", ID),
    required("idempotencyKey", IDEMPOTENCY_KEY),
    required("provider", PROVIDER),
    required("model", ID),
    optional("baseUrl", HTTP_URL),
    optional("settings", MODEL_SETTINGS),
    required("auth", MODEL_AUTH),
]));

const MODEL_SETTINGS: Schema = Schema::Object(&strict(&[
    optional("contextWindow", Schema::Integer { min: 1024, max: MAX_SAFE }),
    optional("maxTokens", Schema::Integer { min: 1, max: MAX_SAFE }),
    optional("reasoning", Schema::Bool),
    optional("compat", Schema::AnyObject),
]));

/// An endpoint that wants no key gets an empty one.
const API_KEY: Schema = super::OPTIONAL_PLAIN;

const MODEL_AUTH: Schema = Schema::Tagged {
    tag: "type",
    cases: &[
        ("api_key", strict(&[required("key", API_KEY), optional("env", Schema::Map(&PLAIN))])),
        (
            "oauth",
            Shape {
                members: &[required("refresh", PLAIN), required("access", PLAIN), required("expires", COUNT)],
                exactly_one: &[],
                others: Others::Kept,
            },
        ),
    ],
};

/// `PUT /v1/tenant/model/selection`
pub const SELECT_MODEL: Schema = Schema::Object(&strict(&[
    required("requestId", ID),
    required("idempotencyKey", IDEMPOTENCY_KEY),
    required("provider", PROVIDER),
    required("model", ID),
    optional("baseUrl", HTTP_URL),
]));

/// `PUT /v1/tenant/budgets`
pub const PUT_BUDGETS: Schema = Schema::Object(&strict(&[
    optional("requestId", ID),
    required("budgets", Schema::Array { of: &BUDGET, min: 0, max: MAX_BUDGETS }),
]));

const BUDGET: Schema = Schema::Tagged {
    tag: "scope",
    cases: &[
        ("tenant", strict(&[required("period", PERIOD), LIMIT_USD, LIMIT_TOKENS])),
        ("agent", strict(&[required("id", ID), required("period", PERIOD), LIMIT_USD, LIMIT_TOKENS])),
        ("turn", strict(&[LIMIT_USD, LIMIT_TOKENS])),
    ],
};

pub(super) const PERIOD: Schema = Schema::Words(&["day", "month"]);
pub(super) const LIMIT_USD: Member = optional("limitUsd", Schema::Number(Least::AboveZero));
pub(super) const LIMIT_TOKENS: Member = optional("limitTokens", Schema::Integer { min: 1, max: MAX_SAFE });

/// `PUT /v1/tenant/retention`
pub const PUT_RETENTION: Schema = Schema::Object(&strict(&[
    optional("requestId", ID),
    optional("sessions", Schema::Nullable(&DURATION)),
    optional("events", Schema::Nullable(&DURATION)),
]));

/// `PUT /v1/tenant/config/seed`
pub const SEED: Schema = Schema::Object(&strict(&[
    required("requestId", ID),
    optional(
        "sandbox",
        Schema::Object(&strict(&[
            optional("backend", Schema::Words(&["auto", "virtual"])),
            optional("config", super::sandbox::SETTINGS),
        ])),
    ),
    optional(
        "model",
        Schema::Object(&strict(&[
            required("provider", PROVIDER),
            required("model", ID),
            optional("baseUrl", HTTP_URL),
            optional("settings", MODEL_SETTINGS),
            required("auth", MODEL_AUTH),
        ])),
    ),
    optional("fixtureModel", Schema::Constant(Constant::True)),
]));

/// `POST /v1/tenant/reset`
pub const RESET: Schema = Schema::Object(&strict(&[
    required("requestId", ID),
    required("scope", Schema::Words(ResetScope::WORDS)),
    required("activeWork", Schema::Words(ActiveWork::WORDS)),
]));

/// `POST /v1/sessions/{id}/sandbox/{tool}`: the tool itself judges its input.
pub const TOOL_INPUT: Schema = Schema::AnyObject;

#[cfg(test)]
mod tests {
    use nylorun_domain::json::Json;

    use super::super::sandbox::PUT_SANDBOX;
    use super::super::{bad_samples, sample};
    use super::{
        COMMAND, OPEN_SESSION, PUT_BUDGETS, PUT_MODEL, PUT_RETENTION, RESET, SAVE_AGENT, SEED, SELECT_MODEL, SETTLE,
        Schema,
    };

    const ALL: [(&str, Schema); 11] = [
        ("SAVE_AGENT", SAVE_AGENT),
        ("OPEN_SESSION", OPEN_SESSION),
        ("COMMAND", COMMAND),
        ("SETTLE", SETTLE),
        ("PUT_MODEL", PUT_MODEL),
        ("SELECT_MODEL", SELECT_MODEL),
        ("SEED", SEED),
        ("PUT_BUDGETS", PUT_BUDGETS),
        ("PUT_RETENTION", PUT_RETENTION),
        ("PUT_SANDBOX", PUT_SANDBOX),
        ("RESET", RESET),
    ];

    #[test]
    fn a_word_that_is_not_allowed_is_told_beside_those_that_are() {
        let message = r#"{"type":"message","requestId":"r","idempotencyKey":"k","content":"x","whenBusy":"later"}"#;
        for (body, expected) in [
            (message, r#"Invalid option: expected one of "reject"|"queue"|"steer", received "later""#),
            (
                r#"{"type":"massage"}"#,
                r#"Invalid discriminator: expected one of "message"|"approve"|"respond"|"cancel", received "massage""#,
            ),
            (r#"{"type":7}"#, r#"Invalid discriminator: expected one of "message"|"approve"|"respond"|"cancel""#),
        ] {
            let problems = COMMAND.check(&Json::from_trusted(body).value()).unwrap_err();
            let told: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
            assert_eq!(told, [expected]);
        }
        let problems = PUT_RETENTION.check(&Json::from_trusted(r#"{"sessions":"5w"}"#).value()).unwrap_err();
        let expected =
            "sessions: Invalid string: expected a positive whole number followed by ms, s, m, h or d, such as 15m";
        assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn samples_follow_their_schema() {
        for (name, schema) in ALL {
            assert_eq!(schema.check(&sample(&schema)), Ok(()), "{name}");
        }
    }

    #[test]
    fn every_bad_sample_is_refused_for_what_is_wrong_with_it() {
        for (name, schema) in ALL {
            let bad = bad_samples(&schema);
            assert!(bad.len() > 8, "{name}");
            for bad in bad {
                let problems = schema.check(&bad.value).expect_err(&format!("{name}: {}", bad.what));
                let said = problems.iter().any(|problem| problem.code == bad.code && problem.path == bad.path);
                assert!(said, "{name}: {}: {:?} {:?} is not in {problems:?}", bad.what, bad.code, bad.path);
            }
        }
    }

    #[test]
    fn all_problems_are_told_at_once_with_their_paths() {
        let sandbox = r#"{"network":{"allow":["http://x"]},"resources":{"cpus":65}}"#;
        let body = format!(r#"{{"requestId":"","agentId":7,"sandbox":{sandbox},"x":1}}"#);
        let problems = OPEN_SESSION.check(&Json::parse(&body).unwrap().value()).unwrap_err();
        let said: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "requestId: Too small: expected string to have >=1 characters",
                "agentId: Invalid input: expected string, received number",
                "ownerUserId: Invalid input: required, received undefined",
                concat!(
                    "sandbox.network.allow.0: Invalid string: ",
                    "expected a host name such as api.example.com or *.example.com"
                ),
                "sandbox.resources.cpus: Too big: expected number to be <=64",
                "Unrecognized key: \"x\"",
            ]
        );
    }

    #[test]
    fn a_message_holds_exactly_one_content() {
        let check = |body: &str| COMMAND.check(&Json::parse(body).unwrap().value());
        let ids = r#""requestId":"r","idempotencyKey":"k","type":"message""#;
        assert_eq!(check(&format!(r#"{{{ids},"data":null}}"#)), Ok(()));
        assert_eq!(check(&format!(r#"{{{ids},"content":"\ud800"}}"#)), Ok(()));
        for wrong in [String::new(), r#","content":"a","data":1"#.to_owned(), r#","content":"""#.to_owned()] {
            assert!(check(&format!("{{{ids}{wrong}}}")).is_err(), "{wrong}");
        }
    }
}
