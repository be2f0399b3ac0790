//! No file names a folder of the machine on which it was written.

use super::Finding;
use super::tree::Tree;

/// What begins such a path, and what the path is.
fn beginnings() -> [(String, &'static str); 5] {
    // Put together here, so that this file does not find itself.
    [
        (format!("/{}/", "work"), "a developer's work folder"),
        (format!("/{}/", "root"), "a home directory"),
        (format!("/{}/", "Users"), "a home directory"),
        (format!("/{}/", "home"), "a home directory"),
        (format!("\\{}\\", "Users"), "a home directory"),
    ]
}

/// Home directories that are examples.
const EXAMPLES: [&str; 6] = ["you", "me", "user", "agent", "test", "x"];

/// Absolute paths of a developer's machine.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let beginnings = beginnings();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            let found = beginnings.iter().find(|(beginning, _)| names(line, beginning));
            if let Some((beginning, what)) = found {
                findings.push(Finding::at(&file.path, index + 1, format!("names {beginning}…, {what}")));
            }
        }
    }
    findings
}

/// Whether `line` holds a path that begins so: nothing of a path stands before it, and what follows is no example.
fn names(line: &str, beginning: &str) -> bool {
    line.match_indices(beginning).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = &line[at + beginning.len()..];
        let starts = before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-' | '~' | '}'));
        let example = EXAMPLES
            .iter()
            .any(|name| after.strip_prefix(name).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)));
        starts && !example
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tree::Tree;

    fn count(text: &str) -> usize {
        check(&Tree::of(&[("a.md", text)])).len()
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        let found = check(&Tree::of(&[("a.md", &format!("x\nin /{}/main now\n", "work"))]));
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(texts, [format!("a.md:2: names /{}/…, a developer's work folder", "work")]);
        assert_eq!(count(&format!("\"/{}/.cargo\"", "root")), 1);
        assert_eq!(count(&format!("/{}/alice/x", "home")), 1);
    }

    #[test]
    fn examples_and_inner_folders_pass() {
        let text = format!("/workspace/a docs/{}/b /{}/you/x https://a.b/{}/c\n", "work", "home", "home");
        assert_eq!(count(&text), 0);
    }
}
