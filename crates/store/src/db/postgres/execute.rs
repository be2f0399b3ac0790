//! Values and errors of PostgreSQL in our terms.

use std::error::Error;

use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::write::WasSent;
use crate::db::error::{DbError, Fault, WriteError};
use crate::db::statement::{Expect, Statement};
use crate::db::url::chain;
use crate::db::value::{Columns, Row, Val};

/// The type that a parameter of this value is declared with.
pub(super) fn declared(value: &Val) -> Type {
    match value {
        Val::Null => Type::UNKNOWN,
        Val::Int(_) => Type::INT8,
        Val::Text(_) => Type::TEXT,
        Val::Blob(_) => Type::BYTEA,
    }
}

/// Whether a value can be sent as a parameter of this type as it is.
pub(super) fn fits(value: &Val, kind: &Type) -> bool {
    matches!(value, Val::Null) || *kind == declared(value)
}

/// Whether a parameter of this type takes one of our values.
pub(super) fn is_plain(kind: &Type) -> bool {
    [Type::INT8, Type::TEXT, Type::BYTEA].contains(kind)
}

impl ToSql for Val {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        if !fits(self, kind) {
            return Err(format!("a parameter of type {kind} was given {}", self.kind()).into());
        }
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Text(text) => text.as_ref().to_sql(kind, out),
            Self::Blob(bytes) => bytes.as_ref().to_sql(kind, out),
        }
    }

    /// Every type, since NULL goes into all; a value is compared with the type when it is written.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Val {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *kind {
            Type::INT8 => Self::Int(i64::from_sql(kind, raw)?),
            Type::INT4 => Self::Int(i64::from(i32::from_sql(kind, raw)?)),
            Type::INT2 => Self::Int(i64::from(i16::from_sql(kind, raw)?)),
            Type::BOOL => Self::Int(i64::from(bool::from_sql(kind, raw)?)),
            Type::BYTEA => Self::Blob(raw.into()),
            _ => Self::Text(<&str>::from_sql(kind, raw)?.into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    /// Wider than what columns may be, since expressions give these too: `SELECT 1`, `EXISTS (…)`, names of tables.
    fn accepts(kind: &Type) -> bool {
        matches!(
            *kind,
            Type::INT8 | Type::INT4 | Type::INT2 | Type::BOOL | Type::BYTEA | Type::TEXT | Type::VARCHAR | Type::NAME
        )
    }
}

/// The names of a statement's result columns, once all of them have types that [`Val`] can hold.
pub(super) fn columns(statement: &tokio_postgres::Statement) -> Result<Columns, DbError> {
    let name = |column: &tokio_postgres::Column| match <Val as FromSql>::accepts(column.type_()) {
        true => Ok(column.name().into()),
        false => Err(DbError::Column {
            column: column.name().to_owned(),
            wanted: "a plain type",
            found: if *column.type_() == Type::NUMERIC { "numeric" } else { "another type" },
        }),
    };
    statement.columns().iter().map(name).collect()
}

/// One row in our terms.
pub(super) fn row(columns: &Columns, row: &tokio_postgres::Row) -> Result<Row, DbError> {
    let value = |index: usize| {
        row.try_get(index).map_err(|_| DbError::Column {
            column: columns[index].to_string(),
            wanted: "a plain value",
            found: "one that cannot be read",
        })
    };
    Ok(Row::new(Columns::clone(columns), (0..columns.len()).map(value).collect::<Result<_, _>>()?))
}

/// The error of one step. The server's detail is left out, as it repeats values.
pub(super) fn failure(sql: &str, error: &tokio_postgres::Error) -> DbError {
    match error.as_db_error() {
        Some(server) if !is_shutdown(server.code()) => {
            let code = server.code().code();
            let message = server.message().into();
            DbError::Statement { sql: sql.into(), code: code.into(), message, fault: fault(code) }
        }
        _ => connection_failure(error),
    }
}

