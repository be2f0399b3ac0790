//! Outside dependencies: each has its reason in docs/dependencies.md, and each that a crate declares is used there.

use super::Finding;
use super::crates::Package;
use super::rust::Source;
use super::tree::Tree;

/// Where the reasons are written.
const PAGE: &str = "docs/dependencies.md";

/// Dependencies that are declared for a feature they switch on and are named in no source, each with that reason.
const UNNAMED: [(&str, &str); 0] = [];

/// Dependencies without a reason, and reasons without a dependency.
pub(super) fn check_reasons(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let declared = declared(tree.text("Cargo.toml").unwrap_or_default());
    let reasoned = reasoned(tree.text(PAGE).unwrap_or_default());
    let mut findings = Vec::new();
    for name in declared.iter().filter(|name| !reasoned.contains(name)) {
        findings.push(Finding::new(PAGE, format!("has no line for {name}: say in one line why it is used")));
    }
    for name in reasoned.iter().filter(|name| !declared.contains(name)) {
        findings.push(Finding::new(PAGE, format!("has a line for {name}, which is not in Cargo.toml: remove it")));
    }
    for name in declared.iter().filter(|name| !packages.iter().any(|package| declares(package, name))) {
        findings.push(Finding::new("Cargo.toml", format!("{name} is used by no crate: remove it")));
    }
    for package in packages {
        let outside = package.dependencies.iter().map(|dependency| &dependency.name);
        let unlisted = outside.filter(|name| !name.starts_with("nylorun-") && !declared.contains(name));
        findings.extend(unlisted.map(|name| {
            let text =
                format!("{name} is not in [workspace.dependencies]: declare it there and use `workspace = true`");
            Finding::new(&package.name, text)
        }));
    }
    findings
}

fn declares(package: &Package, name: &str) -> bool {
    package.dependencies.iter().any(|dependency| dependency.name == name)
}

/// The names in `[workspace.dependencies]` that are not ours.
fn declared(manifest: &str) -> Vec<String> {
    let section = manifest.lines().skip_while(|line| line.trim() != "[workspace.dependencies]").skip(1);
    let lines = section.take_while(|line| !line.starts_with('['));
    let names = lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    names.map(|(name, _)| name.trim().to_owned()).filter(|name| !name.starts_with("nylorun-")).collect()
}

/// The names that begin a row of the page's table: ``| `name` | …``.
fn reasoned(page: &str) -> Vec<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name.to_owned()).collect()
}

/// Dependencies that a crate declares and none of its files names.
pub(super) fn check_named(packages: &[Package], sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let folder = format!("{}/", package.folder);
        let own: Vec<&Source> = sources.iter().filter(|source| source.path.starts_with(&folder)).collect();
        for dependency in &package.dependencies {
            let word = dependency.name.replace('-', "_");
            let named = own.iter().any(|source| source.tokens.iter().any(|token| token.text == word));
            if !named && !UNNAMED.iter().any(|(name, _)| *name == dependency.name) {
                let text = format!("declares {} and does not use it: remove it", dependency.name);
                findings.push(Finding::new(&package.name, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{check_named, check_reasons};
    use crate::tidy::Finding;
    use crate::tidy::crates::sample;
    use crate::tidy::rust::Source;
    use crate::tidy::tree::Tree;

    const MANIFEST: &str = "[workspace.dependencies]\nnylorun-a = { path = \"a\" }\n# c\nbytes = \"1\"\n\
        url = \"2\"\n\n[workspace.lints]\nx = 1\n";

    fn texts(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_dependency_without_a_reason_is_found_and_a_reason_without_a_dependency_too() {
        let tree = Tree::of(&[("Cargo.toml", MANIFEST), ("docs/dependencies.md", "| `bytes` | x |\n| `gone` | y |\n")]);
        let found = check_reasons(&tree, &[sample("a", &["bytes", "url"], &[])]);
        let expected = [
            "docs/dependencies.md: has no line for url: say in one line why it is used",
            "docs/dependencies.md: has a line for gone, which is not in Cargo.toml: remove it",
        ];
        assert_eq!(texts(&found), expected);
    }

    #[test]
    fn unused_and_unlisted_dependencies_are_found() {
        let tree = Tree::of(&[("Cargo.toml", MANIFEST), ("docs/dependencies.md", "| `bytes` | x |\n| `url` | y |\n")]);
        let found = check_reasons(&tree, &[sample("a", &["bytes", "own"], &[])]);
        let expected = [
            "Cargo.toml: url is used by no crate: remove it",
            "a: own is not in [workspace.dependencies]: declare it there and use `workspace = true`",
        ];
        assert_eq!(texts(&found), expected);
    }

    #[test]
    fn a_dependency_that_no_source_names_is_found() {
        let source = Source::read("crates/a/src/lib.rs", "//! futures_util in prose.\nuse bytes::Bytes;\n").unwrap();
        let found = check_named(&[sample("a", &["bytes", "futures-util"], &[])], &[source]);
        assert_eq!(texts(&found), ["a: declares futures-util and does not use it: remove it"]);
    }
}
