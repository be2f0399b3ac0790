//! Multi-row inserts: one statement for all rows of a kind that a change adds.

use std::borrow::Cow;

use crate::db::{Statement, Val};

/// What a model, a provider or a person said, for a column of plain text: neither database keeps a NUL in one. Where it
/// has to come back as it was, it stands in a JSON document, escaped.
pub(crate) fn plain(text: Option<&str>) -> Val {
    Val::from(text.map(|text| text.replace('\0', "\u{FFFD}")))
}

/// Most rows of one statement: SQLite and PostgreSQL both bind at most 32,767 parameters.
const MAX_PARAMS: usize = 30_000;

/// Inserts `rows`, all of `columns` values, after `head` (`INSERT INTO t (…) VALUES`). Usually one statement.
pub(crate) fn insert_rows(head: &str, columns: usize, rows: Vec<Vec<Val>>) -> Vec<Statement> {
    insert_rows_with(head, columns, rows, None)
}

/// The same; each row ends with the expression `last`, which is not bound, when there is one.
pub(crate) fn insert_rows_with(
    head: &str,
    columns: usize,
    rows: Vec<Vec<Val>>,
    last: Option<&'static str>,
) -> Vec<Statement> {
    let per_statement = (MAX_PARAMS / columns).max(1);
    let mut statements = Vec::with_capacity(1);
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let batch: Vec<Vec<Val>> = rows.by_ref().take(per_statement).collect();
        let sql = values_sql_with(head, columns, batch.len(), last);
        statements.push(Statement::any(Cow::Owned(sql), batch.into_iter().flatten().collect()));
    }
    statements
}

/// The text of an insert of `count` rows.
pub(crate) fn values_sql(head: &str, columns: usize, count: usize) -> String {
    values_sql_with(head, columns, count, None)
}

/// The same; each row ends with the expression `last`, when there is one.
pub(crate) fn values_sql_with(head: &str, columns: usize, count: usize, last: Option<&'static str>) -> String {
    let mut sql = String::with_capacity(head.len() + count * columns * 5);
    sql.push_str(head);
    for row in 0..count {
        sql.push_str(if row == 0 { " (" } else { ", (" });
        for column in 0..columns {
            if column > 0 {
                sql.push_str(", ");
            }
            sql.push('$');
            sql.push_str(&(row * columns + column + 1).to_string());
        }
        if let Some(last) = last {
            sql.push_str(", ");
            sql.push_str(last);
        }
        sql.push(')');
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::{insert_rows, values_sql, values_sql_with};
    use crate::params;

    #[test]
    fn numbers_parameters_row_by_row() {
        assert_eq!(values_sql("INSERT INTO t (a, b) VALUES", 2, 2), "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4)");
        let counted = "INSERT INTO t (a, b) VALUES ($1, now()), ($2, now())";
        assert_eq!(values_sql_with("INSERT INTO t (a, b) VALUES", 1, 2, Some("now()")), counted);
    }

    #[test]
    fn splits_what_one_statement_cannot_bind() {
        let rows = vec![params![1_i64, 2_i64]; 15_001];
        let statements = insert_rows("INSERT INTO t (a, b) VALUES", 2, rows);
        let counts: Vec<usize> = statements.iter().map(|statement| statement.params.len()).collect();
        assert_eq!(counts, [30_000, 2]);
    }

    #[test]
    fn nothing_to_insert_is_no_statement() {
        assert_eq!(insert_rows("INSERT INTO t (a) VALUES", 1, Vec::new()), Vec::new());
    }
}