/// Reads a SQLSTATE by its class: values, constraints, statements and limits of the program are refused for good.
fn fault(code: &str) -> Fault {
    match (code.get(..2), code) {
        // Full, a standby, an I/O error.
        (_, "53100" | "25006" | "58030") => Fault::NoWrites,
        // Privileges, tables and columns that are missing are given or put back, by whoever took them.
        (_, "42501" | "42P01" | "42703") => Fault::Passing,
        (Some("21" | "22" | "23" | "42" | "44" | "54"), _) => Fault::ForGood,
        (Some(_) | None, _) => Fault::Passing,
    }
}

/// The error of a connection.
pub(super) fn connection_failure(error: &tokio_postgres::Error) -> DbError {
    DbError::Connection(chain(error).into())
}

/// A statement that fails, and its transaction with it, unless it changes exactly one row. The server checks this, so
/// that the COMMIT behind it need not wait for the client to count.
pub(super) fn exactly_one(sql: &str) -> String {
    format!("WITH changed AS ({sql} RETURNING 1) SELECT 1 / CASE count(*) WHEN 1 THEN 1 ELSE 0 END FROM changed")
}

/// The error of the BEGIN of a write, whose statements and COMMIT were sent behind it.
pub(super) fn begin_failure(error: &tokio_postgres::Error, was_sent: WasSent) -> WriteError {
    let ends_connection = error.as_db_error().is_some_and(|server| server.parsed_severity() != Some(Severity::Error));
    let failure = failure("BEGIN", error);
    if ends_connection || was_sent == WasSent::No {
        return WriteError::Db(failure);
    }
    // What followed it may have run without a transaction.
    WriteError::Unknown(failure)
}

/// The error of a statement of a write whose COMMIT was sent with it.
pub(super) fn change_failure(statement: &Statement, error: &tokio_postgres::Error) -> WriteError {
    match (error.as_db_error(), statement.expect) {
        (Some(server), Expect::One(guard)) if *server.code() == SqlState::DIVISION_BY_ZERO => WriteError::Guard(guard),
        // The server itself says so, and then never runs the COMMIT: not even when it ends the connection.
        (Some(_), _) => write_failure(&statement.sql, error),
        (None, _) => WriteError::Unknown(failure(&statement.sql, error)),
    }
}

fn write_failure(sql: &str, error: &tokio_postgres::Error) -> WriteError {
    match error.as_db_error() {
        Some(server) if *server.code() == SqlState::UNIQUE_VIOLATION => WriteError::Duplicate {
            table: server.table().unwrap_or_default().to_owned(),
            constraint: server.constraint().unwrap_or_default().to_owned(),
        },
        _ => WriteError::Db(failure(sql, error)),
    }
}

/// The error of a COMMIT: known only if the server itself refused it and lives on.
pub(super) fn commit_failure(error: &tokio_postgres::Error) -> WriteError {
    let refused = |server: &tokio_postgres::error::DbError| {
        server.parsed_severity() == Some(Severity::Error) && !is_shutdown(server.code())
    };
    match error.as_db_error() {
        Some(server) if refused(server) => write_failure("COMMIT", error),
        _ => WriteError::Unknown(failure("COMMIT", error)),
    }
}

/// Whether the same write may succeed when it is tried again, given that it was not committed.
pub(super) fn may_retry(error: &WriteError) -> bool {
    match error {
        WriteError::Db(DbError::Connection(_)) => true,
        WriteError::Db(DbError::Statement { code, .. }) => {
            [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED]
                .iter()
                .any(|state| state.code() == code.as_ref())
        }
        WriteError::Guard(_) | WriteError::Duplicate { .. } | WriteError::Unknown(_) | WriteError::Db(_) => false,
    }
}

/// The server is ending this connection, whatever it was asked.
fn is_shutdown(code: &SqlState) -> bool {
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW].contains(code)
}
