//! `xtask/ratchet.txt`: the exceptions from the budgets, each with the number it has today.

use super::tree::Tree;

/// Where the exceptions are written.
pub(super) const FILE: &str = "xtask/ratchet.txt";

/// One exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its line in the file, from 1.
    pub(super) line: usize,
    /// What is measured: a path, a path with `::function`, or a crate's folder.
    pub(super) subject: String,
    /// The number of lines it may have: exactly what it has.
    pub(super) lines: usize,
}

/// The entries, one `SUBJECT LINES` a line; `#` begins a comment. A line of another form is an entry of 0 lines,
/// which no subject meets, so that it is reported.
pub(super) fn read(tree: &Tree) -> Vec<Entry> {
    let text = tree.text(FILE).unwrap_or_default();
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(at, line)| entry(at, line)).collect()
}

fn entry(line: usize, text: &str) -> Entry {
    let (subject, lines) = text.rsplit_once(' ').unwrap_or((text, "0"));
    Entry { line, subject: subject.trim().into(), lines: lines.parse().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::{Entry, FILE, read};
    use crate::tidy::tree::Tree;

    #[test]
    fn entries_are_read_and_comments_are_not() {
        let tree = Tree::of(&[(FILE, "# why\n\ncrates/a/src/b.rs 412\nbroken\n")]);
        let first = Entry { line: 3, subject: "crates/a/src/b.rs".into(), lines: 412 };
        let second = Entry { line: 4, subject: "broken".into(), lines: 0 };
        assert_eq!(read(&tree), [first, second]);
    }
}
