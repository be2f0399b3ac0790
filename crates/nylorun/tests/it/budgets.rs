//! Budgets and the ledger: through the real binary, and through the gate with a provider that has prices.

use std::sync::Arc;

use nylorun_client::{
    Budget, Command, CommandKind, Content, Environment, Event, Follow, InlineEnvironment, OpenSession, Update,
    UsageQuery,
};
use nylorun_domain::change::SessionChange;
use nylorun_domain::id::{AgentId, EffectId, InvocationId, SessionId, TenantId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::model::{ModelFailureCode, ModelOutcome, Prompt, PromptItem, UserPart};
use nylorun_domain::time::Millis;
use nylorun_domain::usage::{Completed, Repetition, UsageRow};
use nylorun_gates::catalogue::Catalogue;
use nylorun_gates::outbound::{Outbound, PrivateTargets};
use nylorun_gates::{CallSettings, Models};
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::models::{
    Delta, DeltaSink, KeysError, ModelAccess, ModelCall, ModelGate, ModelKeys, ModelTerms, ProviderAccess,
};
use nylorun_ports::secret::Secret;
use nylorun_store::db::{DatabaseUrl, Db, DbOptions};
use nylorun_store::{NewTenant, Store};
use nylorun_testkit::provider::{ProviderStub, messages};
use nylorun_turns::{StoreBudgets, now, uuid};
use serde_json::{Value, json};

use crate::cli::{nylorun, ok};
use crate::database::{self, Database};
use crate::drill;
use crate::raw::send;
use crate::server::{Server, Setup};

fn budget(scope: &str, period: Option<&str>) -> Budget {
    Budget { scope: scope.to_owned(), id: None, period: period.map(str::to_owned), limit_usd: None, limit_tokens: None }
}

async fn open(server: &Server, id: &str) {
    server.client().open_session(id, &OpenSession::new(drill::AGENT, "me")).await.expect("it can be opened");
}

/// Runs a turn and gives its events.
async fn turn(server: &Server, id: &str, script: &Value) -> Vec<Event> {
    let session = server.client().session(id);
    let before = session.history(None, None).await.expect("it has a history").cursor;
    let content = Content::Text(script.to_string());
    let command = Command { idempotency_key: uuid(), kind: CommandKind::Message(content) };
    session.command(&command).await.expect("it is free");
    let mut events = session.events(Follow { after: before, ..Follow::default() });
    let mut seen = Vec::new();
    loop {
        if let Update::Event(event) = events.next().await.expect("the stream goes on").expect("the stream goes on") {
            let is_last = event.ends_turn();
            seen.push(event);
            if is_last {
                return seen;
            }
        }
    }
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

/// A turn of three model calls.
fn three_calls() -> Value {
    let bash = json!([{"name": "bash", "input": {"command": "true"}}]);
    json!([{"tools": bash}, {"tools": bash}, {"text": "done"}])
}

const STOPPED: [&str; 5] = ["command.message", "message.assistant", "tool.completed", "model.failed", "turn.failed"];

#[tokio::test]
async fn a_turns_budget_stops_it_and_the_ledger_has_only_calls_that_were_made() {
    for database in database::each("nylorun_turn_budget").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = database.setup(Setup::new(home.path())).start();
        drill::prepare(&server).await.expect("it can be prepared");
        open(&server, "s").await;
        let limits = [Budget { limit_tokens: Some(1), ..budget("turn", None) }];
        assert_eq!(server.tenant().set_budgets(&limits).await.expect("they can be set"), limits);
        for round in 1_u64..3 {
            let events = turn(&server, "s", &three_calls()).await;
            assert_eq!(kinds(&events), STOPPED, "each turn has the whole budget");
            let failed = &events[3].payload;
            assert_eq!((&failed["code"], &failed["retryable"]), (&json!("budget_exhausted"), &json!(false)));
            let error = &events[4].payload["error"];
            assert_eq!(error["code"], "model.budget_exhausted");
            let told = error["message"].as_str().expect("it says why");
            assert!(told.starts_with("The budget of a turn is used up: ") && told.contains(" of 1 tokens"), "{told}");
            let usage = server.client().session("s").usage(None).await.expect("it can be read");
            assert_eq!((usage.calls, usage.other["unreportedCalls"].as_u64()), (round, Some(0)));
        }
        assert_eq!(server.tenant().set_budgets(&[]).await.expect("they can be removed"), []);
        assert_eq!(turn(&server, "s", &three_calls()).await.last().expect("it ended").kind, "turn.completed");
    }
}

#[tokio::test]
async fn a_tenants_and_an_agents_budget_refuse_all_that_comes_later() {
    for database in database::each("nylorun_tenant_budget").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = database.setup(Setup::new(home.path())).start();
        drill::prepare(&server).await.expect("it can be prepared");
        let (client, tenant) = (server.client(), server.tenant());
        open(&server, "s").await;
        turn(&server, "s", &json!("hello")).await;
        let spent = tenant.usage(&UsageQuery::default()).await.expect("it can be read");
        assert!(spent.tokens > 0, "{spent:?}");
        let other_agent = Budget { id: Some("other".into()), ..budget("agent", Some("month")) };
        let own_agent = Budget { id: Some(drill::AGENT.into()), ..budget("agent", Some("day")) };
        for (limits, expected) in [
            (Budget { limit_tokens: Some(1), ..other_agent }, "turn.completed"),
            (Budget { limit_tokens: Some(1), ..own_agent }, "turn.failed"),
            (Budget { limit_tokens: Some(1), ..budget("tenant", Some("month")) }, "turn.failed"),
            // The fixture model costs nothing.
            (Budget { limit_usd: Some(0.000_000_001), ..budget("tenant", Some("month")) }, "turn.completed"),
            (Budget { limit_tokens: Some(1_000_000), ..budget("tenant", Some("day")) }, "turn.completed"),
        ] {
            tenant.set_budgets(std::slice::from_ref(&limits)).await.expect("they can be set");
            let events = turn(&server, "s", &json!("again")).await;
            assert_eq!(events.last().expect("it ended").kind, expected, "{limits:?}");
        }
        let calls = client.session("s").model_calls(None, None, None).await.expect("they can be read");
        assert_eq!(calls.calls.len(), 4, "calls that were refused are none");
        assert!(calls.calls.iter().all(|call| call.outcome == "completed" && call.agent_id == drill::AGENT));
    }
}

