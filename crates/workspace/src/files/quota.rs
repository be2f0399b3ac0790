//! What a workspace may hold on disk, and the account of what it holds.
//!
//! The account is made once, by walking the tree at the first change after the opening, and is then kept with each
//! change. Only the process that serves a workspace changes it, so the account stays right; an error that leaves it in
//! doubt has the tree counted again at the next change.

use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Kind;
use super::tree::Meta;

/// What one workspace may hold on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Bytes. Every file, directory and link counts in whole blocks of 4 KiB, as file systems store them.
    pub bytes: u64,
    /// Files, directories and links.
    pub files: u64,
}

impl Quota {
    /// What applies unless the operator sets something else: 1 GiB in 100,000 files.
    pub const DEFAULT: Self = Self { bytes: 1 << 30, files: 100_000 };
}

/// Why a workspace cannot take more. Begins as the system's own message does, since scripts look for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Exceeded {
    #[error("No space left on device (the workspace's quota is {})", Size(*.0))]
    Bytes(u64),
    #[error("No space left on device (the workspace's quota is {0} files, directories and links)")]
    Files(u64),
}

/// A number of bytes in the largest unit that divides it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let unit = units.into_iter().find(|(length, _)| self.0 != 0 && self.0.is_multiple_of(*length));
        let (length, unit) = unit.unwrap_or((1, "bytes"));
        write!(f, "{} {unit}", self.0 / length)
    }
}

/// What one block of a file system holds, in bytes.
const BLOCK: u64 = 4096;

/// What some files hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

impl Held {
    /// Nothing.
    pub(super) const NOTHING: Self = Self { bytes: 0, files: 0 };
    /// A directory, without what is in it.
    pub(super) const DIR: Self = Self { bytes: BLOCK, files: 1 };

    /// A file or a link of this size.
    pub(super) fn file(size: u64) -> Self {
        Self { bytes: size.div_ceil(BLOCK).saturating_mul(BLOCK), files: 1 }
    }

    /// What stands at one path.
    pub(super) fn of(meta: &Meta) -> Self {
        match meta.kind {
            Kind::Dir => Self::DIR,
            Kind::File | Kind::Link => Self::file(meta.size),
            Kind::Other => Self::file(0),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), files: self.files.saturating_add(other.files) }
    }

    fn minus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(other.bytes), files: self.files.saturating_sub(other.files) }
    }
}

/// The account of one workspace.
#[derive(Debug)]
pub(super) struct Account {
    quota: Quota,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    /// What stands in the tree; `None` until it is counted.
    held: Option<Held>,
    /// What is being written under other names, to replace what stands in the tree.
    unfinished: Held,
}

/// The account while a change is made: no other change is made meanwhile.
pub(super) struct OpenAccount<'a> {
    quota: Quota,
    books: MutexGuard<'a, Books>,
}

impl Account {
    pub(super) fn new(quota: Quota) -> Self {
        Self { quota, books: Mutex::default() }
    }

    /// Opens the account; `count` says what stands in the tree when that is not known.
    pub(super) fn open(&self, count: impl FnOnce() -> io::Result<Held>) -> io::Result<OpenAccount<'_>> {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        if books.held.is_none() {
            books.held = Some(count()?);
        }
        Ok(OpenAccount { quota: self.quota, books })
    }
}

impl OpenAccount<'_> {
    /// Refuses what is too much. What takes no more than it frees is always allowed: so is getting below a quota that
    /// was lowered.
    pub(super) fn admit(&self, wanted: Held, freed: Held) -> io::Result<()> {
        let after = self.held().plus(self.books.unfinished).plus(wanted).minus(freed);
        let exceeded = if wanted.bytes > freed.bytes && after.bytes > self.quota.bytes {
            Exceeded::Bytes(self.quota.bytes)
        } else if wanted.files > freed.files && after.files > self.quota.files {
            Exceeded::Files(self.quota.files)
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::StorageFull, exceeded))
    }

    /// Enters what was made in the tree and what is gone from it.
    pub(super) fn enter(&mut self, made: Held, gone: Held) {
        self.books.held = Some(self.held().plus(made).minus(gone));
    }

    /// Enters a file that is written under another name.
    pub(super) fn begin(&mut self, unfinished: Held) {
        self.books.unfinished = self.books.unfinished.plus(unfinished);
    }

    /// Enters that such a file stands in the tree now, or is gone.
    pub(super) fn end(&mut self, unfinished: Held) {
        self.books.unfinished = self.books.unfinished.minus(unfinished);
    }

    /// Has the tree counted at the next change.
    pub(super) fn doubt(&mut self) {
        self.books.held = None;
    }

    fn held(&self) -> Held {
        self.books.held.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_largest_unit_that_divides_them() {
        for (bytes, shown) in [(1 << 30, "1 GiB"), (1536 << 20, "1536 MiB"), (4096, "4 KiB"), (1001, "1001 bytes")] {
            assert_eq!(Size(bytes).to_string(), shown);
        }
    }

    #[test]
    fn files_count_in_whole_blocks() {
        assert_eq!([0, 1, 4096, 4097].map(|size| Held::file(size).bytes), [0, 4096, 4096, 8192]);
    }

    #[test]
    fn more_is_refused_above_the_quota_and_less_never() {
        let account = Account::new(Quota { bytes: 8192, files: 2 });
        let held = Held { bytes: 12_288, files: 3 };
        let mut open = account.open(|| Ok(held)).unwrap();
        let refused = |open: &OpenAccount<'_>, wanted, freed| open.admit(wanted, freed).unwrap_err().to_string();
        assert_eq!(
            refused(&open, Held::file(1), Held::NOTHING),
            "No space left on device (the workspace's quota is 8 KiB)"
        );
        assert_eq!(
            refused(&open, Held::file(0), Held::NOTHING),
            "No space left on device (the workspace's quota is 2 files, directories and links)"
        );
        // A file of one block in the place of one of two.
        open.admit(Held::file(1), Held::file(4097)).unwrap();
        open.enter(Held::NOTHING, Held { bytes: 8192, files: 2 });
        open.admit(Held::file(1), Held::NOTHING).unwrap();
        open.begin(Held::file(1));
        assert!(open.admit(Held::file(1), Held::NOTHING).is_err());
        open.end(Held::file(1));
        open.admit(Held::file(1), Held::NOTHING).unwrap();
        open.doubt();
        drop(open);
        assert!(account.open(|| Ok(held)).unwrap().admit(Held::file(1), Held::NOTHING).is_err());
    }
}
