//! The two dialects of the schema say the same, and every statement of this crate can be prepared on both.

use std::collections::BTreeSet;

use nylorun_store::all_sql;
use nylorun_store::db::{Db, Row};

use crate::db_support::{each, postgres, sqlite};

const SQLITE_COLUMNS: &str = "SELECT t.name, c.name, c.type, 1 - c.\"notnull\", c.pk, c.dflt_value \
     FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
const SQLITE_INDEXES: &str = "SELECT t.name, i.name, i.\"unique\", i.partial, c.seqno, c.name, c.\"desc\" \
     FROM sqlite_schema t JOIN pragma_index_list(t.name) i JOIN pragma_index_xinfo(i.name) c \
     WHERE t.type = 'table' AND i.origin <> 'pk' AND c.key = 1 ORDER BY t.name, i.name, c.seqno";
const SQLITE_FOREIGN: &str = "SELECT t.name, f.\"from\", f.\"table\", f.\"to\", lower(f.on_delete) \
     FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) f WHERE t.type = 'table'";

const POSTGRES_COLUMNS: &str = "SELECT t.relname, a.attname, format_type(a.atttypid, a.atttypmod), \
     CASE WHEN a.attnotnull THEN 0 ELSE 1 END, COALESCE(array_position(p.conkey, a.attnum), 0), \
     pg_get_expr(d.adbin, d.adrelid) FROM pg_class t \
     JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped \
     LEFT JOIN pg_constraint p ON p.conrelid = t.oid AND p.contype = 'p' \
     LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum \
     WHERE t.relkind = 'r' AND t.relnamespace = 'public'::regnamespace";
const POSTGRES_INDEXES: &str = "SELECT t.relname, x.relname, CASE WHEN i.indisunique THEN 1 ELSE 0 END, \
     CASE WHEN i.indpred IS NULL THEN 0 ELSE 1 END, k.place, a.attname, i.indoption[k.place - 1] & 1 FROM pg_index i \
     JOIN pg_class t ON t.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid \
     JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place) ON true \
     JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum \
     WHERE t.relnamespace = 'public'::regnamespace AND NOT i.indisprimary ORDER BY t.relname, x.relname, k.place";
const POSTGRES_FOREIGN: &str = "SELECT t.relname, a.attname, r.relname, b.attname, \
     CASE f.confdeltype WHEN 'a' THEN 'no action' WHEN 'r' THEN 'restrict' WHEN 'c' THEN 'cascade' \
     WHEN 'n' THEN 'set null' ELSE 'set default' END FROM pg_constraint f \
     JOIN pg_class t ON t.oid = f.conrelid JOIN pg_class r ON r.oid = f.confrelid \
     JOIN LATERAL unnest(f.conkey, f.confkey) AS k(own, other) ON true \
     JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.own \
     JOIN pg_attribute b ON b.attrelid = r.oid AND b.attnum = k.other \
     WHERE f.contype = 'f' AND t.relnamespace = 'public'::regnamespace";

#[tokio::test(flavor = "multi_thread")]
async fn both_schemas_are_the_same() {
    let sqlite = sqlite().await;
    let ours = schema(&sqlite.db, SQLITE_COLUMNS, SQLITE_INDEXES, SQLITE_FOREIGN).await;
    for line in ours.iter().filter(|line| line.starts_with("column ")) {
        let plain = ["TEXT", "BIGINT", "BLOB"].iter().any(|kind| line.contains(&format!(": {kind},")));
        assert!(plain, "only plain types: {line}");
    }
    assert!(ours.iter().any(|line| line.starts_with("column settings.key: TEXT, not null, key 1")), "{ours:#?}");
    let Some(postgres) = postgres().await else { return };
    let theirs = schema(&postgres.db, POSTGRES_COLUMNS, POSTGRES_INDEXES, POSTGRES_FOREIGN).await;
    let only =
        |these: &BTreeSet<String>, those: &BTreeSet<String>| these.difference(those).cloned().collect::<Vec<_>>();
    assert_eq!((only(&ours, &theirs), only(&theirs, &ours)), (vec![], vec![]), "only SQLite, only PostgreSQL");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_can_be_prepared() {
    for test in each().await {
        let statements = all_sql(test.db.dialect());
        assert_eq!(test.db.prepare_all(&statements).await, vec![]);
    }
}

/// A schema as sorted lines that do not depend on the engine.
async fn schema(db: &Db, columns: &'static str, indexes: &'static str, foreign: &'static str) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    lines.extend(db.query(columns, vec![]).await.unwrap().iter().map(column));
    lines.extend(index_lines(&db.query(indexes, vec![]).await.unwrap()));
    lines.extend(db.query(foreign, vec![]).await.unwrap().iter().map(foreign_key));
    lines
}

fn column(row: &Row) -> String {
    let kind = match row.text(2).unwrap() {
        "bytea" => "BLOB".to_owned(),
        other => other.to_uppercase(),
    };
    let null = if row.int(3).unwrap() == 1 { "null" } else { "not null" };
    // PostgreSQL shows `'x'::text` for `'x'` and quotes some numbers with a cast.
    let default = row.opt_text(5).unwrap().map(|text| text.split("::").next().unwrap().trim_matches('\'').to_owned());
    let (table, name, key) = (row.text(0).unwrap(), row.text(1).unwrap(), row.int(4).unwrap());
    format!("column {table}.{name}: {kind}, {null}, key {key}, default {default:?}")
}

/// One line an index; the columns' rows of one index follow each other.
fn index_lines(rows: &[Row]) -> Vec<String> {
    let name = |row: &Row| (row.text(0).unwrap().to_owned(), row.text(1).unwrap().to_owned());
    rows.chunk_by(|one, next| name(one) == name(next))
        .map(|index| {
            let first = &index[0];
            let part = |row: &Row| {
                let direction = if row.int(6).unwrap() == 1 { " desc" } else { "" };
                format!("{}{direction}", row.opt_text(5).unwrap().unwrap_or("(expression)"))
            };
            let parts: Vec<String> = index.iter().map(part).collect();
            // The names of indexes that come from UNIQUE in a table differ, so names are left out.
            let (unique, partial) = (first.int(2).unwrap(), first.int(3).unwrap());
            format!("index {}({}) unique {unique} partial {partial}", first.text(0).unwrap(), parts.join(", "))
        })
        .collect()
}

fn foreign_key(row: &Row) -> String {
    let text = |index| row.text(index).unwrap();
    format!("foreign {}.{} -> {}.{} {}", text(0), text(1), text(2), text(3), text(4))
}
