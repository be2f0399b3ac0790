//! The ledger of model calls: pages, sums, and an export that misses nothing whoever commits when.

use std::sync::Arc;

use nylorun_domain::budget::{Budget, BudgetScope, Limits, Period, Spend};
use nylorun_domain::change::SessionChange;
use nylorun_domain::id::{AgentId, EffectId, SessionId, TenantId, TurnId};
use nylorun_domain::model::{ModelRef, Usage};
use nylorun_domain::time::Millis;
use nylorun_domain::usage::{Completed, Repetition, UsageRow, UsageTotals};
use nylorun_store::db::{Db, DbOptions, Dialect, Statement};
use nylorun_store::{ExportedCall, NewTenant, SpendOf, Store, all_sql, params};

use crate::db_support::{TestDb, batch_on, client, each, postgres, sqlite};

const SESSION: &str = "INSERT INTO sessions (id, agent_id, owner_user_id, definition_hash, manifest_hash, \
     implementation_version, identity_hash, vault_ids, credential_selections, created_at, status, segment, \
     history_from, epoch, head, rev) VALUES ('s', 'a', 'u', 'd', 'm', '1', 'i', '[]', '[]', 0, 'idle', 0, 0, 0, 0, 0)";

async fn store(test: &TestDb) -> Store {
    test.db.write(vec![Statement::any(SESSION, vec![])]).await.unwrap();
    let db = Arc::new(Db::open(&test.url, &DbOptions::default()).await.unwrap());
    let tenant = NewTenant { id: TenantId::from_trusted("tn_1"), name: "t".into(), created_at: Millis(0) };
    let store = Store::open(db, &tenant).await.unwrap();
    store.usage_prepare().await.unwrap();
    store
}

/// A call of turn `turn` at `at`; the agent is `a` for even times and `b` for odd ones.
fn row(id: &str, turn: &str, at: i64, usage: Option<Usage>) -> UsageRow {
    UsageRow {
        id: id.into(),
        effect_id: EffectId::from_trusted(format!("effect-{id}")),
        session_id: SessionId::from_trusted("s"),
        turn_id: TurnId::from_trusted(turn),
        agent_id: AgentId::from_trusted(if at % 2 == 0 { "a" } else { "b" }),
        model: usage.map(|_| ModelRef { provider: "p".into(), model: "m".into() }),
        completed: if usage.is_some() { Completed::Completed } else { Completed::Failed },
        repetition: Repetition::First,
        usage,
        at: Millis(at),
    }
}

fn used(total: i64, cost_nano_usd: Option<i64>) -> Option<Usage> {
    Some(Usage { input: total - 1, output: 1, total, cached: 2, cache_write: 3, reasoning: 1, cost_nano_usd })
}

async fn write(store: &Store, rows: Vec<UsageRow>) {
    let session = store.session_get(&SessionId::from_trusted("s")).await.unwrap().unwrap();
    let change = SessionChange { usage: rows, ..SessionChange::of(&session) };
    store.session_commit(&change).await.unwrap();
}

