//! What a turn, a page, a follower or a sweep asks the database is found along an index: no time grows with what is
//! stored. The exceptions have a reason each.

use nylorun_store::all_sql;
use nylorun_store::db::{Dialect, Statement};
use nylorun_store::params;

use crate::db_support::{TestDb, client, postgres, sqlite};

/// Statements, by how they begin, that may read a whole table or index, each with why that is no harm.
const WHOLE: &[(&str, &str)] = &[
    ("SELECT count(*)", "the operator's status asks it, no turn"),
    ("DELETE FROM workers WHERE heartbeat_at <", "one row a process"),
    ("SELECT id, role, token_hash, created_at FROM principals ORDER BY", "the operator's list of keys"),
    ("SELECT a.id, a.manifest_hash,", "the list of agents is all of them"),
    ("UPDATE model_providers SET is_active = 0", "one row a provider"),
    ("SELECT provider, model, base_url,", "one row a provider"),
    ("SELECT session_id, id, tool, subject, worker, began_at FROM direct_calls ORDER BY", "only calls that run"),
    (
        "SELECT key, session_id, environment_id, backend, image, state, created_at, updated_at FROM workspaces ORDER",
        "the sweep's look at all workspaces, once a minute at most",
    ),
    (
        "SELECT scope, scope_id, period, limit_nano_usd, limit_tokens FROM model_budgets",
        "at most 100, when they changed",
    ),
    ("DELETE FROM model_budgets", "at most 100, when the operator replaces them"),
    ("DELETE FROM tool_crossings WHERE NOT EXISTS", "a reset of the tenant asks it, no turn"),
    ("SELECT DISTINCT session_id FROM wakes", "the outbox: only sessions that are to be advanced"),
    ("SELECT id FROM sessions WHERE status IN ('runnable', 'running')", "a partial index: only sessions with a turn"),
];

/// Lists for which few rows are sorted: those of partial indexes that hold few.
fn is_list_of_few(sql: &str) -> bool {
    sql.contains("FROM sessions WHERE (created_at") && (sql.contains("'runnable'") || sql.contains("FROM effects"))
}

fn may_read_all(sql: &str) -> bool {
    WHOLE.iter().any(|(begin, _)| sql.starts_with(begin)) || is_list_of_few(sql)
}

/// So many sessions with so many events each that no planner reads a table whole because it is small.
async fn fill(test: &TestDb) {
    const SESSIONS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) \
         INSERT INTO sessions (id, agent_id, owner_user_id, definition_hash, manifest_hash, implementation_version, \
         identity_hash, vault_ids, credential_selections, created_at, status, segment, history_from, epoch, head, rev) \
         SELECT 's' || i, 'a', 'u' || (i % 50), '', '', '', '', '[]', '[]', i, 'completed', 0, 0, 0, 20, 0 FROM n";
    const EVENTS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1), \
         m(j) AS (SELECT 0 UNION ALL SELECT j + 1 FROM m WHERE j < 19) \
         INSERT INTO events (session_id, seq, type, visibility, body, committed_at) SELECT 's' || i, j, \
         CASE j % 4 WHEN 2 THEN 'transcript.updated' ELSE 'turn.completed' END, 'public', '{}', j FROM n, m";
    let numbers = || params![1_000_i64];
    test.db.write(vec![Statement::any(SESSIONS, numbers()), Statement::any(EVENTS, numbers())]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite_every_statement_searches() {
    let test = sqlite().await;
    fill(&test).await;
    let mut whole = Vec::new();
    for sql in all_sql(Dialect::Sqlite) {
        let explain: &'static str = Box::leak(format!("EXPLAIN QUERY PLAN {sql}").into_boxed_str());
        let count = explain.split('$').skip(1).filter_map(number).max().unwrap_or(0);
        let plan = test.db.query(explain, vec![None::<i64>.into(); count]).await.unwrap();
        let steps: Vec<_> = plan.iter().map(|row| row.text(3).unwrap().to_owned()).collect();
        // The rows of an insert are a scan too: of what was given.
        let is_given = |step: &str| step.contains("CONSTANT ROW") || step.contains("VALUES CLAUSE");
        let scans = |step: &&String| step.starts_with("SCAN ") && !is_given(step);
        if let Some(step) = steps.iter().find(scans)
            && !may_read_all(&sql)
        {
            whole.push(format!("{step}: {sql}"));
        }
    }
    assert!(whole.is_empty(), "{whole:#?}");
}

/// The number with which a text begins.
fn number(text: &str) -> Option<usize> {
    text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_every_statement_searches() {
    let Some(test) = postgres().await else { return };
    fill(&test).await;
    let client = client(&test).await;
    // A table without rows is read whole whatever its indexes are: that it can be avoided is what matters.
    client.batch_execute("ANALYZE; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan").await.unwrap();
    let mut whole = Vec::new();
    for (at, sql) in all_sql(Dialect::Postgres).into_iter().enumerate() {
        client.batch_execute(&format!("PREPARE s{at} AS {sql}")).await.unwrap();
        let count = sql.split('$').skip(1).filter_map(number).max().unwrap_or(0);
        let nulls = vec!["NULL"; count].join(", ");
        let arguments = if count == 0 { String::new() } else { format!("({nulls})") };
        let rows = client.simple_query(&format!("EXPLAIN (COSTS OFF) EXECUTE s{at}{arguments}")).await.unwrap();
        let lines: Vec<String> = rows
            .iter()
            .filter_map(|row| match row {
                tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            })
            .collect();
        if let Some(step) = whole_read(&lines)
            && !may_read_all(&sql)
        {
            whole.push(format!("{step}: {sql}"));
        }
    }
    assert!(whole.is_empty(), "{whole:#?}");
}

/// The first step that reads a whole table, or a whole index: one without a condition on it.
fn whole_read(plan: &[String]) -> Option<&str> {
    let is_step = |line: &str| line.trim_start().starts_with("->") || !line.starts_with(' ');
    plan.iter().enumerate().find_map(|(at, line)| {
        let conditions = plan[at + 1..].iter().take_while(|line| !is_step(line));
        let is_search = conditions.into_iter().any(|line| line.trim_start().starts_with("Index Cond:"));
        let reads_index = line.contains("Index Scan") || line.contains("Index Only Scan");
        (line.contains("Seq Scan") || reads_index && !is_search).then_some(line.as_str())
    })
}