#[tokio::test]
async fn budgets_that_one_process_sets_hold_for_the_next_call_of_another() {
    let Some(database) = database::postgres("nylorun_two_budgets").await else { return };
    let homes = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let first = database.setup(Setup::new(homes[0].path())).start();
    // The keys of the command line are one pair for both.
    let keys = |home: usize| homes[home].path().join("host-credentials.json");
    std::fs::copy(keys(0), keys(1)).expect("it can be copied");
    let second = database.setup(Setup::new(homes[1].path())).start();
    drill::prepare(&first).await.expect("it can be prepared");
    open(&second, "s").await;
    // Both have looked at budgets, and found none.
    assert_eq!(turn(&second, "s", &json!("hello")).await.last().expect("it ended").kind, "turn.completed");
    let limits = [Budget { limit_tokens: Some(1), ..budget("tenant", Some("month")) }];
    first.tenant().set_budgets(&limits).await.expect("they can be set");
    assert_eq!(turn(&second, "s", &json!("again")).await.last().expect("it ended").kind, "turn.failed");
    first.tenant().set_budgets(&[]).await.expect("they can be set");
    assert_eq!(turn(&second, "s", &json!("again")).await.last().expect("it ended").kind, "turn.completed");
}

#[tokio::test]
async fn a_call_that_a_cancel_cut_off_is_in_the_ledger_with_what_is_known() {
    for database in database::each("nylorun_cut_off").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = database.setup(Setup::new(home.path())).start();
        drill::prepare(&server).await.expect("it can be prepared");
        // The outcome of a tool that runs is recorded together with the intent of the call after it.
        let environment = Some(Environment::Inline(InlineEnvironment::default()));
        let open_session = OpenSession { environment, ..OpenSession::new(drill::AGENT, "me") };
        server.client().open_session("s", &open_session).await.expect("it can be opened");
        let session = server.client().session("s");
        let script =
            json!([{"tools": [{"name": "bash", "input": {"command": "true"}}]}, {"delayMs": 600_000, "text": "x"}]);
        session.command(&Command::text(script.to_string()).expect("a key")).await.expect("it is free");
        let mut events = session.events(Follow::default());
        loop {
            let update = events.next().await.expect("the stream goes on").expect("the stream goes on");
            if matches!(&update, Update::Event(event) if event.kind == "tool.completed") {
                break;
            }
        }
        session.command(&Command::cancel().expect("a key")).await.expect("it is always taken");
        let page = session.model_calls(None, None, Some(10)).await.expect("they can be read");
        let told: Vec<_> = page.calls.iter().map(|call| (call.outcome.as_str(), call.usage.is_some())).collect();
        assert_eq!(told, [("completed", true), ("failed", false)]);
        let usage = session.usage(None).await.expect("it can be read");
        assert_eq!((usage.calls, usage.other["unreportedCalls"].as_u64()), (2, Some(1)));
    }
}