/// Four calls of two turns, in two transactions.
fn four() -> [UsageRow; 4] {
    [
        row("c1", "t1", 10, used(100, Some(7))),
        row("c3", "t1", 11, used(50, None)),
        row("c2", "t2", 11, None),
        UsageRow { repetition: Repetition::Duplicate, ..row("c4", "t2", 12, used(1, Some(1_000_000_000))) },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sessions_calls_come_in_pages_and_sum_up() {
    for test in each().await {
        let store = store(&test).await;
        let [one, three, two, four] = four();
        write(&store, vec![one.clone(), three.clone()]).await;
        write(&store, vec![two.clone(), four.clone()]).await;
        let session = SessionId::from_trusted("s");
        let turn = TurnId::from_trusted("t2");
        let list = async |turn: Option<&TurnId>, after, limit| {
            store.usage_of_session(&session, turn, after, limit).await.unwrap()
        };
        assert_eq!(list(None, None, 9).await, [one.clone(), two.clone(), three.clone(), four.clone()]);
        assert_eq!(list(None, Some((Millis(11), "c2")), 1).await, [three]);
        assert_eq!(list(Some(&turn), None, 9).await, [two, four.clone()]);
        assert_eq!(list(Some(&turn), Some((Millis(11), "c2")), 9).await, [four]);
        let other = SessionId::from_trusted("other");
        assert_eq!(store.usage_of_session(&other, Some(&turn), None, 9).await, Ok(vec![]));

        let usage = Usage {
            input: 148,
            output: 3,
            total: 151,
            cached: 6,
            cache_write: 9,
            reasoning: 3,
            cost_nano_usd: Some(1_000_000_007),
        };
        let whole = UsageTotals { calls: 4, duplicates: 1, unreported: 1, unpriced: 1, used: usage };
        assert_eq!(store.usage_totals(&session, Millis(0), None).await, Ok(whole));
        let of_turn = store.usage_totals(&session, Millis(0), Some(&turn)).await.unwrap();
        assert_eq!((of_turn.calls, of_turn.used.total, of_turn.unpriced), (2, 1, 0));
        let nothing =
            UsageTotals { used: Usage { cost_nano_usd: Some(0), ..Usage::default() }, ..UsageTotals::default() };
        assert_eq!(store.usage_totals(&other, Millis(0), None).await, Ok(nothing));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spending_is_summed_by_agent_turn_and_time() {
    for test in each().await {
        let store = store(&test).await;
        write(&store, four().into()).await;
        let sum = async |of: SpendOf, since| store.usage_spend(&of, Millis(since), i64::MAX).await.unwrap();
        let all = Spend { calls: 4, reported: 3, priced: 2, tokens: 151, cost_nano_usd: 1_000_000_007 };
        assert_eq!(sum(SpendOf::Tenant, i64::MIN).await, all);
        let late = Spend { calls: 3, reported: 2, priced: 1, tokens: 51, cost_nano_usd: 1_000_000_000 };
        assert_eq!(sum(SpendOf::Tenant, 11).await, late);
        let odd = Spend { calls: 2, reported: 1, priced: 0, tokens: 50, cost_nano_usd: 0 };
        assert_eq!(sum(SpendOf::Agent(AgentId::from_trusted("b")), 0).await, odd);
        let turn = SpendOf::Turn(TurnId::from_trusted("t1"));
        assert_eq!(sum(turn, 11).await, Spend { calls: 1, ..odd });
        assert_eq!(store.usage_spend(&SpendOf::Tenant, Millis(0), 1).await, Ok(Spend::default()), "nothing is below");
    }
}

/// Reads the export to its end, in pages of two; gives the ids and the last place.
async fn drain(store: &Store, after: &mut (i64, String)) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let page = store.usage_export((after.0, &after.1), 2).await.unwrap();
        let Some(ExportedCall { place, call }) = page.last() else { return ids };
        assert!((*place, call.id.as_str()) > (after.0, after.1.as_str()), "it advances");
        *after = (*place, call.id.clone());
        ids.extend(page.into_iter().map(|exported| exported.call.id));
    }
}

/// Goes on until so many calls came. On PostgreSQL, other tests' transactions on the server hold rows back meanwhile.
async fn drain_until(store: &Store, after: &mut (i64, String), count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    while ids.len() < count {
        ids.extend(drain(store, after).await);
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_goes_on_misses_nothing() {
    for test in each().await {
        let store = store(&test).await;
        let mut after = (0, String::new());
        assert_eq!(drain(&store, &mut after).await, [] as [String; 0]);
        write(&store, four().into()).await;
        let mut first = drain_until(&store, &mut after, 4).await;
        first.sort();
        assert_eq!(first, ["c1", "c2", "c3", "c4"]);
        // Older by their time, later in the ledger.
        write(&store, vec![row("b1", "t3", 1, None), row("b2", "t3", 1, None), row("b3", "t3", 1, None)]).await;
        let mut second = drain_until(&store, &mut after, 3).await;
        second.sort();
        assert_eq!(second, ["b1", "b2", "b3"]);
        assert_eq!(drain(&store, &mut after).await, [] as [String; 0]);
    }
}

/// What a transaction of another process writes, as the store does.
fn raw_insert(id: &str) -> String {
    format!(
        "INSERT INTO model_usage (id, effect_id, session_id, turn_id, agent_id, outcome, duplicate, reported, \
         input_tokens, output_tokens, total_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, created_at, \
         place) VALUES ('{id}', 'e', 's', 't', 'a', 'completed', 0, 1, 0, 0, 5, 0, 0, 0, 1, \
         CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT))"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_commits_late_is_not_missed() {
    let Some(test) = postgres().await else { return };
    let store = store(&test).await;
    let late = client(&test).await;
    batch_on(&late, "BEGIN").await;
    batch_on(&late, &raw_insert("late")).await;
    write(&store, vec![row("early", "t1", 10, None)]).await;
    let mut after = (0, String::new());
    assert_eq!(drain(&store, &mut after).await, [] as [String; 0], "what may yet be overtaken is held back");
    let from = store.usage_settled_below().await.unwrap();
    let tail = store.usage_tail(from, 10).await.unwrap();
    assert!(tail.rows.len() == 1 && tail.rows[0].place >= tail.settled_below, "and counted as not settled");
    batch_on(&late, "COMMIT").await;
    assert_eq!(drain_until(&store, &mut after, 2).await, ["late", "early"]);
    let tail = store.usage_tail(from, 10).await.unwrap();
    let effects: Vec<_> = tail.rows.iter().map(|row| row.effect_id.as_str()).collect();
    assert_eq!(effects, ["e", "effect-early"]);
    assert!(tail.rows.iter().all(|row| row.place < tail.settled_below));
}

#[tokio::test(flavor = "multi_thread")]
async fn places_go_on_rising_after_a_restore_into_another_server() {
    let Some(test) = postgres().await else { return };
    let store = store(&test).await;
    write(&store, vec![row("before", "t1", 10, None)]).await;
    // As if the server that wrote it had counted much further.
    batch_on(&client(&test).await, "UPDATE model_usage SET place = 9000000000").await;
    let mut after = (9_000_000_000, "before".to_owned());
    for _ in 0..2 {
        store.usage_prepare().await.unwrap();
    }
    write(&store, vec![row("after", "t1", 11, None)]).await;
    assert_eq!(drain_until(&store, &mut after, 1).await, ["after"]);
    assert!(store.usage_settled_below().await.unwrap() > after.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tail_is_read_in_parts() {
    for test in each().await {
        let store = store(&test).await;
        let begun = store.usage_settled_below().await.unwrap();
        assert_eq!(store.usage_tail(begun, 3).await.unwrap().settled_below, begun);
        for at in 0..3 {
            write(&store, vec![row(&format!("c{at}"), "t", at, used(10, Some(1)))]).await;
        }
        let mut whole = store.usage_tail(begun, 9).await.unwrap();
        // Other tests' transactions on a server pass.
        while whole.rows.iter().any(|row| row.place >= whole.settled_below) {
            whole = store.usage_tail(begun, 9).await.unwrap();
        }
        assert_eq!(whole.rows.len(), 3);
        let spend = Spend { calls: 1, reported: 1, priced: 1, tokens: 10, cost_nano_usd: 1 };
        assert!(whole.rows.iter().all(|row| row.spend == spend));
        // The last place of a full part is left for the next.
        let part = store.usage_tail(begun, 2).await.unwrap();
        assert_eq!((part.rows.len(), part.settled_below), (2, whole.rows[1].place));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn budgets_are_replaced_and_each_change_is_counted() {
    for test in each().await {
        let store = store(&test).await;
        let changes = async || store.model_settings().await.unwrap().budget_changes;
        assert_eq!((store.budget_list().await, changes().await), (Ok(vec![]), None));
        let budget = |scope, cost_nano_usd, tokens| Budget { scope, limits: Limits { cost_nano_usd, tokens } };
        let agent = |id| BudgetScope::Agent(AgentId::from_trusted(id), Period::Day);
        let all = [
            budget(BudgetScope::Tenant(Period::Month), Some(5), None),
            budget(agent("a"), None, Some(7)),
            budget(agent("b"), Some(1), Some(2)),
            budget(BudgetScope::Turn, Some(9), None),
        ];
        let turned: Vec<_> = all.iter().rev().cloned().collect();
        store.budget_put_all(&turned, Millis(1)).await.unwrap();
        assert_eq!((store.budget_list().await, changes().await.as_deref()), (Ok(all.to_vec()), Some("1")));
        store.budget_put_all(&[], Millis(2)).await.unwrap();
        assert_eq!((store.budget_list().await, changes().await.as_deref()), (Ok(vec![]), Some("2")));
        store.setting_put(nylorun_store::FIXTURE_MODEL, "true").await.unwrap();
        assert_eq!(store.model_settings().await.unwrap().fixture.as_deref(), Some("true"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_read_of_the_ledger_walks_all_of_it() {
    let test = sqlite().await;
    let reads: Vec<_> = all_sql(Dialect::Sqlite).into_iter().filter(|sql| sql.contains("FROM model_usage")).collect();
    assert_eq!(reads.len(), 12);
    for read in reads {
        let explain: &'static str = Box::leak(format!("EXPLAIN QUERY PLAN {read}").into_boxed_str());
        let given = params!["1", "2", "3", "4", "5"];
        let count = explain.split('$').filter_map(|rest| rest.chars().next()?.to_digit(10)).max().unwrap_or(0);
        // The parameters of an insert are many, and its place is what it reads.
        let params = if read.starts_with("INSERT") { vec![params![1_i64]; 54].concat() } else { given };
        let count =
            if read.starts_with("INSERT") { params.len().min(read.matches('$').count()) } else { count as usize };
        let plan = test.db.query(explain, params[..count].to_vec()).await.unwrap();
        let steps: Vec<_> = plan.iter().map(|row| row.text(3).unwrap().to_owned()).collect();
        let of_ledger: Vec<_> = steps.iter().filter(|step| step.contains("model_usage")).collect();
        assert!(!of_ledger.is_empty(), "{read}: {steps:?}");
        assert!(of_ledger.iter().all(|step| step.starts_with("SEARCH model_usage USING")), "{read}: {steps:?}");
        assert!(!steps.iter().any(|step| step.starts_with("USE TEMP B-TREE")), "{read}: {steps:?}");
    }
}
