//! Lists of sessions: pages that together are the whole list, each by an index and with a bounded number of rows.

use std::sync::Arc;

use nylorun_domain::id::{AgentId, TenantId, UserId};
use nylorun_domain::session::Status;
use nylorun_domain::time::Millis;
use nylorun_store::db::{Db, DbOptions, Dialect, Statement};
use nylorun_store::{Effects, ListedSession, NewTenant, SessionFilter, Store, all_sql, params};

use crate::db_support::{TestDb, each, sqlite};

/// Session `i` of `$1`: three share each millisecond; every second one is of agent `a`, every third of person `u`; the
/// statuses follow each other, but from the `$2`th on all have completed.
const FILL: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) \
     INSERT INTO sessions (id, agent_id, owner_user_id, definition_hash, manifest_hash, implementation_version, \
     identity_hash, vault_ids, credential_selections, created_at, status, segment, history_from, epoch, head, rev) \
     SELECT 's' || i, CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END, CASE i % 3 WHEN 0 THEN 'u' ELSE 'v' END, '', '', '', \
     '', '[]', '[]', i / 3, CASE WHEN i >= $2 THEN 'completed' WHEN i % 9 = 0 THEN 'idle' \
     WHEN i % 9 = 1 THEN 'runnable' WHEN i % 9 = 2 THEN 'running' WHEN i % 9 = 3 THEN 'waiting' \
     WHEN i % 9 = 4 THEN 'paused' WHEN i % 9 = 5 THEN 'uncertain' WHEN i % 9 = 6 THEN 'completed' \
     WHEN i % 9 = 7 THEN 'failed' ELSE 'cancelled' END, 0, 0, 0, 0, 0 FROM n";

/// Two effects of every second session: those of every fourth one before the `$2`th are uncertain.
const FILL_EFFECTS: &str = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 2 FROM n WHERE i < $1 - 1) \
     INSERT INTO effects (session_id, id, turn_id, segment, kind, invocation_id, request_hash, status) \
     SELECT 's' || i, 'e' || k, 't', 0, 'tool', 'v', '', \
     CASE WHEN i % 4 = 0 AND i < $2 THEN 'uncertain' ELSE 'completed' END \
     FROM n, (SELECT 1 AS k UNION ALL SELECT 2) AS two";

/// Whether [`FILL_EFFECTS`] leaves a session in doubt.
fn is_in_doubt(session: &ListedSession, completed_from: i64) -> bool {
    let number: i64 = session.id.as_str()[1..].parse().unwrap();
    number % 4 == 0 && number < completed_from
}

async fn filled(test: &TestDb, sessions: i64, completed_from: i64) -> Store {
    let db = Arc::new(Db::open(&test.url, &DbOptions::default()).await.unwrap());
    let numbers = params![sessions, completed_from];
    db.write(vec![Statement::any(FILL, numbers.clone()), Statement::any(FILL_EFFECTS, numbers)]).await.unwrap();
    let fresh = NewTenant { id: TenantId::from_trusted("tn_1"), name: "t".to_owned(), created_at: Millis(0) };
    Store::open(db, &fresh).await.unwrap()
}

/// The pages of a list, from first to last.
async fn pages(store: &Store, filter: &SessionFilter, limit: usize) -> Vec<Vec<ListedSession>> {
    let mut pages = Vec::new();
    let mut place = None;
    loop {
        let page = store.session_page(filter, place.as_ref(), limit).await.unwrap();
        assert!(page.sessions.len() <= limit);
        pages.push(page.sessions);
        match page.next {
            Some(next) => place = Some(next),
            None => return pages,
        }
    }
}

