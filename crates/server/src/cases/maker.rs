//! The cases of one route: what can be wrong with a request to it, and what each must be answered with.

use nylorun_domain::caller::Audience;
use nylorun_domain::id::{MAX_ID_LEN, SessionId};
use nylorun_domain::json::Value;
use nylorun_wire::code::Code;
use nylorun_wire::cursor;
use nylorun_wire::schema::{Schema, bad_samples, sample};

use super::{Case, Expect, Message, World};
use crate::pipeline::MAX_BODY;
use crate::route::{BodyKind, Route, Scope, param_name};

/// Makes the cases of one route.
pub(super) struct Maker<'w> {
    pub(super) route: &'static Route,
    pub(super) world: &'w World,
}

impl Maker<'_> {
    pub(super) fn all(&self) -> Vec<Case> {
        let mut cases = self.protocol();
        cases.extend(self.credentials());
        cases.extend(self.subjects());
        cases.extend(self.paths());
        cases.extend(self.queries());
        cases.extend(self.owners());
        if let Some(schema) = self.schema() {
            cases.extend(self.bodies(schema));
        }
        if let BodyKind::Bytes { limit_bytes, .. } = self.route.body {
            cases.extend(self.uploads(limit_bytes));
        }
        cases
    }

    fn schema(&self) -> Option<&'static Schema> {
        match &self.route.body {
            BodyKind::Json(schema) | BodyKind::OptionalJson(schema) => Some(schema),
            BodyKind::None | BodyKind::Bytes { .. } => None,
        }
    }

    fn key(&self) -> &str {
        let is_managed = self.route.audience == Audience::Management;
        if is_managed { &self.world.management_key } else { &self.world.application_key }
    }

    fn target(&self) -> String {
        self.target_with(|name| match name {
            "id" => self.world.session_id.clone(),
            "agentId" => self.world.agent_id.clone(),
            "tool" => "read".to_owned(),
            "keyId" => "no-such-key".to_owned(),
            "file" => format!("sha256:{}", "0".repeat(64)),
            _ => "no-such-thing".to_owned(),
        })
    }

    fn target_with(&self, value: impl Fn(&str) -> String) -> String {
        let segments = self.route.path.split('/').map(|segment| match param_name(segment) {
            Some(name) => value(name),
            None => segment.to_owned(),
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// A request with which nothing is wrong but what is done to it.
    fn sound(&self, name: &str, expect: Expect) -> Case {
        let body = self.schema().map(|schema| self.fitting(schema).to_json().as_str().as_bytes().to_vec());
        let mut headers =
            vec![("nylorun-protocol", "10".to_owned()), ("authorization", format!("Bearer {}", self.key()))];
        if body.is_some() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        let name = format!("{}: {name}", self.route.name);
        Case { name, method: self.route.method.as_str(), target: self.target(), headers, body, expect }
    }

    /// A sample body that names what is there.
    fn fitting(&self, schema: &Schema) -> Value {
        let Value::Object(mut members) = sample(schema) else { return sample(schema) };
        for (name, value) in &mut members {
            if *name == "agentId" {
                *value = Value::from(self.world.agent_id.as_str());
            }
        }
        Value::Object(members)
    }

    fn protocol(&self) -> Vec<Case> {
        let unsupported = || expect(426, Code::ProtocolUnsupported, Message::None);
        let mut cases: Vec<_> = ["3", "11", "ten", "10, 10", "-10", "10.0"]
            .map(|version| {
                let case = self.sound(&format!("protocol {version}"), unsupported());
                case.without("nylorun-protocol").with("nylorun-protocol", version)
            })
            .into();
        cases.push(self.sound("no protocol", unsupported()).without("nylorun-protocol"));
        cases.push(self.sound("protocol twice", unsupported()).with("nylorun-protocol", "10"));
        let opaque = expect(404, Code::NotFound, Message::Some);
        cases.push(self.sound("another tenant", opaque).with("nylorun-tenant", "tn_00000000000000000000000000"));
        cases
    }

    fn credentials(&self) -> Vec<Case> {
        let required = || expect(401, Code::CredentialRequired, Message::Some);
        let invalid = || expect(401, Code::CredentialInvalid, Message::Some);
        let mut cases = Vec::new();
        if self.route.audience != Audience::Anyone {
            cases.push(self.sound("nothing sent", required()).without("nylorun-protocol").without("authorization"));
            cases.push(self.sound("no credential", required()).without("authorization"));
            for header in ["Basic eDp5", "Bearer", "Bearer a b", "Bearer  "] {
                let case = self.sound("not a bearer", required()).without("authorization");
                cases.push(case.with("authorization", header));
            }
        }
        for token in ["0".repeat(64), "A".repeat(64), "short".to_owned(), "e30.e30.e30".to_owned()] {
            let case = self.sound("an unknown credential", invalid()).without("authorization");
            cases.push(case.with("authorization", &format!("Bearer {token}")));
        }
        let origin = expect(403, Code::OriginRejected, Message::Some);
        cases.push(self.sound("an origin", origin).with("origin", "https://example.com"));
        if let Some(other) = self.other_key() {
            let mismatch = expect(403, Code::KeyRoleMismatch, Message::Some);
            let case = self.sound("a key of the other API", mismatch).without("authorization");
            cases.push(case.with("authorization", &format!("Bearer {other}")));
        }
        cases
    }

    fn other_key(&self) -> Option<&str> {
        match self.route.audience {
            Audience::Runtime | Audience::RuntimeByKey | Audience::RuntimeAlone => Some(&self.world.management_key),
            Audience::Management => Some(&self.world.application_key),
            Audience::Everyone | Audience::Anyone => None,
        }
    }

    fn subjects(&self) -> Vec<Case> {
        if self.route.audience == Audience::Management {
            let refused = expect(403, Code::SubjectInvalid, Message::Some);
            return vec![self.sound("a management key with a subject", refused).acting("ann", "sessions:own")];
        }
        let invalid = || expect(400, Code::SubjectInvalid, Message::Some);
        let mut cases = vec![
            self.sound("a subject without scopes", invalid()).with("nylorun-subject", "ann"),
            self.sound("scopes without a subject", invalid()).with("nylorun-scopes", "sessions:own"),
            self.sound("an unknown scope", invalid()).acting("ann", "sessions:all"),
            self.sound("a reserved subject", invalid()).acting("installation", "sessions:own"),
            self.sound("a subject twice", invalid()).acting("ann", "sessions:own").with("nylorun-subject", "bob"),
        ];
        if !matches!(self.route.audience, Audience::Everyone | Audience::Anyone) {
            let others: Vec<_> = Scope::ALL.iter().filter(|scope| !self.route.scopes.contains(scope)).collect();
            let others = others.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ");
            let refused = expect(403, Code::ScopeRequired, Message::Some);
            cases.push(self.sound("all scopes but the route's", refused).acting("ann", &others));
        }
        cases
    }

    fn paths(&self) -> Vec<Case> {
        let no_route = || expect(404, Code::RequestRejected, Message::Exactly("Route not found"));
        let mut cases = Vec::new();
        for (name, target) in [
            ("a slash at the end", format!("{}/", self.target())),
            ("an empty segment", self.target().replacen("/v1/", "/v1//", 1)),
            ("another version", self.target().replacen("/v1/", "/v2/", 1)),
        ] {
            cases.push(Case { target, ..self.sound(name, no_route()) });
        }
        cases.push(Case { method: "PATCH", ..self.sound("another method", no_route()) });
        let malformed = || expect(400, Code::RequestRejected, Message::Exactly("Malformed path"));
        let broken = || expect(400, self.bad_id_code(), Message::Some);
        for param in self.route.params() {
            let with =
                |text: &str| self.target_with(|name| if name == param { text.to_owned() } else { sound_param(name) });
            for text in ["%zz", "%f", "%ff"] {
                let case = self.sound(&format!("{param} is {text}"), malformed());
                cases.push(Case { target: with(text), ..case });
            }
            for text in ["%00", "a%0Ab", &"a".repeat(MAX_ID_LEN + 1)] {
                let case = self.sound(&format!("{param} is no id"), broken());
                cases.push(Case { target: with(text), ..case });
            }
        }
        cases
    }

    fn bad_id_code(&self) -> Code {
        if self.route.params().any(|name| name == "keyId") { Code::InvalidRequest } else { Code::RequestRejected }
    }

    fn queries(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut push = |query: &str, expect: Expect| {
            let target = format!("{}?{query}", self.target());
            cases.push(Case { target, ..self.sound(query, expect) });
        };
        let invalid = || expect(400, Code::QueryInvalid, Message::Some);
        let names: Vec<_> = self.route.query.iter().map(|param| param.name).collect();
        if names.contains(&"limit") {
            for wrong in ["0", &self.above_limit(), "-1", "1.5", "ten", "", "%2b5"] {
                push(&format!("limit={wrong}"), invalid());
            }
            push("limit=1&limit=2", invalid());
            let cursor = if names.contains(&"after") { "after" } else { "cursor" };
            for wrong in ["czow", "h1.czow"] {
                let refused = expect(400, Code::CursorInvalid, Message::Exactly("Invalid cursor"));
                push(&format!("limit=5&{cursor}={wrong}"), refused);
            }
        }
        for (name, wrong) in [("turnId", "a%00"), ("scope", "session"), ("period", "year"), ("id", "a")] {
            if names.contains(&name) {
                push(&format!("{name}={wrong}&{name}={wrong}"), invalid());
                push(&format!("{name}={wrong}"), invalid());
            }
        }
        if names.contains(&"scope") || names.contains(&"turnId") || names.contains(&"after") {
            push("colour=red", invalid());
        }
        if names.contains(&"scope") {
            push("scope=agent", invalid());
            push("scope=turn", invalid());
        }
        for switch in ["deltas", "uncertain"].into_iter().filter(|name| names.contains(name)) {
            push(&format!("{switch}=yes"), invalid());
            push(&format!("{switch}=true&{switch}=true"), invalid());
        }
        if names.contains(&"agent") {
            for wrong in ["", "a%00", &"a".repeat(MAX_ID_LEN + 1)] {
                push(&format!("agent={wrong}"), invalid());
            }
        }
        if names.contains(&"agentId") {
            push("agentId=", invalid());
            push("agentId=a&agentId=b", invalid());
            self.list_queries(&mut cases);
        } else if names.contains(&"deltas") || names.contains(&"agent") {
            let beyond = cursor::event(&SessionId::from_trusted(self.world.session_id.as_str()), i64::MAX);
            for wrong in ["", "%00", "!!", "c3g", &self.world.foreign_cursor, &beyond] {
                let refused = expect(400, Code::RequestRejected, Message::Exactly("Invalid cursor"));
                push(&format!("cursor={wrong}"), refused);
            }
            let refused = expect(400, Code::RequestRejected, Message::Exactly("Invalid cursor"));
            cases.push(self.sound("a bad Last-Event-ID", refused).with("last-event-id", "!!"));
        }
        cases
    }

    /// One more than a page of this route may hold.
    fn above_limit(&self) -> String {
        let limit = self.route.query.iter().find(|param| param.name == "limit").map(|param| param.schema);
        match limit {
            Some(Schema::Integer { max, .. }) => (max + 1).to_string(),
            Some(_) | None => "201".to_owned(),
        }
    }

    /// What a page of a list refuses beside the limit.
    fn list_queries(&self, cases: &mut Vec<Case>) {
        let mut push = |query: &str, expect: Expect| {
            let target = format!("{}?limit=5&{query}", self.target());
            cases.push(Case { target, ..self.sound(query, expect) });
        };
        for wrong in [
            "agentId=a%0Ab",
            "status=",
            "status=dreaming",
            "status=Idle",
            "status=idle&status=idle",
            "sandboxId=",
            "sandboxId=%2Fa",
            "ownerUserId=",
            "ownerUserId=a%00",
            "agent=helper",
            "uncertain=",
            "uncertain=1",
            "cursor=a&cursor=b",
            "=",
        ] {
            push(wrong, expect(400, Code::QueryInvalid, Message::Some));
        }
        for wrong in ["", "%00", "!!", "e30", "e30=", &"A".repeat(5_000)] {
            push(&format!("cursor={wrong}"), expect(400, Code::CursorInvalid, Message::Exactly("Invalid cursor")));
        }
        // Bound to nothing that anybody asked for.
        let foreign = "eyJ2ZXJzaW9uIjoxLCJiaW5kaW5nIjoiYiIsImtleSI6WzEsImEiXX0";
        push(&format!("cursor={foreign}"), expect(400, Code::CursorMismatch, Message::Exactly("Invalid cursor")));
        let mut case = self.sound("a subject that names an owner", expect(403, Code::RequestRejected, Message::Some));
        case.target.push_str("?limit=5&ownerUserId=ann");
        cases.push(case.acting("ann", "sessions:own"));
    }

    /// A session of somebody else, and one that is not there, are answered alike.
    fn owners(&self) -> Vec<Case> {
        if !self.route.params().any(|name| name == "id") || self.route.method.as_str() == "PUT" {
            return vec![];
        }
        let missing = || expect(404, Code::RequestRejected, Message::Exactly("Session not found"));
        let elsewhere =
            self.target_with(|name| if name == "id" { "no-such-session".to_owned() } else { sound_param(name) });
        let mut cases = vec![Case { target: elsewhere, ..self.sound("a session that is not there", missing()) }];
        if matches!(self.route.audience, Audience::Runtime | Audience::RuntimeByKey) {
            let scopes = self.route.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ");
            let case = self.sound("a session of somebody else", missing());
            cases.push(case.acting(&self.world.stranger, &scopes));
        }
        cases
    }

    /// What is refused of a body of bytes. None of these is the file that the path names.
    fn uploads(&self, limit_bytes: u64) -> Vec<Case> {
        let invalid = || expect(400, Code::InvalidRequest, Message::Some);
        let send = |name: &str, body: Vec<u8>, expect| Case { body: Some(body), ..self.sound(name, expect) };
        let too_long = vec![0; usize::try_from(limit_bytes).unwrap_or(usize::MAX - 1) + 1];
        let mut cases = vec![
            send("other bytes", b"other".to_vec(), invalid()),
            send("no bytes", vec![], invalid()),
            send("oversize", too_long, expect(413, Code::LimitExceeded, Message::Some)),
        ];
        for wrong in ["", "text", "text/", "a b/c", "text/plain, text/html"] {
            cases.push(send("no media type", b"x".to_vec(), invalid()).with("content-type", wrong));
        }
        let twice = send("two media types", b"x".to_vec(), invalid());
        cases.push(twice.with("content-type", "text/plain").with("content-type", "text/html"));
        for coding in ["gzip", "identity, br"] {
            let unsupported = expect(415, Code::UnsupportedMediaType, Message::Some);
            cases.push(send(coding, b"x".to_vec(), unsupported).with("content-encoding", coding));
        }
        cases
    }

    fn bodies(&self, schema: &'static Schema) -> Vec<Case> {
        let rejected = |message| expect(400, Code::RequestRejected, message);
        let send = |name: &str, body: Vec<u8>, expect| Case { body: Some(body), ..self.sound(name, expect) };
        let mut cases: Vec<_> = bad_samples(schema)
            .into_iter()
            .map(|bad| {
                let expect = rejected(Message::Problem(bad.code, bad.path));
                send(&bad.what, bad.value.to_json().as_str().as_bytes().to_vec(), expect)
            })
            .collect();
        let deep = format!("{{\"requestId\":{}1{}}}", "[".repeat(128), "]".repeat(128));
        let half = r#"{"requestId":"r"#;
        for (name, body) in [
            ("broken JSON", half.as_bytes().to_vec()),
            ("text after the body", b"{} {}".to_vec()),
            ("no JSON", b"requestId=r".to_vec()),
            ("no UTF-8", b"{\"requestId\":\"\xff\"}".to_vec()),
            ("too deep", deep.into_bytes()),
        ] {
            cases.push(send(name, body, rejected(Message::Exactly("Invalid JSON"))));
        }
        if matches!(self.route.body, BodyKind::Json(_)) {
            let mut case = self.sound("no body", rejected(Message::Exactly("Invalid JSON")));
            case.body = None;
            cases.push(case);
        }
        let oversize = format!("{{\"requestId\":\"{}\"}}", "a".repeat(MAX_BODY)).into_bytes();
        cases.push(send("oversize", oversize, expect(413, Code::RequestRejected, Message::Some)));
        let unsupported = || expect(415, Code::UnsupportedMediaType, Message::Some);
        for media_type in ["text/plain", "application/json-patch+json", "", "application/jsonx; charset=utf-8"] {
            let case = self.sound(&format!("media type {media_type:?}"), unsupported());
            cases.push(case.without("content-type").with("content-type", media_type));
        }
        cases.push(self.sound("no media type", unsupported()).without("content-type"));
        for coding in ["gzip", "br", "identity, gzip", "zstd"] {
            cases.push(self.sound(&format!("{coding} encoding"), unsupported()).with("content-encoding", coding));
        }
        cases
    }
}

fn sound_param(name: &str) -> String {
    if name == "tool" { "read".to_owned() } else { "x".to_owned() }
}

fn expect(status: u16, code: Code, message: Message) -> Expect {
    Expect { status, code, message }
}

impl Case {
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(header, _)| *header != name);
        self
    }

    fn acting(self, subject: &str, scopes: &str) -> Self {
        self.with("nylorun-subject", subject).with("nylorun-scopes", scopes)
    }
}