#[tokio::test]
async fn usage_and_budgets_from_the_terminal() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let path = home.path();
    let server = Setup::new(path).start();
    drill::prepare(&server).await.expect("it can be prepared");
    open(&server, "s").await;
    let budget = |args: &[&str]| nylorun(path, &[&["budget"], args].concat());
    assert!(ok(&budget(&["list"])).starts_with("no budgets"));
    ok(&budget(&["set", "tenant", "--period", "month", "--usd", "100"]));
    ok(&budget(&["set", "agent", "--id", drill::AGENT, "--period", "day", "--usd", "0.5", "--tokens", "1"]));
    let table = "\
SCOPE   ID     EACH   USD  TOKENS
tenant         month  20
agent   drill  day    0.5  1
turn                       7
";
    ok(&budget(&["set", "turn", "--tokens", "7"]));
    assert_eq!(ok(&budget(&["set", "tenant", "--period", "month", "--usd", "20"])), table);
    ok(&budget(&["rm", "agent", "--id", drill::AGENT]));
    let listed: Value = serde_json::from_str(&ok(&budget(&["list", "--json"]))).expect("JSON");
    assert_eq!(
        listed,
        json!([
            {"scope": "tenant", "period": "month", "limitUsd": 20.0}, {"scope": "turn", "limitTokens": 7},
        ])
    );
    let missing = budget(&["rm", "agent", "--id", "nobody"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("there is no budget for agent nobody"), "{missing:?}");
    for wrong in
        [&["set", "tenant", "--usd", "1"][..], &["set", "agent", "--period", "day", "--usd", "1"], &["set", "turn"]]
    {
        assert_eq!(budget(wrong).status.code(), Some(2), "{wrong:?}");
    }

    turn(&server, "s", &json!("hello")).await;
    let usage = |args: &[&str]| nylorun(path, &[&["usage"], args].concat());
    let told: Value =
        serde_json::from_str(&ok(&usage(&["--scope", "agent", "--id", drill::AGENT, "--json"]))).expect("JSON");
    assert_eq!((&told["scope"], &told["calls"], &told["costUsd"]), (&json!("agent"), &json!(1), &json!(0.0)));
    let told = ok(&usage(&["--period", "day"]));
    assert!(told.starts_with("tenant since 20") && told.contains("\ncalls:  1\n"), "{told}");
    assert_eq!(usage(&["--scope", "turn"]).status.code(), Some(2));
}

/// An answer of the ledger's routes as a person or another key gets it.
fn status(server: &Server, target: &str, key: &str, more: &[(&str, &str)]) -> u16 {
    let bearer = format!("Bearer {}", server.key_text(key));
    let mut headers = vec![("Nylorun-Protocol", "10"), ("Authorization", bearer.as_str())];
    headers.extend(more);
    send(&server.url, "GET", target, &headers, None).status
}

#[tokio::test]
async fn only_the_application_as_itself_reads_a_sessions_calls() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let server = Setup::new(home.path()).start();
    drill::prepare(&server).await.expect("it can be prepared");
    open(&server, "s").await;
    let me = [("Nylorun-Subject", "me"), ("Nylorun-Scopes", "sessions:own agents:read")];
    for target in ["/v1/sessions/s/usage", "/v1/sessions/s/calls/model"] {
        assert_eq!(status(&server, target, "applicationKey", &[]), 200, "{target}");
        assert_eq!(status(&server, target, "applicationKey", &me), 403, "{target}");
        assert_eq!(status(&server, target, "managementKey", &[]), 403, "{target}");
    }
}

