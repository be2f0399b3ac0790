//! Counting of what reaches the database. Readers, transaction control, migrations and retries are not counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Totals since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Writes begun, whatever became of them. Crash points are numbered by it, from 1.
    pub writes: u64,
    /// Writes that were committed.
    pub commits: u64,
    /// Statements of the writes that were committed.
    pub statements: u64,
    /// Database transactions that were committed: on SQLite one for a group of writes (one sync to disk), on
    /// PostgreSQL one for each write (the server groups syncs itself).
    pub transactions: u64,
}

/// The counters behind [`Counts`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    writes: AtomicU64,
    commits: AtomicU64,
    statements: AtomicU64,
    transactions: AtomicU64,
}

impl Counters {
    /// Numbers a write, from 1.
    pub(super) fn begin_write(&self) -> u64 {
        self.writes.fetch_add(1, Relaxed) + 1
    }

    /// A write was committed.
    pub(super) fn committed(&self, statements: usize) {
        self.commits.fetch_add(1, Relaxed);
        self.statements.fetch_add(statements as u64, Relaxed);
    }

    /// A database transaction was committed.
    pub(super) fn transaction(&self) {
        self.transactions.fetch_add(1, Relaxed);
    }

    pub(super) fn snapshot(&self) -> Counts {
        Counts {
            writes: self.writes.load(Relaxed),
            commits: self.commits.load(Relaxed),
            statements: self.statements.load(Relaxed),
            transactions: self.transactions.load(Relaxed),
        }
    }
}
