//! Reading what a transcript is folded from, page by page.

use std::sync::Arc;

use nylorun_domain::id::{SessionId, TenantId, TurnId};
use nylorun_domain::time::Millis;
use nylorun_domain::transcript::{Edit, Folding};
use nylorun_store::db::{Db, DbOptions, Statement};
use nylorun_store::{NewTenant, Store, StoreError, params};

use crate::db_support::{TestDb, each};

async fn store(test: &TestDb) -> Store {
    let db = Arc::new(Db::open(&test.url, &DbOptions::default()).await.unwrap());
    let tenant = NewTenant { id: TenantId::from_trusted("tn_1"), name: "t".into(), created_at: Millis(0) };
    Store::open(db, &tenant).await.unwrap()
}

fn event(session: &str, seq: i64, kind: &str, body: String) -> Statement {
    const INSERT: &str = "INSERT INTO events (session_id, seq, type, visibility, body, committed_at) \
         VALUES ($1, $2, $3, 'internal', $4, 0)";
    Statement::any(INSERT, params![session, seq, kind, body])
}

/// The edit of this place, which keeps as many entries as its number says.
fn edit(session: &str, seq: i64) -> Statement {
    let payload = format!(r#"{{"keep":{seq},"entries":[],"length":{seq}}}"#);
    event(session, seq, "transcript.updated", format!(r#"{{"seq":{seq},"turnId":"t","payload":{payload}}}"#))
}

/// What the sink is given from this place on.
async fn given(store: &Store, session: &str, from: i64) -> Vec<Folding> {
    let mut given = Vec::new();
    let take = |folding| {
        given.push(folding);
        Ok::<_, StoreError>(())
    };
    store.event_transcript(&SessionId::from_trusted(session), from, take).await.unwrap();
    given
}

#[tokio::test(flavor = "multi_thread")]
async fn every_edit_comes_once_and_in_order_wherever_pages_end() {
    for test in each().await {
        let store = store(&test).await;
        for count in [0, 1, 127, 128, 129, 256, 257] {
            let session = format!("s{count}");
            // Every other event is none of the transcript's.
            let events = (0..count).flat_map(|at| {
                [edit(&session, 2 * at), event(&session, 2 * at + 1, "turn.completed", "{}".to_owned())]
            });
            test.db.write(events.collect()).await.unwrap();
            let keeps: Vec<usize> = given(&store, &session, 0)
                .await
                .into_iter()
                .map(|folding| match folding {
                    Folding::Edit(_, edit) => edit.keep,
                    Folding::Undo(_) => usize::MAX,
                })
                .collect();
            assert_eq!(keeps, (0..count).map(|at| 2 * usize::try_from(at).unwrap()).collect::<Vec<_>>());
        }
        let end = TurnId::from_trusted("t");
        test.db
            .write(vec![event("s257", 514, "turn.failed", r#"{"a":1,"turnId":"t","payload":{}}"#.into())])
            .await
            .unwrap();
        let last = Folding::Edit(end.clone(), Edit { keep: 512, entries: Vec::new(), length: 512 });
        assert_eq!(given(&store, "s257", 512).await, [last, Folding::Undo(end)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_ends_with_what_cannot_be_read_or_is_not_taken() {
    for test in each().await {
        let store = store(&test).await;
        let broken = event("s", 3, "transcript.updated", r#"{"a":1,"turnId":"t","payload":{}}"#.into());
        test.db.write((0..3).map(|seq| edit("s", seq)).chain([broken]).collect()).await.unwrap();
        let session = SessionId::from_trusted("s");
        let mut taken = 0;
        let take = |_| {
            taken += 1;
            Ok::<_, StoreError>(())
        };
        let read = store.event_transcript(&session, 0, take).await;
        assert!(matches!(read, Err(StoreError::Event(_))), "{read:?}");
        assert_eq!(taken, 3);

        #[derive(Debug, PartialEq)]
        struct Refused(Option<String>);
        impl From<StoreError> for Refused {
            fn from(error: StoreError) -> Self {
                Self(Some(error.to_string()))
            }
        }
        let refuse = |folding| match folding {
            Folding::Edit(_, Edit { keep: 1, .. }) => Err(Refused(None)),
            Folding::Edit(..) | Folding::Undo(_) => Ok(()),
        };
        assert_eq!(store.event_transcript(&session, 0, refuse).await, Err(Refused(None)));
    }
}