/// A store and a gate over it whose provider has prices.
struct Priced {
    store: Store,
    gate: Models,
    stub: ProviderStub,
    _home: tempfile::TempDir,
}

/// Opens a provider's key, and reads which budgets hold as the real keys do.
struct Keys {
    store: Store,
    access: ProviderAccess,
}

impl ModelKeys for Keys {
    fn terms(&self) -> BoxFuture<'_, Result<ModelTerms, KeysError>> {
        Box::pin(async {
            let settings = self.store.model_settings().await;
            let settings = settings.map_err(|error| KeysError::Unavailable(error.to_string()))?;
            Ok(ModelTerms { access: ModelAccess::Provider(self.access.clone()), budgets: settings.budget_changes })
        })
    }
}

struct NoDeltas;

impl DeltaSink for NoDeltas {
    fn delta(&self, _: Delta) {}
}

impl Priced {
    /// A home with one session, left by its server.
    async fn new(database: &Database) -> Self {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = database.setup(Setup::new(home.path())).start();
        drill::prepare(&server).await.expect("it can be prepared");
        open(&server, "s").await;
        assert!(server.stop().success());
        let url = match database {
            Database::Sqlite => DatabaseUrl::Sqlite(home.path().join("tenant").join("nylorun.db")),
            Database::Postgres(url) => url.parse().expect("a URL"),
        };
        let db = Arc::new(Db::open(&url, &DbOptions::default()).await.expect("it opens"));
        let fresh = NewTenant { id: TenantId::from_trusted("tn_x"), name: "x".into(), created_at: Millis(0) };
        let store = Store::open(db, &fresh).await.expect("it is there");
        let stub = ProviderStub::start().await.expect("a port is free");
        let access = ProviderAccess {
            provider: "anthropic".into(),
            model: "claude-haiku-4-5".into(),
            base_url: Some(stub.base_url()),
            settings: Json::from_trusted("{}"),
            key: Secret::new("k"),
        };
        let gate = Models::new(
            Arc::new(Keys { store: store.clone(), access }),
            Arc::new(StoreBudgets::new(store.clone())),
            Arc::new(Outbound::new(PrivateTargets::Allow)),
            Arc::new(Catalogue::load(None).expect("it is sound")),
            CallSettings { attempts: 1, ..CallSettings::default() },
        );
        Self { store, gate, stub, _home: home }
    }

