//! What a write promises, on every engine.

use std::sync::Arc;

use nylorun_store::db::{DbError, Fault, Statement, Val, WriteError};
use nylorun_store::params;

use crate::db_support::{REVISION, advance, create_probe, each, insert, rows};

fn pairs(expected: &[(&str, i64)]) -> Vec<(String, i64)> {
    expected.iter().map(|(id, revision)| ((*id).to_owned(), *revision)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_whole_or_nothing() {
    for test in each().await {
        create_probe(&test.db).await;
        test.db.write(vec![insert("a"), advance("a", 0), insert("b")]).await.unwrap();
        assert_eq!(rows(&test.db).await, pairs(&[("a", 1), ("b", 0)]));

        let stale = test.db.write(vec![insert("c"), advance("a", 0), insert("d")]).await;
        assert_eq!(stale, Err(WriteError::Guard(REVISION)));
        assert_eq!(rows(&test.db).await, pairs(&[("a", 1), ("b", 0)]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_failure_decides_the_error() {
    for test in each().await {
        create_probe(&test.db).await;
        test.db.write(vec![insert("a")]).await.unwrap();
        let guard_first = test.db.write(vec![advance("a", 9), insert("a")]).await;
        assert_eq!(guard_first, Err(WriteError::Guard(REVISION)));
        let duplicate_first = test.db.write(vec![insert("a"), advance("a", 9)]).await;
        assert!(matches!(duplicate_first, Err(WriteError::Duplicate { ref table, .. }) if table == "probe"));
        let broken = test.db.write(vec![Statement::any("UPDATE nowhere SET x = $1", params![1i64])]).await;
        assert!(matches!(broken, Err(WriteError::Db(DbError::Statement { .. }))), "{broken:?}");
        test.db.write(vec![advance("a", 0)]).await.unwrap();
        assert_eq!(rows(&test.db).await, pairs(&[("a", 1)]));
    }
}

/// What a caller may do about a failure: what is refused for good is known from what was only not possible now.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_for_good_is_said() {
    for test in each().await {
        create_probe(&test.db).await;
        let values: &[(&'static str, Vec<Val>)] = &[
            ("UPDATE probe SETS revision = $1", params![1i64]),
            ("INSERT INTO probe (id, revision) VALUES ($1, $2)", params!["a", Val::Null]),
            ("INSERT INTO probe (id, revision) VALUES ($1, $2)", params!["a\0b", 1i64]),
            ("INSERT INTO probe (id, revision) VALUES ($1, $2)", params!["a"]),
        ];
        for (sql, params) in values {
            let refused = test.db.write(vec![Statement::any(*sql, params.clone())]).await.unwrap_err();
            assert_eq!(refused.fault(), Some(Fault::ForGood), "{refused}");
            assert!(test.db.takes_writes());
        }
        // Somebody may put back what is missing.
        for sql in ["UPDATE nowhere SET revision = $1", "UPDATE probe SET missing = $1"] {
            let missing = test.db.write(vec![Statement::any(sql, params![1i64])]).await.unwrap_err();
            assert_eq!(missing.fault(), Some(Fault::Passing), "{missing}");
        }
        let guard = test.db.write(vec![advance("a", 9)]).await.unwrap_err();
        assert_eq!(guard.fault(), None);
        test.db.close().await;
        let closed = test.db.write(vec![insert("a")]).await.unwrap_err();
        assert_eq!(closed.fault(), Some(Fault::Passing), "{closed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_hold_what_was_committed() {
    for test in each().await {
        create_probe(&test.db).await;
        let before = test.db.counts();
        test.db.write(vec![insert("a"), advance("a", 0)]).await.unwrap();
        test.db.write(vec![advance("a", 0)]).await.unwrap_err();
        test.db.write(vec![]).await.unwrap();
        test.db.query("SELECT 1", vec![]).await.unwrap();
        let after = test.db.counts();
        assert_eq!(after.writes - before.writes, 2);
        assert_eq!(after.commits - before.commits, 1);
        assert_eq!(after.statements - before.statements, 2);
        assert_eq!(after.transactions - before.transactions, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_back_as_they_went_in() {
    let texts = [
        "",
        "a\tb\r\n\u{7f}\u{1}",
        "é ü 漢字 😀 \u{200b}\u{feff}",
        "\u{fffd}\u{ffff}\u{10ffff}",
        "'\"\\$1 -- ;",
        "\\u0000",
    ];
    for test in each().await {
        create_probe(&test.db).await;
        let bytes: Vec<u8> = (0..=255).collect();
        for (number, text) in texts.iter().enumerate() {
            let number = if number == 0 { i64::MIN } else { i64::MAX - number as i64 };
            let sql = "INSERT INTO probe (id, revision, body) VALUES ($2, $3, $1)";
            test.db.write(vec![Statement::any(sql, params![bytes.as_slice(), *text, number])]).await.unwrap();
            let found =
                test.db.query("SELECT id, revision, body FROM probe WHERE id = $1", params![*text]).await.unwrap();
            let [row] = found.as_slice() else { panic!("{text:?}: {found:?}") };
            assert_eq!((row.text(0), row.int(1), row.blob(2)), (Ok(*text), Ok(number), Ok(bytes.as_slice())));
        }
        let nothing =
            Statement::any("INSERT INTO probe (id, revision, body) VALUES ($1, $2, $3)", params!["n", 1i64, Val::Null]);
        test.db.write(vec![nothing]).await.unwrap();
        let found = test.db.query("SELECT body FROM probe WHERE id = $1", params!["n"]).await.unwrap();
        assert_eq!(found[0].opt_blob(0), Ok(None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_engines_refuse_the_same_values() {
    for test in each().await {
        create_probe(&test.db).await;
        let nul = DbError::NulInText { parameter: 2 };
        let insert = Statement::any("INSERT INTO probe (revision, id) VALUES ($1, $2)", params![1i64, "a\0b"]);
        assert_eq!(test.db.write(vec![insert]).await, Err(WriteError::Db(nul.clone())));
        assert_eq!(test.db.query("SELECT $1, $2", params!["a", "\0"]).await, Err(nul));
        let sql = "SELECT id FROM probe WHERE id = $1 AND revision = $2";
        let few = test.db.query(sql, params!["a"]).await;
        assert_eq!(few, Err(DbError::Parameters { sql: sql.into(), wanted: 2, given: 1 }));
        let many = test.db.query(sql, params!["a", 1i64, 2i64]).await;
        assert_eq!(many, Err(DbError::Parameters { sql: sql.into(), wanted: 2, given: 3 }));
        assert_eq!(rows(&test.db).await, vec![]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prepare_all_finds_what_an_engine_refuses() {
    for test in each().await {
        create_probe(&test.db).await;
        let good =
            ["SELECT id, revision, body FROM probe WHERE id = $1 LIMIT $2", "DELETE FROM probe WHERE revision < $1"];
        assert_eq!(test.db.prepare_all(&good).await, vec![]);
        let bad = ["SELECT nothing FROM probe", "SELECT id FROM probe", "INSERT INTO probe VALUS ($1)"];
        let refused: Vec<String> = test.db.prepare_all(&bad).await.into_iter().map(|(sql, _)| sql).collect();
        assert_eq!(refused, vec![bad[0].to_owned(), bad[2].to_owned()]);
    }
}

/// Many writers count one row up, each only from the revision that it has read: none may be lost, none doubled.
#[tokio::test(flavor = "multi_thread")]
async fn guarded_counters_lose_no_update() {
    const WRITERS: i64 = 16;
    const ROUNDS: i64 = 12;
    for test in each().await {
        create_probe(&test.db).await;
        test.db.write(vec![insert("counter")]).await.unwrap();
        let db = Arc::new(test.db);
        let writers = (0..WRITERS).map(|writer| tokio::spawn(count_up(Arc::clone(&db), writer, ROUNDS)));
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
        }
        let found = rows(&db).await;
        assert_eq!(found.len() as i64, WRITERS * ROUNDS + 1);
        assert_eq!(found.iter().find(|(id, _)| id == "counter").unwrap().1, WRITERS * ROUNDS);
    }
}

async fn count_up(db: Arc<nylorun_store::db::Db>, writer: i64, rounds: i64) {
    let mut done = 0;
    while done < rounds {
        let found = db.query("SELECT revision FROM probe WHERE id = $1", params!["counter"]).await.unwrap();
        let revision = found[0].int(0).unwrap();
        let mark = insert(&format!("{writer}-{done}-{revision}"));
        match db.write(vec![mark, advance("counter", revision)]).await {
            Ok(()) => {
                done += 1;
                let seen = db.query("SELECT revision FROM probe WHERE id = $1", params!["counter"]).await.unwrap();
                assert!(seen[0].int(0).unwrap() > revision, "a caller must see its own write");
            }
            Err(WriteError::Guard(guard)) => assert_eq!(guard, REVISION),
            Err(error) => panic!("{error}"),
        }
    }
}
