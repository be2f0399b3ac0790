//! Crash points end the process exactly where they say. The test runs itself again as a child that is to die.

use std::path::Path;
use std::process::Command;

use nylorun_store::db::{DatabaseUrl, Db, DbOptions};

use crate::db_support::{create_probe, insert, rows};

const PLACE: &str = "NYLORUN_CRASH_TEST_PLACE";
const ROWS: u64 = 3;

/// The child: makes a table and three rows, and says so after each. Does nothing in an ordinary run.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let db = Db::open(&DatabaseUrl::Sqlite(place.into()), &DbOptions::default()).await.unwrap();
    create_probe(&db).await;
    for row in 0..ROWS {
        db.write(vec![insert(&format!("row-{row}"))]).await.unwrap();
        println!("acknowledged");
    }
    println!("writes {}", db.counts().writes);
}

/// What a child said before its end.
fn run_child(place: &Path, crash: &str) -> (bool, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["db_crash::child", "--exact", "--nocapture", "--test-threads=1"])
        .env(PLACE, place)
        .env("NYLORUN_CRASH_POINT", crash)
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_write_can_be_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let (ended, said) = run_child(&folder.path().join("count.db"), "count");
    assert!(ended && said.contains(&format!("writes {}", ROWS + 1)), "{said}");

    for row in 1..=ROWS {
        // The table is the first write.
        let write = row + 1;
        for (place, durable) in [("before", row - 1), ("after", row)] {
            let path = folder.path().join(format!("{write}-{place}.db"));
            let (ended, said) = run_child(&path, &format!("{write}:{place}"));
            assert!(!ended, "{write}:{place} must not end well");
            assert_eq!(said.matches("acknowledged").count() as u64, row - 1, "{write}:{place}");
            let db = Db::open(&DatabaseUrl::Sqlite(path), &DbOptions::default()).await.unwrap();
            assert_eq!(rows(&db).await.len() as u64, durable, "{write}:{place}");
        }
    }
}