/// Each status or any, with each agent or any, and so on.
fn filters() -> Vec<SessionFilter> {
    let mut filters = Vec::new();
    for status in Status::ALL.iter().copied().map(Some).chain([None]) {
        for agent in [None, Some("a"), Some("none")] {
            for owner in [None, Some("u")] {
                for effects in [Effects::Any, Effects::Uncertain] {
                    let (agent, owner) = (agent.map(AgentId::from_trusted), owner.map(UserId::from_trusted));
                    filters.push(SessionFilter { agent, owner, status, effects });
                }
            }
        }
    }
    filters
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_the_list_whatever_the_filter() {
    for test in each().await {
        let store = filled(&test, 100, 90).await;
        let everything = store.session_list(&SessionFilter::default()).await.unwrap();
        assert_eq!(everything.len(), 100);
        let place = |session: &ListedSession| (session.created_at.0, session.id.as_str().to_owned());
        assert!(everything.is_sorted_by(|one, next| place(one) > place(next)));
        for filter in filters() {
            let wanted = |session: &&ListedSession| {
                filter.status.is_none_or(|status| status == session.status)
                    && filter.agent.as_ref().is_none_or(|agent| *agent == session.agent_id)
                    && filter.owner.as_ref().is_none_or(|owner| *owner == session.owner_user_id)
                    && (filter.effects == Effects::Any || is_in_doubt(session, 90))
            };
            let expected: Vec<_> = everything.iter().filter(wanted).cloned().collect();
            assert_eq!(store.session_list(&filter).await.unwrap(), expected, "{filter:?}");
            for limit in [1, 7, 200] {
                let pages = pages(&store, &filter, limit).await;
                assert_eq!(pages.len(), expected.len().div_ceil(limit).max(1), "{filter:?}");
                assert_eq!(pages.concat(), expected, "{filter:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_looks_at_few_rows_and_is_short_instead() {
    for test in each().await {
        let store = filled(&test, 2_500, 10).await;
        let idle = SessionFilter { status: Some(Status::Idle), ..SessionFilter::default() };
        let found = pages(&store, &idle, 5).await;
        let ids: Vec<Vec<_>> =
            found.iter().map(|page| page.iter().map(|session| session.id.as_str()).collect()).collect();
        assert_eq!(ids, [vec![], vec![], vec!["s9"]]);
        // What an index knows is found at once, however old it is.
        for status in [Status::Failed, Status::Paused, Status::Running] {
            let filter = SessionFilter { status: Some(status), ..SessionFilter::default() };
            assert_eq!(pages(&store, &filter, 5).await.concat().len(), 1, "{status:?}");
            assert_eq!(pages(&store, &filter, 5).await.len(), 1, "{status:?}");
        }
        let in_doubt = SessionFilter { effects: Effects::Uncertain, ..SessionFilter::default() };
        let found = pages(&store, &in_doubt, 5).await;
        let ids: Vec<Vec<_>> =
            found.iter().map(|page| page.iter().map(|session| session.id.as_str()).collect()).collect();
        assert_eq!(ids, [["s8", "s4"]]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_walks_an_index() {
    let test = sqlite().await;
    filled(&test, 1_000, 500).await;
    let lists: Vec<_> =
        all_sql(Dialect::Sqlite).into_iter().filter(|sql| sql.contains("FROM sessions WHERE (created_at")).collect();
    assert_eq!(lists.len(), 9);
    for list in lists {
        let explain: &'static str = Box::leak(format!("EXPLAIN QUERY PLAN {list}").into_boxed_str());
        let params = params![i64::MAX, "", 50_i64, "failed", "a"];
        let count = explain.split('$').filter_map(|rest| rest.chars().next()?.to_digit(10)).max().unwrap();
        let plan = test.db.query(explain, params[..count as usize].to_vec()).await.unwrap();
        let steps: Vec<_> = plan.iter().map(|row| row.text(3).unwrap().to_owned()).collect();
        assert!(steps[0].starts_with("SEARCH sessions USING"), "{list}: {steps:?}");
        // Those that are live are few, and so are those in doubt: they are sorted.
        let sorted = steps.iter().any(|step| step.starts_with("USE TEMP B-TREE"));
        let (live, in_doubt) = (list.contains("'runnable'"), list.contains("FROM effects"));
        assert_eq!(sorted, live || in_doubt, "{list}: {steps:?}");
        assert_eq!(live, steps[0].contains("sessions_live"), "{list}: {steps:?}");
        let by_doubt = steps[0].ends_with("USING PRIMARY KEY (id=?)")
            && steps.iter().any(|step| step.ends_with("effects USING COVERING INDEX effects_uncertain"));
        assert_eq!(in_doubt, by_doubt, "{list}: {steps:?}");
    }
}