    async fn budgets(&self, budgets: &str) {
        let body = Json::parse(&format!(r#"{{"budgets":{budgets}}}"#)).expect("JSON");
        let budgets = nylorun_wire::budget::read(&nylorun_wire::body::Body::new(body)).expect("they are sound");
        self.store.budget_put_all(&budgets, now()).await.expect("they can be put");
    }

    async fn call(&self, effect: &str) -> ModelOutcome {
        let call = call(effect);
        self.gate.call(&call, Arc::new(NoDeltas), Abort::never()).await.expect("nothing aborts it")
    }

    /// Records what a call gave, as its turn would.
    async fn record(&self, effect: &str, outcome: &ModelOutcome) {
        self.write(vec![row(effect, outcome)]).await;
    }

    async fn write(&self, rows: Vec<UsageRow>) {
        let session = self.store.session_get(&SessionId::from_trusted("s")).await.expect("it answers");
        let change = SessionChange { usage: rows, ..SessionChange::of(&session.expect("it is there")) };
        self.store.session_commit(&change).await.expect("it can be recorded");
    }
}

/// The ledger's row of a call that answered.
fn row(effect: &str, outcome: &ModelOutcome) -> UsageRow {
    let ModelOutcome::Completed(candidate) = outcome else { panic!("{outcome:?}") };
    let call = call(effect);
    UsageRow {
        id: uuid(),
        effect_id: call.effect_id,
        session_id: call.session_id,
        turn_id: call.turn_id,
        agent_id: call.agent_id,
        model: Some(candidate.model.clone()),
        completed: Completed::Completed,
        repetition: Repetition::First,
        usage: candidate.usage,
        at: now(),
    }
}

/// A call of turn `t` and agent `a`.
fn call(effect: &str) -> ModelCall {
    ModelCall {
        session_id: SessionId::from_trusted("s"),
        turn_id: TurnId::from_trusted("t"),
        agent_id: AgentId::from_trusted("a"),
        epoch: 1,
        effect_id: EffectId::from_trusted(effect),
        invocation_id: InvocationId::from_trusted(effect),
        prompt: Prompt {
            instructions: Vec::new(),
            items: vec![PromptItem::User(vec![UserPart::Text("hello".into())]).into()],
            tools: Vec::new(),
            output_schema: None,
        },
    }
}

fn code(outcome: &ModelOutcome) -> Option<ModelFailureCode> {
    match outcome {
        ModelOutcome::Completed(_) => None,
        ModelOutcome::Failed(failure) => Some(failure.code),
    }
}

/// 12 tokens in, 7 out, 3 read from the cache and 4 written to it, at 1, 5, 0.1 and 1.25 dollars a million.
const COST_NANO_USD: i64 = 12_000 + 35_000 + 300 + 5_000;

#[tokio::test]
async fn money_is_counted_and_the_call_after_the_limit_is_not_made() {
    for database in database::each("nylorun_money").await {
        let priced = Priced::new(&database).await;
        priced.stub.always(|_| messages::text(&["hi"]));
        // Two calls fit, and a third begins before the limit is reached.
        priced.budgets(r#"[{"scope":"tenant","period":"month","limitUsd":0.00012}]"#).await;
        for number in 0..3 {
            let effect = format!("e{number}");
            let outcome = priced.call(&effect).await;
            let ModelOutcome::Completed(candidate) = &outcome else { panic!("{outcome:?}") };
            assert_eq!(candidate.usage.and_then(|usage| usage.cost_nano_usd), Some(COST_NANO_USD));
            priced.record(&effect, &outcome).await;
        }
        let refused = priced.call("e3").await;
        let ModelOutcome::Failed(failure) = &refused else { panic!("{refused:?}") };
        assert_eq!((failure.code, failure.retryable, failure.usage), (ModelFailureCode::BudgetExhausted, false, None));
        assert!(failure.message.contains("0.0001569 of 0.00012 US dollars"), "{}", failure.message);
        assert_eq!(priced.stub.count(), 3);
        // Another agent's budget does not count; the same agent's does.
        priced.budgets(r#"[{"scope":"agent","id":"b","period":"day","limitUsd":0.00001}]"#).await;
        assert_eq!(code(&priced.call("e4").await), None);
        priced.budgets(r#"[{"scope":"agent","id":"a","period":"day","limitUsd":0.00001}]"#).await;
        assert_eq!(code(&priced.call("e5").await), Some(ModelFailureCode::BudgetExhausted));
    }
}

#[tokio::test]
async fn calls_in_flight_count_with_what_a_call_cost_so_far() {
    for database in database::each("nylorun_in_flight").await {
        let priced = Priced::new(&database).await;
        priced.stub.always(|_| messages::text(&["hi"]));
        priced.budgets(r#"[{"scope":"turn","limitUsd":0.00012}]"#).await;
        let first = priced.call("e0").await;
        // Its outcome is not recorded yet, so it is in flight, and nobody knows what a call costs.
        assert_eq!(code(&priced.call("e1").await), None);
        priced.record("e0", &first).await;
        // One was recorded, and one is in flight: two of its size, and room for a third.
        let third = priced.call("e2").await;
        assert_eq!(code(&third), None);
        // Three: the limit is reached.
        assert_eq!(code(&priced.call("e3").await), Some(ModelFailureCode::BudgetExhausted));
        assert_eq!(priced.stub.count(), 3);
    }
}

#[tokio::test]
async fn what_others_spent_meanwhile_is_counted_however_much_it_is() {
    for database in database::each("nylorun_far_behind").await {
        let priced = Priced::new(&database).await;
        priced.stub.always(|_| messages::text(&["hi"]));
        priced.budgets(r#"[{"scope":"tenant","period":"month","limitTokens":30000}]"#).await;
        let outcome = priced.call("first").await;
        // 26 tokens each.
        let rows = |from: usize| (from..from + 600).map(|number| row(&format!("e{number}"), &outcome)).collect();
        priced.write(rows(0)).await;
        assert_eq!(code(&priced.call("second").await), None, "15,600 tokens");
        for from in [600, 1_200] {
            priced.write(rows(from)).await;
        }
        assert_eq!(code(&priced.call("third").await), Some(ModelFailureCode::BudgetExhausted), "46,800 tokens");
        assert_eq!(priced.stub.count(), 2);
    }
}
