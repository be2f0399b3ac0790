//! What can go wrong in the database layer. No message repeats a parameter's value.

use std::sync::Arc;

use super::statement::Guard;

/// What a failure says about trying the same again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The database could not do it now: it was busy, or out of reach.
    Passing,
    /// It takes no write now: its disk is full or broken, or it may only be read.
    NoWrites,
    /// It refuses the statement or a value in it, and would again: a constraint, a size, a fault of this program.
    ForGood,
}

/// A read that failed, or the reason below a failed write. Nothing was changed by it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DbError {
    /// The store was closed, or its thread ended.
    #[error("the database is closed")]
    Closed,
    /// Another process held the database for longer than the busy time-out, or the pool gave no connection in time.
    #[error("the database is busy")]
    Busy,
    /// The server cannot be reached, or the connection was lost.
    #[error("no connection to the database: {0}")]
    Connection(Arc<str>),
    /// A row holds something else than the caller asked for.
    #[error("column {column}: wanted {wanted}, found {found}")]
    Column {
        /// The column's name in the SELECT list.
        column: String,
        /// What was asked for.
        wanted: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A text with a NUL character, which PostgreSQL cannot keep.
    #[error("parameter {parameter} holds a NUL character")]
    NulInText {
        /// The parameter's number, from 1.
        parameter: usize,
    },
    /// A statement was given more or fewer values than it has placeholders.
    #[error("{wanted} parameters wanted, {given} given: {sql}")]
    Parameters {
        /// The statement.
        sql: Arc<str>,
        /// Placeholders in the text.
        wanted: usize,
        /// Values given.
        given: usize,
    },
    /// The engine refused or could not run the statement.
    #[error("{message} ({code}): {sql}")]
    Statement {
        /// The statement, or the step in words (`COMMIT`).
        sql: Arc<str>,
        /// The engine's code: SQLite's extended result code or PostgreSQL's SQLSTATE.
        code: Arc<str>,
        /// The engine's message.
        message: Arc<str>,
        /// What that says about trying again.
        fault: Fault,
    },
}

impl DbError {
    /// What it says about trying the same again.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Closed | Self::Busy | Self::Connection(_) => Fault::Passing,
            Self::Column { .. } | Self::NulInText { .. } | Self::Parameters { .. } => Fault::ForGood,
            Self::Statement { fault, .. } => *fault,
        }
    }

    /// The engine's words, without the statement: for those who do not know it.
    pub fn reason(&self) -> String {
        match self {
            Self::Statement { code, message, .. } => format!("{message} ({code})"),
            Self::Parameters { wanted, given, .. } => format!("{wanted} parameters wanted, {given} given"),
            Self::Closed | Self::Busy | Self::Connection(_) | Self::Column { .. } | Self::NulInText { .. } => {
                self.to_string()
            }
        }
    }
}

/// A write that failed. Except for [`WriteError::Unknown`], nothing of it was applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// A statement did not change the one row that it had to: the precondition is gone, load again.
    #[error("precondition failed: {0}")]
    Guard(Guard),
    /// A row with this key exists already.
    #[error("duplicate in {table}: {constraint}")]
    Duplicate {
        /// The table, named alike by both engines.
        table: String,
        /// SQLite: `table.column, …`. PostgreSQL: the constraint's name. For messages only.
        constraint: String,
    },
    /// The commit was sent and its answer was lost: it may have happened or not. Load again and look.
    #[error("the outcome of the commit is unknown: {0}")]
    Unknown(#[source] DbError),
    /// The engine failed; nothing was applied.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl WriteError {
    /// What it says about trying the same again, when the engine failed.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            Self::Guard(_) | Self::Duplicate { .. } => None,
            Self::Unknown(error) | Self::Db(error) => Some(error.fault()),
        }
    }
}

/// A database that cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// A newer build has migrated it. Nothing was changed.
    #[error("the database has schema version {found}, and this build knows up to {known}: use a newer build")]
    SchemaTooNew {
        /// The newest version in the database.
        found: i64,
        /// The newest version that this build knows.
        known: i64,
    },
    /// An older build made it, and it was to be left as it is. Nothing was changed.
    #[error("the database has schema version {found}, and this build wants {wanted}: migrate it first")]
    SchemaOld {
        /// The newest version in the database; 0 for one without tables.
        found: i64,
        /// This build's version.
        wanted: i64,
    },
    /// A migration that was applied is not the one that this build holds.
    #[error("migration {version} ({name}) differs from the one that was applied to this database")]
    ChecksumChanged {
        /// Its version.
        version: i64,
        /// Its name in this build.
        name: &'static str,
    },
    /// A migration failed and was rolled back.
    #[error("migration {version} ({name}) failed")]
    Migration {
        /// Its version.
        version: i64,
        /// Its name.
        name: &'static str,
        /// Why.
        #[source]
        source: DbError,
    },
    /// The file or server cannot be used.
    #[error("cannot open {target}")]
    Open {
        /// The database, without its password.
        target: String,
        /// Why.
        #[source]
        source: DbError,
    },
    /// `NYLORUN_CRASH_POINT` cannot be read (only in builds with the feature `crash-points`).
    #[error("NYLORUN_CRASH_POINT must be count, N:before or N:after")]
    CrashPoint,
}

impl OpenError {
    fn cause(&self) -> Option<&DbError> {
        match self {
            Self::Migration { source, .. } | Self::Open { source, .. } => Some(source),
            Self::SchemaTooNew { .. } | Self::SchemaOld { .. } | Self::ChecksumChanged { .. } | Self::CrashPoint => {
                None
            }
        }
    }

    /// What it says about trying the same again, when the engine failed.
    pub fn fault(&self) -> Option<Fault> {
        self.cause().map(DbError::fault)
    }

    /// The engine's words, without the statement.
    pub fn reason(&self) -> Option<String> {
        self.cause().map(DbError::reason)
    }
}
