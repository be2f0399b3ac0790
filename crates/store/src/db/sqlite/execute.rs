//! Statements on one SQLite connection: binding, running, and turning its errors into ours.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, ffi};

use crate::db::Prepared;
use crate::db::error::{DbError, Fault, WriteError};
use crate::db::statement::Statement;
use crate::db::value::{Columns, Row, Val};

impl ToSql for Val {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Runs a SELECT and gives all of its rows.
pub(super) fn query(connection: &Connection, sql: &str, params: &[Val]) -> Result<Vec<Row>, DbError> {
    let failed = |error: rusqlite::Error| failure(sql, &error);
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    bind(&mut statement, sql, params)?;
    let columns: Columns = statement.column_names().map(Box::from).collect();
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let mut values = Vec::with_capacity(columns.len());
        for index in 0..columns.len() {
            values.push(value(row.get_ref(index).map_err(failed)?, &columns, index)?);
        }
        found.push(Row::new(Columns::clone(&columns), values));
    }
    Ok(found)
}

/// Runs one statement of a write and gives the number of rows that it changed.
pub(super) fn change(connection: &Connection, statement: &Statement) -> Result<u64, WriteError> {
    let sql = statement.sql.as_ref();
    let mut prepared = connection.prepare_cached(sql).map_err(|error| failure(sql, &error))?;
    bind(&mut prepared, sql, &statement.params)?;
    let changed = prepared.raw_execute().map_err(|error| write_failure(sql, &error))?;
    Ok(changed as u64)
}

/// Prepares a statement without running it.
pub(super) fn prepare(connection: &Connection, sql: &str) -> Result<Prepared, DbError> {
    let statement = connection.prepare(sql).map_err(|error| failure(sql, &error))?;
    Ok(Prepared { params: placeholders(&statement, sql)?.into_iter().max().unwrap_or(0) })
}

/// The error of one step, with SQLite's extended code.
pub(crate) fn failure(sql: &str, error: &rusqlite::Error) -> DbError {
    if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) {
        return DbError::Busy;
    }
    let code = error.sqlite_extended_error_code().map_or_else(|| "driver".to_owned(), |code| code.to_string());
    let (message, fault) = (error.to_string().into(), fault(error));
    DbError::Statement { sql: sql.into(), code: code.into(), message, fault }
}

/// The error of a step that says nothing of what is written, `BEGIN` say: what it met is the state of the connection.
pub(super) fn control_failure(sql: &str, error: &rusqlite::Error) -> DbError {
    match failure(sql, error) {
        DbError::Statement { sql, code, message, fault: Fault::ForGood } => {
            DbError::Statement { sql, code, message, fault: Fault::Passing }
        }
        failure => failure,
    }
}

fn fault(error: &rusqlite::Error) -> Fault {
    // SQLite has no code of its own for it. Who took the table or column away, in a restore say, can put it back.
    let message = error.to_string();
    if message.starts_with("no such table") || message.starts_with("no such column") {
        return Fault::Passing;
    }
    // Whatever the engine did not say itself, its driver refused.
    let Some(error) = error.sqlite_error() else { return Fault::ForGood };
    match error.code {
        ErrorCode::DiskFull | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure => Fault::NoWrites,
        ErrorCode::TooBig
        | ErrorCode::ConstraintViolation
        | ErrorCode::TypeMismatch
        | ErrorCode::ApiMisuse
        | ErrorCode::ParameterOutOfRange => Fault::ForGood,
        // The plain error: the statement is wrong, or one of its functions refuses a value.
        ErrorCode::Unknown if error.extended_code & 0xff == ffi::SQLITE_ERROR => Fault::ForGood,
        _ => Fault::Passing,
    }
}

fn write_failure(sql: &str, error: &rusqlite::Error) -> WriteError {
    match duplicate(error) {
        Some(duplicate) => duplicate,
        None => WriteError::Db(failure(sql, error)),
    }
}

/// SQLite says `UNIQUE constraint failed: table.column, table.column` for unique columns and for primary keys.
fn duplicate(error: &rusqlite::Error) -> Option<WriteError> {
    let rusqlite::Error::SqliteFailure(_, Some(message)) = error else { return None };
    let constraint = message.strip_prefix("UNIQUE constraint failed: ")?;
    let (table, _) = constraint.split_once('.')?;
    Some(WriteError::Duplicate { table: table.to_owned(), constraint: constraint.to_owned() })
}

/// Binds by the number in each placeholder's name: SQLite itself numbers `$n` by first appearance.
fn bind(statement: &mut rusqlite::Statement<'_>, sql: &str, params: &[Val]) -> Result<(), DbError> {
    let numbers = placeholders(statement, sql)?;
    let wanted = numbers.iter().copied().max().unwrap_or(0);
    if wanted != params.len() {
        return Err(DbError::Parameters { sql: sql.into(), wanted, given: params.len() });
    }
    for (place, number) in numbers.into_iter().enumerate() {
        let bound = statement.raw_bind_parameter(place + 1, &params[number - 1]);
        bound.map_err(|error| failure(sql, &error))?;
    }
    Ok(())
}

/// The numbers of the placeholders in SQLite's order.
fn placeholders(statement: &rusqlite::Statement<'_>, sql: &str) -> Result<Vec<usize>, DbError> {
    let number = |place| {
        let name = statement.parameter_name(place).unwrap_or("?");
        let number = name.strip_prefix('$').and_then(|digits| digits.parse().ok()).filter(|number| *number > 0);
        number.ok_or_else(|| DbError::Statement {
            sql: sql.into(),
            code: "placeholder".into(),
            message: format!("{name} is not a placeholder of the form $1").into(),
            fault: Fault::ForGood,
        })
    };
    (1..=statement.parameter_count()).map(number).collect()
}

fn value(value: ValueRef<'_>, columns: &Columns, index: usize) -> Result<Val, DbError> {
    let unsupported = |found| DbError::Column { column: columns[index].to_string(), wanted: "a plain type", found };
    match value {
        ValueRef::Null => Ok(Val::Null),
        ValueRef::Integer(number) => Ok(Val::Int(number)),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Val::Text(text.into())),
            Err(_) => Err(unsupported("text that is not UTF-8")),
        },
        ValueRef::Blob(bytes) => Ok(Val::Blob(bytes.into())),
        ValueRef::Real(_) => Err(unsupported("a floating-point number")),
    }
}
