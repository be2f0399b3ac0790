//! Pages of lists whose database cannot be read, on the real binary (api 1.8): a code of their own, and no other
//! route's.

use nylorun_client::OpenSession;
use nylorun_store::db::{Db, Statement};
use serde_json::Value;

use crate::database;
use crate::drill;
use crate::raw::send;
use crate::refusals::open;
use crate::server::{Server, Setup};

const PAGES: [(&str, &str); 3] = [
    ("applicationKey", "/v1/sessions?limit=5"),
    ("applicationKey", "/v1/sessions/s/calls/model"),
    ("managementKey", "/v1/tenant/calls/model?limit=5"),
];
const OTHERS: [(&str, &str); 5] = [
    ("applicationKey", "/v1/sessions"),
    ("applicationKey", "/v1/sessions/s"),
    ("applicationKey", "/v1/sessions/s/items?limit=5"),
    ("applicationKey", "/v1/sessions/s/usage"),
    ("managementKey", "/v1/tenant/usage"),
];

async fn rename(db: &Db, table: &str, name: &str) {
    let sql = include_str!("../sql/rename.sql").replace("{table}", table).replace("{name}", name);
    db.write(vec![Statement::any(sql, Vec::new())]).await.expect("an operator may do so");
}

/// The status of a GET, and the code of a refusal.
fn get(server: &Server, (key, target): (&str, &str)) -> (u16, Option<String>) {
    let bearer = format!("Bearer {}", server.key_text(key));
    let answer = send(&server.url, "GET", target, &[("Nylorun-Protocol", "10"), ("Authorization", &bearer)], None);
    let body: Value = serde_json::from_str(&answer.body).expect("it is JSON");
    (answer.status, body["code"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn a_page_that_cannot_be_read_says_so_with_a_code_of_its_own() {
    for database in database::each("unreadable_pages").await {
        let home = tempfile::tempdir().expect("a folder can be made");
        let server = database.setup(Setup::new(home.path())).start();
        drill::prepare(&server).await.expect("it can be prepared");
        server.client().open_session("s", &OpenSession::new(drill::AGENT, "me")).await.expect("it can be opened");
        let db = open(&database, home.path()).await;
        let [sessions, calls, export] = PAGES;
        let [all, session, items, usage, spent] = OTHERS;
        let fails: [(&str, &[_], &[_]); 3] = [
            ("sessions", &[sessions, calls], &[all, session, items, usage]),
            ("model_usage", &[calls, export], &[usage, spent]),
            // Not even who asks can be read.
            ("principals", &PAGES, &OTHERS),
        ];
        for (table, pages, others) in fails {
            rename(&db, table, "elsewhere").await;
            for page in pages {
                let code = Some("reads_unavailable".to_owned());
                assert_eq!(get(&server, *page), (503, code), "{database:?} {table} {page:?}");
            }
            for other in others {
                let code = Some("request_rejected".to_owned());
                assert_eq!(get(&server, *other), (503, code), "{database:?} {table} {other:?}");
            }
            rename(&db, "elsewhere", table).await;
            for answered in PAGES.into_iter().chain(OTHERS) {
                assert_eq!(get(&server, answered), (200, None), "{database:?} {table} {answered:?}");
            }
        }
        db.close().await;
        assert!(server.stop().success());
    }
}
