//! Links between the repository's Markdown files lead somewhere.

use super::Finding;
use super::tree::{File, Tree};

/// Links to files or headings that are not there.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.with_extension("md").flat_map(|file| check_file(tree, file)).collect()
}

fn check_file(tree: &Tree, file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, target) in links(&file.text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (path, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path) };
        if !tree.paths.contains(&path) {
            findings.push(Finding::at(&file.path, line, format!("links to {target}, which is not there")));
            continue;
        }
        let page = tree.text(&path).unwrap_or_default();
        if !heading.is_empty() && !headings(page).any(|there| there == heading) {
            findings.push(Finding::at(&file.path, line, format!("links to {target}, and {path} has no such heading")));
        }
    }
    findings
}

/// The targets of `[…](target)` outside code blocks, with their lines from 1.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (index, line) in prose(text) {
        for part in line.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                found.push((index + 1, target));
            }
        }
    }
    found
}

/// The lines outside fenced code, with their index.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// `path` as seen from the folder of the file `from`, with `.` and `..` resolved.
fn resolve(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The anchors of a page's headings: lower case, spaces as hyphens, other punctuation dropped.
fn headings(page: &str) -> impl Iterator<Item = String> {
    prose(page).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tree::Tree;

    fn findings(text: &str) -> Vec<String> {
        let other = ("docs/other.md", "# Some `code`, title\n");
        let tree = Tree::of(&[("README.md", "# Top\n"), ("docs/a.md", text), other]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_that_resolve_pass() {
        let text = "[a](other.md) [b](../README.md#top) [c](other.md#some-code-title)\n\n\
            # Here\n\n[d](#here) [e](https://x.y)\n";
        assert_eq!(findings(text), Vec::<String>::new());
    }

    #[test]
    fn dead_links_are_found() {
        assert_eq!(findings("x\n[a](gone.md)\n"), ["docs/a.md:2: links to gone.md, which is not there"]);
        let expected = ["docs/a.md:1: links to other.md#no, and docs/other.md has no such heading"];
        assert_eq!(findings("[a](other.md#no)\n"), expected);
    }

    #[test]
    fn code_blocks_hold_no_links() {
        assert_eq!(findings("```\n[a](gone.md)\n```\n"), Vec::<String>::new());
    }
}
